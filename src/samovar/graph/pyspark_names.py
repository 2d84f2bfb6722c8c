"""PySpark's names that Frames, groups, readers and writers lack, and what to use instead.

A test holds this against the installed PySpark: every public name of its classes is a method here or in a table. So a
hint for a name of PySpark's is written by a person; only a name that PySpark does not know either is a typing mistake.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from samovar.errors import UnsupportedMethod, did_you_mean

__all__ = ["FRAME", "GROUPED", "READER", "WRITER", "RefusesOtherNames", "missing"]

_OPERATOR = "use .apply(YourOperator())"
_NAMED = "pass the frame on as a Python variable; SQL over it goes into selectExpr, filter and agg"
_RECORDED = "leave it out: every epoch is recorded"
_PLAN = "use samovar show, which draws the workflow with its counters"
_STREAM = "write the workflow for a batch: Samovar cuts it into epochs"

FRAME: Mapping[str, str] = {
    "approxQuantile": "use .agg('percentile_approx(x, array(0.25, 0.5))')",
    "asTable": "use .apply(YourOperator()) in place of a table function",
    "checkpoint": _RECORDED,
    "colRegex": "use .select(*[c for c in frame.columns if re.search(pattern, c)])",
    "collect": "add .sink('S'), run the workflow, and read run.result('S').to_pylist()",
    "corr": "use .agg('corr(a, b)')",
    "count": "use .agg('count(*)').sink('S'), or read the counters of run.progress",
    "cov": "use .agg('covar_samp(a, b)')",
    "createGlobalTempView": _NAMED,
    "createOrReplaceGlobalTempView": _NAMED,
    "createOrReplaceTempView": _NAMED,
    "createTempView": _NAMED,
    "crosstab": "use .groupBy('a').pivot('b').count()",
    "describe": "use .agg('count(x)', 'avg(x)', 'stddev(x)', 'min(x)', 'max(x)')",
    "dropDuplicatesWithinWatermark": "use .dropDuplicates(subset)",
    "executionInfo": "read run.progress while it runs, and samovar show afterwards",
    "exists": "use .join(other, on, 'left_semi'), or 'left_anti' for what does not exist",
    "explain": _PLAN,
    "first": "use .limit(1).sink('S')",
    "foreach": _OPERATOR,
    "foreachPartition": _OPERATOR,
    "freqItems": "use .groupBy('x').count(), and filter by the count",
    "groupingSets": "use .cube(...) or .rollup(...), and filter by grouping_id()",
    "head": "use .limit(n).sink('S')",
    "inputFiles": "read run.recording, which names every file with its epoch",
    "isEmpty": "use .limit(1).sink('S') and look whether run.result('S') has a row",
    "isLocal": "leave it out: a run goes where the session it is given goes",
    "isStreaming": "leave it out: a Frame is a batch, cut into epochs",
    "lateralJoin": "use .select(explode(...)), or .join with a condition",
    "localCheckpoint": _RECORDED,
    "melt": "use .selectExpr('id', \"stack(2, 'a', a, 'b', b) AS (variable, value)\")",
    "mergeInto": "use .join(other, on, 'outer') and .write",
    "metadataColumn": "use .withColumn('file', F.input_file_name()) right behind the source",
    "nearestByJoin": "use .join with a condition, and row_number() over a window to keep the nearest",
    "observe": "counters of every operator are in run.progress and in the recording",
    "pandas_api": "use .mapInPandas(function, schema), or run.result('S').to_pandas() after the run",
    "plot": "use .chart(...), or run.result('S').to_pandas().plot() after the run",
    "printSchema": "print frame.schema.treeString()",
    "rdd": "use .apply(YourOperator()), mapInArrow or mapInPandas",
    "registerTempTable": _NAMED,
    "repartitionById": "leave it out: epochs and Spark's adaptive execution choose the partitions",
    "repartitionByRange": "leave it out: epochs and Spark's adaptive execution choose the partitions",
    "sameSemantics": "use sv.diff.compare for results, sv.diff.check for programs",
    "sampleBy": "use .filter(...) and .sample(fraction) for each key, and union them",
    "scalar": "use .crossJoin(other), where the other has one row",
    "semanticHash": "use sv.diff.compare for results, sv.diff.check for programs",
    "show": "add .sink('S'), run the workflow, and print run.result('S')",
    "sortWithinPartitions": "use .orderBy(...); an operator with by= gets its rows in order without it",
    "sparkSession": "use sv.spark_session(), or the session that you hand to flow.run(spark=...)",
    "stat": "use .agg('corr(a, b)'), 'covar_samp(a, b)' or 'percentile_approx(x, 0.5)'",
    "storageLevel": _RECORDED,
    "summary": "use .agg('count(x)', 'avg(x)', 'percentile_approx(x, 0.5)', 'max(x)')",
    "tail": "use .orderBy with the order reversed and .limit(n)",
    "take": "use .limit(n).sink('S')",
    "to": "use .select(F.col('a').cast('int'), ...)",
    "toArrow": "add .sink('S'), run the workflow, and read run.result('S')",
    "toJSON": "use .selectExpr('to_json(struct(*)) AS value')",
    "toLocalIterator": "add .sink('S'), run the workflow, and go through run.result('S').to_batches()",
    "toPandas": "add .sink('S'), run the workflow, and read run.result('S').to_pandas()",
    "transpose": "use .groupBy(...).pivot(...).agg(...)",
    "unpivot": "use .selectExpr('id', \"stack(2, 'a', a, 'b', b) AS (variable, value)\")",
    "withMetadata": "use .withColumn('a', F.col('a').alias('a', metadata={...}))",
    "withWatermark": _STREAM,
    "writeStream": f"use .write.parquet(path) or .sink('S'); {_STREAM}",
    "writeTo": "use .write.parquet(path) or .sink('S')",
    "zip": "give both a number with row_number() over a window, and .join by it",
    "zipWithIndex": "use .withColumn('index', F.row_number().over(Window.orderBy(...)) - 1)",
}

_BY_KEY = "use frame.apply(YourOperator(), by='key') for Python code on each key; its finish() sees the end"

GROUPED: Mapping[str, str] = {
    "apply": _BY_KEY,
    "applyInArrow": _BY_KEY,
    "applyInPandas": _BY_KEY,
    "applyInPandasWithState": _BY_KEY,
    "cogroup": "use flow.apply(YourOperator(), left, right, by='key'): process() gets the port",
    "transformWithState": _BY_KEY,
    "transformWithStateInPandas": _BY_KEY,
}

READER: Mapping[str, str] = {
    "changes": "use flow.read.frame(spark.read.changes(...))",
    "jdbc": "use flow.read.sql(query, url='jdbc:...')",
    "xml": "use flow.read.format('xml').load(path)",
}

_FILES = "write files with .parquet(path), or use .sink('S') and save run.result('S') yourself"

WRITER: Mapping[str, str] = {
    "bucketBy": "use .partitionBy(columns)",
    "clusterBy": "use .partitionBy(columns)",
    "insertInto": _FILES,
    "jdbc": _FILES,
    "saveAsTable": _FILES,
    "sortBy": "sort the frame before: frame.orderBy(columns).write",
    "xml": _FILES,
}


class RefusesOtherNames:
    """Attributes that a class lacks raise UnsupportedMethod: with the hint of a table for PySpark's names, else with
    the nearest name of the class, else with `_otherwise`."""

    _subject: ClassVar[str]
    """How the message begins: "A workflow's reader has"."""
    _instead: ClassVar[Mapping[str, str]]
    _otherwise: ClassVar[str]

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_"):
            raise AttributeError(attribute)
        known = [name for name in dir(type(self)) if not name.startswith("_")]
        raise missing(self._subject, attribute, self._instead, known, self._otherwise)


def missing(
    subject: str, name: str, table: Mapping[str, str], known: Iterable[str], otherwise: str
) -> UnsupportedMethod:
    """The error for an unknown name; the hint is the table's, the nearest known name or `otherwise`."""
    hint = f"Instead, {table[name]}." if name in table else did_you_mean(name, known, otherwise)
    return UnsupportedMethod(f"{subject} no '{name}'.", hint=hint)
