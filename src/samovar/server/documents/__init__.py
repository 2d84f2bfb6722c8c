"""Workflow documents that people edit together."""
