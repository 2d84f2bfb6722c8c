"""The HTTP and WebSocket routes, one module a subject."""
