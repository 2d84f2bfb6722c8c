"""The driver's side of a run that is going on: commands, watches, inspection, modification, held rows."""
