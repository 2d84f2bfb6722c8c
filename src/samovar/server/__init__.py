"""The workbench's server: HTTP and WebSocket over the library, shared documents, shared executions."""
