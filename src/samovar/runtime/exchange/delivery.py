"""How a task's failure reaches the driver: as a file in the attempt's folder, or in the text of the task's exception.

A file ends the task without failing it: no retries by Spark, no Java stack. But a file reaches the driver only where
both see the same folder. So a worker looks for a file of the driver's (`Task.sign`); if it is not there, the task fails
with an exception whose text carries the message, as JSON, marked with the name of the attempt: data that happens to be
part of an error's text cannot be taken for a message. The same look at a task's end, one `stat`, keeps a worker whose
state files the driver would never see from ending as if all were well, also a worker that joined the cluster later.
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
    """Fails a task; the driver reads its text by `carried_by`."""


def deliver(task: Task, failure: Failure) -> None:
    """Report a failure as a file, if the driver will see it; else raise it."""
    if _sees(task):
        report(Path(task.errors), failure)
        return
    try:
        text = _text({"failure": vars(failure)})
    except (TypeError, ValueError):  # for example a map whose keys are not strings
        text = ""
    if not text or len(text) > _LONGEST:
        row = None if failure.row is None else {k: shown(v) for k, v in failure.row.items()}
        text = _text({"failure": vars(replace(failure, row=row))})
    raise _carried(task, text)


def check_seen(task: Task) -> None:
    """Raise when the driver does not see the task's files."""
    if not _sees(task):
        raise _carried(task, _text({"host": socket.gethostname()}))


def carried_by(error: BaseException, attempt: str) -> Failure | str | None:
    """The message in an exception of Spark's: a failure, or the host that does not see the recording; None: neither."""
    match = re.search(rf"samovar-{re.escape(attempt)}:([A-Za-z0-9+/=]+);", str(error))
    if match is None:
        return None
    try:
        message = json.loads(base64.b64decode(match.group(1)))
    except (binascii.Error, ValueError):
        return None
    if "failure" not in message:
        return str(message.get("host", ""))
    fields = message["failure"]
    return Failure(**{**fields, "position": tuple(fields["position"])})


def _sees(task: Task) -> bool:
    return not task.sign or os.path.exists(task.sign)


def _text(message: object) -> str:
    return json.dumps(message, default=repr)  # types that JSON lacks (times, decimals) are for people to read


def _carried(task: Task, text: str) -> Carried:
    return Carried(f"samovar-{task.token}:{base64.b64encode(text.encode()).decode()};")
