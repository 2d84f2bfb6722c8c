"""Workflows as data: operators, frames, documents. Imports no pyspark."""
