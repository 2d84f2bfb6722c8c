"""An epoch in which user code failed: the error to show, and what is left of it for whoever looks at the failure.

The log gets where it failed. States that Python operators kept at marks before that stay in the folder of the attempt,
so that looking need not start at the epoch's beginning; everything else of the attempt is removed. The folder goes when
the run is resumed.
"""

from __future__ import annotations

import pickle
import shutil
import time
from typing import TYPE_CHECKING

from samovar.errors import OperatorFailed, OutputMismatch
from samovar.record.log import EpochFailed
from samovar.record.state_files import is_mark
from samovar.runtime.exchange.code_switch import read_switch_records
from samovar.runtime.exchange.delivery import carried_by
from samovar.runtime.exchange.task_signs import EpochAbandoned, has_sign
from samovar.runtime.exchange.user_errors import Failure
from samovar.runtime.spark.shared_storage import not_seen

if TYPE_CHECKING:
    from samovar.runtime.epochs.attempt import Attempt
    from samovar.runtime.epochs.run_context import RunContext

__all__ = ["failed_fact", "raise_carried", "raise_failures"]


def raise_failures(attempt: Attempt) -> None:
    """Raise what a worker has reported of user code, or that a task was given up."""
    folder = attempt.folder / "errors"
    if not folder.is_dir():
        return
    for path in sorted(folder.glob("*.failure")):
        raise _to_raise(attempt, pickle.loads(path.read_bytes()))
    if has_sign(folder, "abandoned"):
        raise EpochAbandoned(f"A task of epoch {attempt.number} was given up.")


def raise_carried(attempt: Attempt, error: BaseException) -> None:
    """Raise what a task that does not see the recording has put into its exception, which failed a job."""
    carried = carried_by(error, attempt.name)
    if isinstance(carried, Failure):
        raise _to_raise(attempt, carried)
    if carried is not None:
        raise not_seen(carried, str(attempt.context.recording.path))


def _to_raise(attempt: Attempt, failure: Failure) -> OperatorFailed:
    present = attempt.context.progress.present
    if present is not None:
        present.failed = (attempt.name, failure)
    kind = OutputMismatch if failure.mismatch else OperatorFailed
    return kind(
        failure.operator,
        row=failure.row,
        error=failure.error,
        traceback=failure.traceback,
        epoch=attempt.number,
        during=failure.during,
        hint=failure.hint or _what_now(attempt.number, failure.operator),
    )


def _what_now(epoch: int, operator: str) -> str:
    if not epoch:
        return f"Mend '{operator}' and run again."
    return f"Mend '{operator}' and run again; or go on after epoch {epoch - 1} with past.resume(flow=...)."


def failed_fact(context: RunContext) -> EpochFailed | None:
    """What there is to know of the epoch that failed; None when none was begun."""
    present, plan = context.progress.present, context.plan
    if present is None:
        return None
    covers = present.covers
    attempt, failure = present.failed or ("", None)
    head = next((c[0] for c in plan.chains.values() if failure is not None and failure.operator in c), None)
    alone = head is not None and plan.buckets[head] == 1
    kept = failure is not None and bool(covers.marks) and _keep_marks(context, attempt)
    return EpochFailed(
        at=time.time(),
        epoch=len(context.history.epochs),
        level=covers.low,
        levels=covers.high - covers.low + 1,
        units={n: r for n, r in covers.units.items() if r[0] != r[1]},
        first=covers.first,
        last=covers.last,
        operator=failure.operator if failure is not None else "",
        position=failure.position if failure is not None else (),
        taken=failure.taken if failure is not None and alone else 0,
        attempt=attempt if kept else "",
        marks=covers.marks if kept else (),
    )


def _keep_marks(context: RunContext, attempt: str) -> bool:
    """Whether an attempt left states at marks that can be used; all else is removed from its folder."""
    folder = context.recording.attempt_folder(len(context.history.epochs), attempt)
    states = folder / "state"
    files = [p for p in states.glob("*/*") if p.is_file()] if not read_switch_records(folder) else []
    if not any(map(is_mark, files)):
        return False
    for file in files:
        if not is_mark(file):
            file.unlink()
    for other in folder.iterdir():
        if other != states:
            shutil.rmtree(other, ignore_errors=True)
    context.recording.sealed(folder)  # the log will name it
    return True
