"""Tags on Spark jobs, so that another thread can cancel just these.

`SparkSession.addTag` keeps tags by thread: `interruptTag` in another thread does not see them. The context's tags are
seen by all threads; a Connect session has no context, and its tags are those of all threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

__all__ = ["cancel_tagged", "tagged"]


@contextmanager
def tagged(spark: SparkSession, tag: str) -> Iterator[None]:
    """Tag the jobs that this thread starts."""
    context = getattr(spark, "sparkContext", None)
    if context is None:
        spark.addTag(tag)
    else:
        context.addJobTag(tag)
    try:
        yield
    finally:
        if context is None:
            spark.removeTag(tag)
        else:
            context.removeJobTag(tag)


def cancel_tagged(spark: SparkSession, tag: str) -> None:
    """Cancel the jobs with a tag, whichever thread started them."""
    context = getattr(spark, "sparkContext", None)
    if context is None:
        spark.interruptTag(tag)
    else:
        context.cancelJobsWithTag(tag)
