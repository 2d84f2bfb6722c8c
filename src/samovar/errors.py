"""The errors that users of Samovar meet.

    SamovarError
    ├── EnvironmentProblem        Java, Python or Spark is not as it must be
    ├── WorkflowError             the workflow cannot be built or does not fit together
    │   ├── DuplicateName
    │   ├── UnknownName
    │   ├── CyclicWorkflow
    │   ├── UnconnectedPort
    │   ├── UnsupportedMethod     also an AttributeError
    │   ├── NotAValue             a plan used as if it held its rows; also a TypeError
    │   ├── SchemaProblem         unknown column or function, types that do not fit
    │   └── DocumentError         a YAML/JSON workflow document that cannot be read
    ├── SourceError               an input is missing, empty or not as it was
    │   └── SourceChanged
    ├── RunError                  a run could not go on
    │   ├── OperatorFailed        a Python operator raised
    │   ├── OutputMismatch        a Python operator's output row does not fit its `output`
    │   ├── ExpressionFailed      an expression failed inside Spark
    │   ├── CountsDiffer          the rows of an epoch do not add up, so it is not committed
    │   ├── StorageProblem        the disk is full or cannot be written
    │   │   └── StorageNotShared  hosts of a cluster do not see the same folders
    │   └── RunStopped            somebody stopped the run
    ├── ControlError              a running job that cannot be acted on in this way
    │   ├── CommandRefused        not possible in the state the run is in; `story` lists what led there
    │   └── ChannelProblem        a connection between coordinator and worker that cannot be used
    ├── TimeTravelError           a moment, a step or a question that the past cannot answer
    │   └── ReplayDiffers         computed again, an epoch gave something else
    ├── RecordingError
    │   ├── RecordingNotFound
    │   ├── RecordingTooNew
    │   ├── RecordingCorrupt
    │   └── RecordingInUse
    └── WorkspaceError            the workbench's folder, or a request to it, is not as it must be
        ├── NotInWorkspace        no such workflow, file, version, run or moment
        └── OutsideWorkspace      a path that leads out of the workspace

    SamovarWarning                something that is allowed and seldom intended
    └── NoEffect                  a method of PySpark's that changes nothing here

Two families are defined where they are raised: `DiffError` and seven more in samovar/diff/comparison_errors.py, and
TaskAbandoned, a ControlError, in samovar/control/agent.py. Arguments of the wrong type raise TypeError or ValueError,
as elsewhere in Python. Exceptions that one function of Samovar raises and another catches (an abandoned epoch, SQL
text that cannot be scanned) are defined beside the functions that raise them; users do not meet them.

Messages state what was expected, what was found and what to do about it (`hint`). Errors carry fields, so that a caller
need not parse text.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from samovar.text import row_text

__all__ = [
    "ChannelProblem",
    "CommandRefused",
    "ControlError",
    "CountsDiffer",
    "CyclicWorkflow",
    "DocumentError",
    "DuplicateName",
    "EnvironmentProblem",
    "ExpressionFailed",
    "NoEffect",
    "NotAValue",
    "NotInWorkspace",
    "OperatorFailed",
    "OutputMismatch",
    "OutsideWorkspace",
    "RecordingCorrupt",
    "RecordingError",
    "RecordingInUse",
    "RecordingNotFound",
    "RecordingTooNew",
    "ReplayDiffers",
    "RunError",
    "RunStopped",
    "SamovarError",
    "SamovarWarning",
    "SchemaProblem",
    "SourceChanged",
    "SourceError",
    "StorageNotShared",
    "StorageProblem",
    "TimeTravelError",
    "UnconnectedPort",
    "UnknownName",
    "UnsupportedMethod",
    "WorkflowError",
    "WorkspaceError",
    "did_you_mean",
    "nearest",
]


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name most like `name` (case aside), or None when nothing is near."""
    by_lower = {k.lower(): k for k in known}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[close[0]] if close else None


def did_you_mean(name: object, known: Iterable[str], otherwise: str | None = None) -> str | None:
    """The hint for a name that is not known: the nearest known name, or `otherwise` when none is near."""
    close = nearest(str(name), known)
    return f"Did you mean '{close}'?" if close else otherwise


class SamovarError(Exception):
    """Base of all. `hint` tells what to do; `operator` names the operator concerned, if there is one."""

    def __init__(self, message: str, *, hint: str | None = None, operator: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.operator = operator

    @property
    def text(self) -> str:
        """The message, with the operator in front where the message does not name it; without the hint."""
        named = not self.operator or f"'{self.operator}'" in self.message
        return self.message if named else f"Operator '{self.operator}': {self.message}"

    def __str__(self) -> str:
        return f"{self.text}\nHint: {self.hint}" if self.hint else self.text


class SamovarWarning(UserWarning):
    """Something that is allowed and seldom intended, such as an operator that gives no rows."""


class EnvironmentProblem(SamovarError):
    """Java, Python, Spark or the machine is not as it must be; the hint tells what to install or set."""


class WorkflowError(SamovarError):
    """The workflow cannot be built, or does not fit together."""


class DuplicateName(WorkflowError):
    """Two operators of one workflow would carry the same name."""


class UnknownName(WorkflowError):
    """A name that no operator of the workflow carries."""

    def __init__(self, name: str, known: Iterable[str], *, what: str = "an operator of the workflow") -> None:
        known = sorted(known)
        listed = ", ".join(known[:12]) + (", ..." if len(known) > 12 else "")
        super().__init__(
            f"Expected {what}, got '{name}'.", hint=did_you_mean(name, known, f"Known: {listed or 'none'}.")
        )
        self.name = name


class CyclicWorkflow(WorkflowError):
    """Operators that feed each other in a circle."""


class UnconnectedPort(WorkflowError):
    """An operator has fewer or more inputs than it has ports."""


class UnsupportedMethod(WorkflowError, AttributeError):
    """A DataFrame method a Frame does not have; the hint names what to use instead."""


class NotAValue(WorkflowError, TypeError):
    """A Frame was used as a truth value, gone through or measured, as if its rows were there."""


class NoEffect(SamovarWarning):
    """A method of PySpark's was called that changes nothing on a Frame (`repartition`, `cache`, `hint`)."""


class SchemaProblem(WorkflowError):
    """Spark could not make sense of an operator's columns, functions or types."""


class DocumentError(WorkflowError):
    """A workflow document that cannot be read."""


class SourceError(SamovarError):
    """An input is missing, empty or unreadable."""


class SourceChanged(SourceError):
    """An input is not what it was when the run read it."""


class RunError(SamovarError):
    """A run could not go on."""


class OperatorFailed(RunError):
    """A Python operator raised: which, on which tuple, where in its code. `row` is None at the end of its input."""

    def __init__(
        self,
        operator: str,
        *,
        row: Mapping[str, Any] | None,
        error: str,
        traceback: str,
        epoch: int,
        hint: str | None = None,
        during: str = "the end of its input",
    ) -> None:
        shown = during if row is None else row_text(row)
        where = f"\n\n{traceback.rstrip()}" if traceback.strip() else ""
        super().__init__(
            f"Operator '{operator}' {self._verb} {error}\nwhile it processed {shown} (epoch {epoch}).{where}",
            operator=operator,
            hint=hint,
        )
        self.row = row
        self.error = error
        self.traceback = traceback
        self.epoch = epoch

    _verb = "raised"


class OutputMismatch(OperatorFailed):
    """A Python operator yielded a row that does not fit its declared `output`."""

    _verb = "gave an output row that does not fit its `output`:"


class ExpressionFailed(RunError):
    """An expression failed inside Spark. `row` is one it fails on; for a join a mapping from side to row."""

    def __init__(
        self,
        operator: str,
        *,
        error: str,
        row: Mapping[str, Any] | None,
        epoch: int,
        hint: str | None = None,
        note: str = "",
        traceback: str = "",
    ) -> None:
        shown = f"\nThe row: {row_text(row)}" if row is not None else ""
        more = f"\n{note}" if note else ""
        where = f"\n\n{traceback.rstrip()}" if traceback.strip() else ""
        super().__init__(
            f"Operator '{operator}' failed in epoch {epoch}: {error}{shown}{more}{where}",
            operator=operator,
            hint=hint,
        )
        self.error = error
        self.row = row
        self.epoch = epoch
        self.traceback = traceback


class CountsDiffer(RunError):
    """The rows of an epoch do not add up: `got` where `expected` were counted elsewhere. The epoch is not committed."""

    def __init__(self, message: str, *, operator: str, expected: int, got: int, hint: str) -> None:
        super().__init__(message, operator=operator, hint=hint)
        self.expected = expected
        self.got = got


class StorageProblem(RunError):
    """The recording or a result could not be written."""


class StorageNotShared(StorageProblem):
    """Some hosts of a cluster do not see a folder as the driver does. `hosts` is empty when they are not known."""

    def __init__(
        self,
        message: str,
        *,
        folder: str,
        hosts: Iterable[str] = (),
        hint: str | None = None,
        operator: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint, operator=operator)
        self.folder = folder
        self.hosts = tuple(hosts)


class RunStopped(RunError):
    """The run was stopped before its end; what it committed is kept and can be resumed."""


class ControlError(SamovarError):
    """A request to a running job could not be carried out."""


class CommandRefused(ControlError):
    """A command, or a report, that does not fit the state a run is in. `story` has the last events, in words."""

    def __init__(
        self, message: str, *, state: str, story: Iterable[str] = (), hint: str | None = None
    ) -> None:
        self.state = state
        self.story = tuple(story)
        events = f" What led there: {'; '.join(self.story)}." if self.story else ""
        super().__init__(f"{message}{events}", hint=hint)


class ChannelProblem(ControlError):
    """A connection between coordinator and worker that cannot be trusted or is gone."""


class TimeTravelError(SamovarError):
    """A moment that does not exist, a step that is not possible, a question the recording cannot answer."""


class ReplayDiffers(TimeTravelError):
    """An epoch that was computed again gave other rows than in the run: something in it is not deterministic."""


class RecordingError(SamovarError):
    """A recording cannot be used in the requested way."""


class RecordingNotFound(RecordingError):
    """No recording is there."""


class RecordingTooNew(RecordingError):
    """The recording was written by a newer Samovar."""


class RecordingCorrupt(RecordingError):
    """The recording's bytes do not match their checksums; the part before stays usable."""


class RecordingInUse(RecordingError):
    """Another process writes this recording now."""


class WorkspaceError(SamovarError):
    """The workbench's folder, or a request to it, is not as it must be."""


class NotInWorkspace(WorkspaceError):
    """A workflow, file, version, run or moment that is not there."""


class OutsideWorkspace(WorkspaceError):
    """A path that leads out of the workspace."""
