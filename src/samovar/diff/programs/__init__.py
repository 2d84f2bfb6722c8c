"""Programs under test: their inputs, their settings, their results."""
