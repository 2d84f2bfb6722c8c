"""Whether the rows of an epoch add up, looked at before it is committed. Costs no job: the numbers are there already.

Each number is counted in one place (compile/counters.py) and most have a second one that must agree: what an operator
gave by its own count, and what the next one took by its own, with nothing between them that drops or adds rows. Files
that a worker wrote where the driver does not look, that somebody removed, or an input that was replaced show as a
difference. So an epoch with rows missing is not committed, whatever the reason.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from samovar.compile.counters import Measured
from samovar.compile.plan import Plan
from samovar.errors import CountsDiffer

if TYPE_CHECKING:
    from samovar.runtime.epochs.epoch import Epoch

__all__ = ["EdgeImbalance", "check_balance", "first_difference"]


@dataclass(frozen=True)
class EdgeImbalance:
    """An edge on which rows do not add up."""

    giver: str
    gave: int
    taker: str
    took: int


def check_balance(epoch: Epoch) -> None:
    """Raise CountsDiffer when rows of the epoch are missing, or are too many."""
    where = f"Epoch {epoch.number} does not add up and is not committed: "
    hint = (
        "Either an input was changed during the run, or files of the epoch were removed, or written where the driver "
        f"does not see them: all hosts must share {epoch.context.recording.path}. Committed epochs are kept: resume."
    )
    found = first_difference(epoch.plan, epoch.counts.measured, epoch.counts.fixed)
    if found is not None:
        raise CountsDiffer(
            f"{where}'{found.giver}' gave {found.gave:,} rows, of which '{found.taker}' took {found.took:,}.",
            operator=found.taker,
            expected=found.gave,
            got=found.took,
            hint=hint,
        )
    for name, (expected, got) in epoch.files_written().items():
        if got != expected:
            raise CountsDiffer(
                f"{where}{expected:,} rows were written for '{name}', and its files hold {got:,}.",
                operator=name,
                expected=expected,
                got=got,
                hint=hint,
            )


def first_difference(plan: Plan, measured: Measured, fixed: Collection[str] = ()) -> EdgeImbalance | None:
    """The first edge whose two ends were counted differently. `fixed`: operators whose rows a person changed."""
    for taker, op in plan.graph.ops.items():
        for port, giver in enumerate(op.inputs):
            took, gave = measured.get((taker, port)), _given(plan, measured, fixed, giver)
            if taker not in fixed and took is not None and gave is not None and gave != took:
                return EdgeImbalance(giver, gave, taker, took)
    return None


def _given(plan: Plan, measured: Measured, fixed: Collection[str], name: str) -> int | None:
    """What an operator gave: by a count of its own, or by those before it if it neither drops nor adds rows."""
    if name in fixed:
        return None
    if (name, None) in measured:
        return measured[name, None]
    if plan.shape(name) not in ("one", "union"):
        return None
    given = [_given(plan, measured, fixed, up) for up in plan.graph.ops[name].inputs]
    return None if None in given else sum(n for n in given if n is not None)
