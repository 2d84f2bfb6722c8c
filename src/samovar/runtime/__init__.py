"""Running: sources and slices, epochs, Python workers, runs."""
