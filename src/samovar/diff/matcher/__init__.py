"""The matcher: two streams of events, event by event or by whole arrays."""
