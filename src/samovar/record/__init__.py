"""What a run leaves on disk: log, deltas, results, and the workflow as it was."""
