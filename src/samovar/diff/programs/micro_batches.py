"""Inputs as streams: the same rows in few or many micro-batches, and the rows that a streaming program writes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from samovar.diff.dependence import Dependence
from samovar.diff.programs.shake_settings import Setting, blocks_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Mode", "as_streams", "taken_from_stream"]

Mode = Literal["append", "update", "complete"]


def as_streams(
    tables: Mapping[str, pa.Table],
    setting: Setting,
    arrives: Dependence,
    spark: SparkSession,
    folder: Path,
) -> dict[str, DataFrame]:
    """Each table as files that Spark reads one a micro-batch, `setting.cuts` of them."""
    streams = {}
    for name, table in tables.items():
        place = folder / "inputs" / name
        place.mkdir(parents=True)
        for number, block in enumerate(blocks_of(table, setting, arrives, setting.cuts)):
            file = place / f"{number:06}.parquet"
            pq.write_table(table.take(pa.array(block, pa.int64())), file)
            os.utime(file, (1_000_000_000 + number, 1_000_000_000 + number))  # read in this order
        schema = spark.createDataFrame(table).schema
        streams[name] = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(place))
    return streams


def taken_from_stream(mode: Mode, folder: Path) -> Callable[[DataFrame], pa.Table]:
    """A function that runs a streaming DataFrame over all its input, and returns the rows that it wrote: all, or those
    of the last micro-batch in `complete` mode."""

    def take(df: DataFrame) -> pa.Table:
        tables: list[pa.Table] = []

        def keep(batch: DataFrame, number: int) -> None:
            tables.append(batch.toArrow())

        query = (
            df.writeStream.foreachBatch(keep)
            .outputMode(mode)
            .option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        if not tables:
            return df.sparkSession.createDataFrame([], df.schema).toArrow()
        return tables[-1] if mode == "complete" else pa.concat_tables(tables)

    return take
