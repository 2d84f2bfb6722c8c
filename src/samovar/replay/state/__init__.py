"""States in the past: windows of a trace, and each operator's state in them."""
