"""Sources as units in canonical order: files, chunks, ranges of rows, generated rows, queries, rejected rows."""
