"""Two tables compared by Spark."""
