"""Traces of the past: past epochs computed again with every computation step."""
