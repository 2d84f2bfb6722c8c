"""Spark itself: Java, the session, tags on jobs, storage that all hosts see."""
