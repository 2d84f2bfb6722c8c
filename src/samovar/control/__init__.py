"""Live control: messages, the run's state machine as pure code, the channel to running tasks. No PySpark in it."""
