"""From a workflow to Spark: analysis, levels, and the frames of an epoch."""
