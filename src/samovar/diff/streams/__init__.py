"""Two live streams compared as they go."""
