"""What the papers do not measure and a user meets: how fast the command line answers, and the driver's memory."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from dataclasses import asdict
from typing import Any

from benchmarks.papers.context import Context, ratios
from benchmarks.papers.experiment import Experiment, Figure, Raw, Row, Size

__all__ = ["EXPERIMENTS"]

_HELP = ("-c", "from samovar.cli.main import main; main()", "--help")


def _help(context: Context, part: str) -> dict[str, Any]:
    def way(*arguments: str) -> Any:
        return lambda: subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)

    ways = {"python": way("-c", "pass"), "help": way(*_HELP)}
    return {"seconds": context.by_turns(ways, base="python", runs=context.size["runs"])}


def _help_rows(raw: Raw, size: Size) -> list[Row]:
    seconds = raw["help"]["seconds"]
    return [
        Row(
            "`samovar --help`",
            ours=statistics.median(seconds["help"]),
            other=statistics.median(seconds["python"]),
            instead="Python, doing nothing",
            ratios=ratios(seconds["help"], seconds["python"]),
            more={"largest s": max(seconds["help"]), "rounds": len(seconds["help"])},
        )
    ]


def _memory(context: Context, part: str) -> dict[str, Any]:
    from tests.e2e.cluster import Cluster

    from benchmarks.memory import measure

    started = time.perf_counter()
    context.sessions.stop()
    with Cluster(context.scratch / "cluster") as cluster:
        found = [
            measure(cluster.master, cluster.conf, scale, context.scratch) for scale in context.size["scales"]
        ]
    return {"drivers": [asdict(one) for one in found], "seconds": time.perf_counter() - started}


def _memory_rows(raw: Raw, size: Size) -> list[Row]:
    small, large = raw["driver"]["drivers"]
    return [
        Row(
            text,
            ours=large[key],
            unit="MB",
            other=small[key],
            instead="a tenth of the input",
            more={
                "rows": f"{large['rows']:,} and {small['rows']:,}",
                "epochs": f"{large['epochs']} and {small['epochs']}",
            },
        )
        for key, text in (
            ("python_growth_mb", "Python process, growth"),
            ("heap_mb", "Java heap after a collection"),
        )
    ]


HELP = Experiment(
    "beside.help",
    _help,
    (
        Figure(
            "beside.help",
            "The command line answers",
            "None of them has a command line.",
            "A process of its own each time, warm disk.",
            _help_rows,
        ),
    ),
    quick={"parts": ("help",), "runs": 5},
    full={"parts": ("help",), "runs": 15},
)

MEMORY = Experiment(
    "beside.memory",
    _memory,
    (
        Figure(
            "beside.memory",
            "Memory of the driver",
            "Not measured there.",
            "A workflow with a keyed Python operator on a loopback cluster, at two sizes of the input, each in a "
            "fresh driver process.",
            _memory_rows,
        ),
    ),
    quick={"parts": ()},
    full={"parts": ("driver",), "scales": (0.1, 1.0)},
)

EXPERIMENTS = (HELP, MEMORY)
