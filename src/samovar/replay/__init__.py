"""Time travel: traces of the past, moments and steps, questions over time, forks."""
