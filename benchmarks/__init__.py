"""Benchmarks: one module a claim. ``python -m benchmarks`` lists them; run it from the repository's root."""
