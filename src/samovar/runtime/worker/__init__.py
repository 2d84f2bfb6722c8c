"""What runs inside Spark's Python workers, and nothing else: the tuple loop, states, breakpoints, a task's control."""
