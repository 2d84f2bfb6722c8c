"""`samovar attach`: a run of another process at a prompt."""
