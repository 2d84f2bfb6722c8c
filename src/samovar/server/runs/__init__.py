"""Executions, journeys in recordings, comparisons, and their results."""
