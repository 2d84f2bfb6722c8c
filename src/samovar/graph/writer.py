"""`frame.write`: files as results, with the names of PySpark's DataFrameWriter."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from samovar.errors import WorkflowError
from samovar.graph import operators as ops
from samovar.graph.arguments import TakesOptions, flat
from samovar.graph.pyspark_names import WRITER, RefusesOtherNames

if TYPE_CHECKING:
    from samovar.graph.frame import Frame

__all__ = ["Writer"]


_MODES = {"error": "error", "errorifexists": "error", "default": "error"} | {
    mode: mode for mode in ("overwrite", "append", "ignore")
}
"""PySpark's spellings of modes."""


class Writer(TakesOptions, RefusesOtherNames):
    """Writes a frame, with the names of PySpark's DataFrameWriter."""

    _subject = "A Frame's writer has"
    _instead = WRITER
    _otherwise = "It writes files: parquet, csv, json, text or orc."

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._format = "parquet"
        self._mode = "error"
        super().__init__()
        self._partition_by: tuple[str, ...] = ()

    def format(self, source: str) -> Writer:
        """parquet, csv, json, text or orc."""
        self._format = source
        return self

    def mode(self, saveMode: str) -> Writer:
        """What to do when the path exists: error (default), overwrite, append, ignore."""
        if saveMode.lower() not in _MODES:
            raise WorkflowError(
                f"Expected a mode of {', '.join(sorted({*_MODES.values()}))}, got {saveMode!r}."
            )
        self._mode = _MODES[saveMode.lower()]
        return self

    def partitionBy(self, *cols: Any) -> Writer:
        """Folders by the values of these columns."""
        self._partition_by = tuple(flat(cols))
        return self

    def save(
        self,
        path: Any,
        format: str | None = None,
        mode: str | None = None,
        partitionBy: Any = None,
        *,
        name: str | None = None,
        **options: Any,
    ) -> Frame:
        """Write files to the path when the run has ended well."""
        if mode is not None:
            self.mode(mode)
        if partitionBy is not None:
            self.partitionBy(partitionBy)
        self.options(**options)
        chosen = format or self._format
        if chosen not in ops.FILE_FORMATS:
            raise WorkflowError(
                f"Expected a format of {', '.join(ops.FILE_FORMATS)}, got {chosen!r}.",
                hint="Use .sink(name) and write run.result(name) with the library of your choice.",
            )
        return self._frame._add(
            ops.Write,
            name or self._frame._flow.fresh("write"),
            format=chosen,
            path=os.fspath(path),
            mode=self._mode,
            options=dict(self._options),
            partition_by=self._partition_by,
        )

    def parquet(
        self,
        path: Any,
        mode: str | None = None,
        partitionBy: Any = None,
        *,
        name: str | None = None,
        **options: Any,
    ) -> Frame:
        """Parquet files."""
        return self.save(path, "parquet", mode, partitionBy, name=name, **options)

    def csv(self, path: Any, mode: str | None = None, *, name: str | None = None, **options: Any) -> Frame:
        """CSV files."""
        return self.save(path, "csv", mode, name=name, **options)

    def json(self, path: Any, mode: str | None = None, *, name: str | None = None, **options: Any) -> Frame:
        """JSON lines files."""
        return self.save(path, "json", mode, name=name, **options)

    def text(self, path: Any, *, name: str | None = None, **options: Any) -> Frame:
        """Text files, from a single string column."""
        return self.save(path, "text", name=name, **options)

    def orc(
        self,
        path: Any,
        mode: str | None = None,
        partitionBy: Any = None,
        *,
        name: str | None = None,
        **options: Any,
    ) -> Frame:
        """ORC files."""
        return self.save(path, "orc", mode, partitionBy, name=name, **options)
