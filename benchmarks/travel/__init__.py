"""Time travel, measured: step options, jumps, landings, checkpoints, interactions, large states, bug hunts, forks.

Each part is one experiment; ``--only steps,jumps`` chooses some. ``--workflows w1,w2`` chooses those that landings look
at, and ``--scale`` how many rows they have. Every part gives rows of one table, all of them go
into the JSON file. Times are wall times in one session on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.data import Data, default_root
from benchmarks.session import machine, session
from benchmarks.travel.checkpoints import checkpoints
from benchmarks.travel.forks import forks
from benchmarks.travel.hunts import hunts
from benchmarks.travel.interactions import interactions
from benchmarks.travel.jumps import jumps
from benchmarks.travel.landings import landings
from benchmarks.travel.setting import Row, Setting
from benchmarks.travel.states import states
from benchmarks.travel.steps import steps
from benchmarks.workflows import WORKFLOWS

__all__ = ["main"]

PARTS: dict[str, Callable[[Setting], list[Row]]] = {
    "steps": steps,
    "jumps": jumps,
    "landings": landings,
    "checkpoints": checkpoints,
    "interactions": interactions,
    "states": states,
    "hunts": hunts,
    "forks": forks,
}


def main(argv: Sequence[str] | None = None) -> int:
    """``python -m benchmarks travel``."""
    options = _parser().parse_args(argv)
    console = Console() if sys.stdout.isatty() else Console(width=160)
    spark = session(memory=options.memory)
    measured: dict[str, list[Row]] = {}
    try:
        with (
            tempfile.TemporaryDirectory(prefix="samovar-bench-", ignore_cleanup_errors=True) as scratch,
            Console(stderr=True).status("starting") as status,
        ):
            data = Data(options.scale, options.data)
            for name in options.only:
                setting = Setting(
                    spark, data, Path(scratch) / name, options.runs, status.update, options.workflows
                )
                measured[name] = PARTS[name](setting)
                console.print(_table(name, measured[name]))
    finally:
        spark.stop()
        if options.json and measured:
            document = {"benchmark": "travel", "machine": machine(), "scale": options.scale, **measured}
            options.json.write_text(json.dumps(document, indent=2) + "\n")
    return 0


def _table(name: str, rows: Sequence[Row]) -> Table:
    table = Table(title=f"{name}: {(PARTS[name].__doc__ or '').splitlines()[0]}")
    headings = list(dict.fromkeys(column for row in rows for column in row))
    for heading in headings:
        table.add_column(heading, justify="left" if heading == headings[0] else "right")
    for row in rows:
        table.add_row(*(_shown(row.get(heading)) for heading in headings))
    return table


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks travel", description=(__doc__ or "").split("\n\n")[0]
    )
    add = parser.add_argument
    add("--only", type=_parts, default=",".join(PARTS), help=f"some of {', '.join(PARTS)} (default: all)")
    add("--workflows", type=_workflows, default=",".join(WORKFLOWS), help="of landings (default: all)")
    add("--scale", type=float, default=1.0, help="1 is TPC-H SF1, 1 M tweets, 945 K reviews (default: 1)")
    add("--runs", type=int, default=5, help="rounds of what is compared with something (default: 5)")
    add("--json", type=Path, metavar="FILE", help="write all rows and the machine's description")
    add("--data", type=Path, metavar="DIR", default=default_root(), help="where data sets are cached")
    add("--memory", default="4g", help="the driver's memory (default: 4g)")
    return parser


def _parts(names: str) -> list[str]:
    return _some_of(PARTS, names)


def _workflows(names: str) -> list[str]:
    return _some_of(WORKFLOWS, names)


def _some_of(known: Collection[str], names: str) -> list[str]:
    chosen = [name.strip() for name in names.split(",") if name.strip()]
    if not chosen or any(name not in known for name in chosen):
        raise argparse.ArgumentTypeError(f"expected some of {', '.join(known)}, got {names!r}")
    return chosen
