"""Do two streams say the same, up to the order that matters?

    from samovar.diff import Matcher, keyed

    matcher = Matcher(depends=keyed("taxi"))
    matcher.push("left", {"taxi": "a", "at": 1})
    matcher.push("right", {"taxi": "a", "at": 1})
    print(matcher.close().explain())

Importing this package imports no pyspark.
"""

from __future__ import annotations

from samovar.diff.dependence import Dependence, independent, keyed, ordered, punctuated, synchronised
from samovar.diff.equality import Equality, accepts, equality
from samovar.diff.matcher import Matcher
from samovar.diff.problems import (
    CheckpointProblem,
    DependenceProblem,
    DiffError,
    EqualityProblem,
    EventProblem,
)
from samovar.diff.verdict import Verdict

__all__ = [
    "CheckpointProblem",
    "Dependence",
    "DependenceProblem",
    "DiffError",
    "Equality",
    "EqualityProblem",
    "EventProblem",
    "Matcher",
    "Verdict",
    "accepts",
    "equality",
    "independent",
    "keyed",
    "ordered",
    "punctuated",
    "synchronised",
]
