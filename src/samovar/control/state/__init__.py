"""What the state machine knows of a run. Pure data."""
