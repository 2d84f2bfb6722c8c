"""`samovar debug`: time travel at a prompt."""
