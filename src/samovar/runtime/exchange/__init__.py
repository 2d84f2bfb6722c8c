"""What the driver and its workers hand each other: tasks, decisions, switches of code, failures, kept rows."""
