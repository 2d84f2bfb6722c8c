"""What a task has done before its first tuple, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_A_TASK = """
import sys
import pyarrow as pa
from samovar.runtime.worker.task_control import attend
from samovar.runtime.exchange.task import Task

task = Task("run", 0, "a", (), 0, False, sys.argv[1], control=(("127.0.0.1", 9), "run", b"secret"))
control = attend(task, None)
seen = []

def work(batches):
    for batch in batches:
        seen.append("pandas" in sys.modules)
        yield batch

assert "pandas" not in sys.modules
list(control.run(iter([pa.RecordBatch.from_arrays([], names=[])]), work))
control.end()
print(seen)
"""


def test_pandas_is_looked_for_before_the_first_tuple(tmp_path: Path) -> None:
    """PyArrow imports it at its first array: between tuples, a pause would wait for that."""
    done = subprocess.run(
        [sys.executable, "-c", _A_TASK, str(tmp_path)], capture_output=True, text=True, check=False
    )

    assert done.stdout.strip() == "[True]", done.stderr
