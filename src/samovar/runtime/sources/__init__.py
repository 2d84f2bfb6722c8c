"""Sources as units in canonical order: files, chunks, generated rows, queries, rejected rows."""
