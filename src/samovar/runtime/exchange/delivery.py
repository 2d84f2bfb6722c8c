"""How what a task has to say reaches the driver: by a file in the attempt's folder, or by the task's own exception.

A file ends the task without failing it: no retries by Spark, no Java stack. But a file reaches the driver only where
both see the same folder. So a worker looks for a file of the driver's (`Task.sign`); if it is not there, the task fails
with an exception whose text carries the message, as JSON, marked with the name of the attempt: data that happens to be
part of an error's text cannot be taken for one. The same look at a task's end, one `stat`, keeps a worker whose state
files nobody would find from ending as if all were well, also one that joined the cluster later.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
import socket
from dataclasses import replace
from pathlib import Path

from samovar.runtime.exchange.task import Task
from samovar.runtime.exchange.user_errors import Failure, report
from samovar.text import shown

__all__ = ["Carried", "carried_by", "check_seen", "deliver"]

_LONGEST = 20_000
"""Characters of a message. A row that makes it longer travels as short texts: Spark logs it, and repeats it."""


class Carried(Exception):
    """Fails a task; its text is for `carried_by`, in the driver."""


def deliver(task: Task, failure: Failure) -> None:
    """Report a failure: as a file if the driver will see it, else by raising."""
    if _sees(task):
        report(Path(task.errors), failure)
        return
    try:
        text = _text({"failure": vars(failure)})
    except (TypeError, ValueError):  # a map whose keys are no texts, say
        text = ""
    if not text or len(text) > _LONGEST:
        row = None if failure.row is None else {k: shown(v) for k, v in failure.row.items()}
        text = _text({"failure": vars(replace(failure, row=row))})
    raise _carried(task, text)


def check_seen(task: Task) -> None:
    """Raise when what the task has left is not seen by the driver."""
    if not _sees(task):
        raise _carried(task, _text({"host": socket.gethostname()}))


def carried_by(error: BaseException, attempt: str) -> Failure | str | None:
    """What an exception of Spark's carries of an attempt: a failure, or the host that does not see the recording."""
    found = re.search(rf"samovar-{re.escape(attempt)}:([A-Za-z0-9+/=]+);", str(error))
    if found is None:
        return None
    try:
        said = json.loads(base64.b64decode(found.group(1)))
    except (binascii.Error, ValueError):
        return None
    if "failure" not in said:
        return str(said.get("host", ""))
    fields = said["failure"]
    return Failure(**{**fields, "position": tuple(fields["position"])})


def _sees(task: Task) -> bool:
    return not task.sign or os.path.exists(task.sign)


def _text(said: object) -> str:
    return json.dumps(said, default=repr)  # what JSON does not know (times, decimals) is for people to read


def _carried(task: Task, text: str) -> Carried:
    return Carried(f"samovar-{task.token}:{base64.b64encode(text.encode()).decode()};")
