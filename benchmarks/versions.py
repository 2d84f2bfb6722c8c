"""Two versions of Samovar against each other: W1 to W5 of an older commit and of this tree, interleaved.

Each version runs in a process of its own with its own Spark session, from its own tree; they take turns, and only one
works at a time. A round's ratio is this tree's time over the older commit's, so that a change in the machine's mood
hits both; the first rounds warm up and are dropped. Results of the two are compared in every round.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.data import Data, default_root
from benchmarks.overhead import Spread
from benchmarks.session import machine
from benchmarks.workflows import WORKFLOWS

__all__ = ["main"]

_ROOT = Path(__file__).resolve().parent.parent

#: What a version's process runs. It reads the name of a workflow a line and answers with seconds and a digest of the
#: result, whose rows are sorted first since their order may differ. It uses only names that old and new trees share.
_CHILD = """
import hashlib, json, sys, tempfile, time
from pathlib import Path
from benchmarks.data import Data
from benchmarks.session import session
from benchmarks.workflows import WORKFLOWS

scale, folder, memory = float(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
answers = sys.stdout
sys.stdout = sys.stderr
spark, data = session(memory=memory), Data(scale, folder)
print("ready", file=answers, flush=True)
for line in sys.stdin:
    with tempfile.TemporaryDirectory(prefix="samovar-bench-", ignore_cleanup_errors=True) as scratch:
        start = time.perf_counter()
        run = WORKFLOWS[line.strip()].samovar(data).run(spark=spark, record=scratch, progress=False)
        seconds = time.perf_counter() - start
        rows = sorted(repr(sorted((k, f"{v:.9g}" if isinstance(v, float) else v) for k, v in r.items()))
                      for r in run.result("S").to_pylist())
    digest = hashlib.sha256("\\n".join(rows).encode()).hexdigest()
    print(json.dumps({"seconds": seconds, "rows": len(rows), "digest": digest}), file=answers, flush=True)
spark.stop()
"""


class _Version:
    """A process that runs workflows with the code of one tree."""

    def __init__(self, tree: Path, options: argparse.Namespace) -> None:
        paths = os.pathsep.join([str(tree / "src"), str(tree)])
        arguments = [str(options.scale), str(options.data), options.memory]
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _CHILD, *arguments],
            cwd=tree,
            env={**os.environ, "PYTHONPATH": paths},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._answer()

    def run(self, workflow: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        print(workflow, file=self._process.stdin, flush=True)
        answer: dict[str, Any] = json.loads(self._answer())
        return answer

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"Expected an answer of a version, but it ended with {self._process.wait()}.")
        return line


@contextmanager
def _tree_of(commit: str) -> Iterator[Path]:
    """The files of a commit, in a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="samovar-version-") as folder:
        archive = subprocess.run(
            ["git", "archive", commit], cwd=_ROOT, capture_output=True, check=True
        ).stdout
        subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
        yield Path(folder)


def main(argv: Sequence[str] | None = None) -> int:
    """``python -m benchmarks versions COMMIT``; exits with 1 when results differ."""
    options = _parser().parse_args(argv)
    names = [name for name in options.workflows.split(",") if name in WORKFLOWS]
    data = Data(options.scale, options.data)
    data.ensure(name for workflow in names for name in WORKFLOWS[workflow].inputs)
    errors = Console(stderr=True)
    times: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in names}
    with _tree_of(options.commit) as tree, errors.status("starting") as status:
        versions = (_Version(tree, options), _Version(_ROOT, options))
        try:
            for name in names:
                for number in range(1 - options.warmups, options.runs + 1):
                    answers: dict[int, dict[str, Any]] = {}
                    for side in (0, 1) if number % 2 else (1, 0):
                        which = "this tree" if side else options.commit
                        status.update(f"{name} of {which}, round {number} of {options.runs}")
                        answers[side] = versions[side].run(name)
                    if answers[0]["digest"] != answers[1]["digest"]:
                        errors.print(f"[red]{name}: the two versions' results differ[/red] {answers}")
                        return 1
                    if number > 0:
                        for side in (0, 1):
                            times[name][side].append(answers[side]["seconds"])
        finally:
            for version in versions:
                version.close()
    _report(times, options)
    return 0


def _report(times: dict[str, tuple[list[float], list[float]]], options: argparse.Namespace) -> None:
    console = Console() if sys.stdout.isatty() else Console(width=120)
    table = Table(title=f"This tree against {options.commit}, scale {options.scale:g}, {options.runs} rounds")
    for heading in ("workflow", "older s", "this s", "ratio of medians", "ratios of rounds (quartiles)"):
        table.add_column(heading, justify="left" if heading == "workflow" else "right")
    document: dict[str, Any] = {}
    for name, (older, newer) in times.items():
        ratios = Spread.of([b / a for a, b in zip(older, newer, strict=True)])
        old, new = Spread.of(older), Spread.of(newer)
        document[name] = {
            "older": older,
            "newer": newer,
            "ratio": new.median / old.median,
            "rounds": ratios.median,
        }
        table.add_row(
            name,
            f"{old.median:.2f}",
            f"{new.median:.2f}",
            f"{new.median / old.median:.3f}",
            f"{ratios.median:.3f} ({ratios.q1:.3f}-{ratios.q3:.3f})",
        )
    console.print(table)
    if options.json:
        content = {
            "benchmark": "versions",
            "commit": options.commit,
            "machine": machine(),
            "workflows": document,
        }
        options.json.write_text(json.dumps(content, indent=2) + "\n")


def _parser() -> argparse.ArgumentParser:
    summary = (__doc__ or "").split("\n\n")[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks versions", description=summary)
    add = parser.add_argument
    add("commit", help="the older version: a commit, branch or tag of this repository")
    add("--scale", type=float, default=1.0, help="1 is TPC-H SF1, 1 M tweets, 945 K reviews (default: 1)")
    add("--workflows", default=",".join(WORKFLOWS), help="such as w1,w3 (default: all)")
    add("--runs", type=int, default=7, help="timed rounds after the warm-up (default: 7)")
    add("--warmups", type=int, default=2, help="rounds that are dropped (default: 2)")
    add("--json", type=Path, metavar="FILE", help="write every sample and the machine's description")
    add("--data", type=Path, metavar="DIR", default=default_root(), help="where data sets are cached")
    add("--memory", default="4g", help="each driver's memory (default: 4g)")
    return parser
