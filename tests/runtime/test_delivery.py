"""What a task says reaches the driver: by a file where it sees the recording, else by its own exception."""

from __future__ import annotations

import base64
import pickle
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from samovar.runtime.exchange.delivery import Carried, carried_by, check_seen, deliver
from samovar.runtime.exchange.task import Task
from samovar.runtime.exchange.user_errors import Failure

FAILURE = Failure(
    "op", {"n": 1, "on": date(2026, 1, 31)}, "ValueError: no", "Traceback", hint="h", position=(0, 7), taken=3
)


def _task(folder: Path, *, sees: bool) -> Task:
    sign = folder / "log.jsonl"
    if sees:
        sign.touch()
    return Task(
        run="r",
        epoch=0,
        token="ab12",
        stages=(),
        positions=0,
        stateful=True,
        errors=str(folder / "errors"),
        sign=str(sign),
    )


def test_a_task_that_sees_the_recording_leaves_a_file(tmp_path: Path) -> None:
    task = _task(tmp_path, sees=True)
    deliver(task, FAILURE)
    check_seen(task)
    (file,) = (tmp_path / "errors").iterdir()
    assert pickle.loads(file.read_bytes()) == FAILURE


def test_a_failure_travels_in_an_exception_of_a_task_that_does_not(tmp_path: Path) -> None:
    with pytest.raises(Carried) as caught:
        deliver(_task(tmp_path, sees=False), FAILURE)
    assert list(tmp_path.iterdir()) == []
    spark = RuntimeError(f"Job aborted: Task 0 failed 4 times:\n  Traceback\n{caught.value}\n\tat org.apache")
    found = carried_by(spark, "ab12")
    assert isinstance(found, Failure)
    assert found.row == {"n": 1, "on": repr(date(2026, 1, 31))}
    assert (found.operator, found.error, found.position, found.taken) == ("op", "ValueError: no", (0, 7), 3)
    assert carried_by(spark, "cd34") is None  # of another attempt


@pytest.mark.parametrize(
    "row",
    [{"text": "x" * 100_000}, {"map": {(1, 2): Decimal("1.5")}}, {"n": float("nan")}, {"o": object()}],
    ids=["long", "keys", "nan", "object"],
)
def test_rows_of_any_kind_travel(tmp_path: Path, row: dict[str, object]) -> None:
    with pytest.raises(Carried) as caught:
        deliver(_task(tmp_path, sees=False), Failure("op", row, "e", ""))
    found = carried_by(caught.value, "ab12")
    assert isinstance(found, Failure)
    assert found.row is not None
    assert list(found.row) == list(row)
    assert len(str(caught.value)) < 40_000


def test_a_task_that_does_not_see_the_recording_does_not_end_well(tmp_path: Path) -> None:
    with pytest.raises(Carried) as caught:
        check_seen(_task(tmp_path, sees=False))
    assert isinstance(carried_by(caught.value, "ab12"), str)


def test_an_error_whose_text_looks_like_one_is_none() -> None:
    body = base64.b64encode(b"no json").decode()
    assert carried_by(ValueError(f"samovar-ab12:{body};"), "ab12") is None
    assert carried_by(ValueError("samovar-ab12:%%%;"), "ab12") is None
