"""One epoch after another, in the driver: how long it is, its jobs, its marks, its commit."""
