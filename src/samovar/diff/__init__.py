"""Do two streams say the same, up to the order that matters?

    from samovar.diff import Matcher, keyed

    matcher = Matcher(depends=keyed("taxi"))
    matcher.push("left", {"taxi": "a", "at": 1})
    matcher.push("right", {"taxi": "a", "at": 1})
    print(matcher.close().explain())

Importing this package imports no pyspark.
"""

from __future__ import annotations

from samovar.diff.asserting import assert_equivalent
from samovar.diff.check import Checked, check
from samovar.diff.compare import compare
from samovar.diff.dependence import Dependence, independent, keyed, ordered, punctuated, synchronised
from samovar.diff.equality import Equality, accepts, equality
from samovar.diff.matcher import Matcher
from samovar.diff.monitor import Monitor, monitor
from samovar.diff.monitoring import Metrics
from samovar.diff.problems import (
    CheckpointProblem,
    DependenceProblem,
    DiffError,
    EqualityProblem,
    EventProblem,
    ProgramProblem,
    SchemasDiffer,
    SideProblem,
)
from samovar.diff.programs import on_frames, plain
from samovar.diff.rows import Rows, rows
from samovar.diff.shake import Shaken, shake
from samovar.diff.streams import match
from samovar.diff.tables import TableVerdict
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
