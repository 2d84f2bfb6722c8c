"""Do two streams hold the same events, up to the order that matters?

    from samovar.diff import Matcher, keyed

    matcher = Matcher(depends=keyed("taxi"))
    matcher.push("left", {"taxi": "a", "at": 1})
    matcher.push("right", {"taxi": "a", "at": 1})
    print(matcher.close().explain())

Importing this package imports no pyspark.
"""

from __future__ import annotations

from samovar.diff.assertions import assert_equivalent
from samovar.diff.check import Checked, check
from samovar.diff.compare import compare
from samovar.diff.comparison_errors import (
    CheckpointProblem,
    DependenceProblem,
    DiffError,
    EqualityProblem,
    EventProblem,
    ProgramProblem,
    SchemasDiffer,
    SideProblem,
)
from samovar.diff.dependence import Dependence, independent, keyed, ordered, punctuated, synchronised
from samovar.diff.equality import Equality, accepts, equality
from samovar.diff.match import match
from samovar.diff.matcher.matcher import Matcher
from samovar.diff.monitor import Monitor, monitor
from samovar.diff.programs.generated_rows import Rows, rows
from samovar.diff.programs.program import on_frames, plain
from samovar.diff.shake import Shaken, shake
from samovar.diff.streams.stream_comparison import Metrics
from samovar.diff.tables.table_verdict import TableVerdict
from samovar.diff.verdict import Verdict

__all__ = [
    "Checked",
    "CheckpointProblem",
    "Dependence",
    "DependenceProblem",
    "DiffError",
    "Equality",
    "EqualityProblem",
    "EventProblem",
    "Matcher",
    "Metrics",
    "Monitor",
    "ProgramProblem",
    "Rows",
    "SchemasDiffer",
    "Shaken",
    "SideProblem",
    "TableVerdict",
    "Verdict",
    "accepts",
    "assert_equivalent",
    "check",
    "compare",
    "equality",
    "independent",
    "keyed",
    "match",
    "monitor",
    "on_frames",
    "ordered",
    "plain",
    "punctuated",
    "rows",
    "shake",
    "synchronised",
]
