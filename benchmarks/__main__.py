"""``python -m benchmarks NAME [options]``: runs the benchmark module of that name."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

_BENCHMARKS = {
    "control": "the control channel: round trip, pause and resume by number of workers, cost of a check per tuple",
    "compare": "two tables of a million rows: samovar compare, exceptAll, assertDataFrameEqual, chispa, datacompy",
    "matcher": "events a second that the matcher of two streams compares, by dependence and by what is unmatched",
    "memory": "the driver's memory at two scales of the input",
    "pauses": "a direct pause of a run on Spark, from the call to all stopped: Python operators, native epochs",
    "crashes": "work lost by kill -9, seconds to the first commit, and to a strict modification in force",
    "monitor": "the Yahoo streaming benchmark as two live queries: throughput with and without a monitor",
    "travel": "steps, jumps, landings, checkpoints, interactions, large states, bug hunts and forks",
    "papers": "the experiments of the three papers: measured, beside their figures, and a page of results",
    "versions": "W1 to W5 of an older commit against this tree, interleaved",
    "epochs": "what one more epoch costs: W1 and W5 in 1 to 64 epochs",
    "overhead": "W1 to W5 against plain PySpark: time, and bytes of the recording",
}


def main(argv: Sequence[str]) -> int:
    """Hand the remaining arguments to the benchmark's own ``main``; 2 for an unknown name."""
    if argv and argv[0] in _BENCHMARKS:
        status: int = importlib.import_module(f"benchmarks.{argv[0]}").main(argv[1:])
        return status
    asked = bool(argv) and argv[0] in ("-h", "--help")
    lines = ["usage: python -m benchmarks NAME [options]", ""]
    lines += [f"  {name:<12} {claim}" for name, claim in _BENCHMARKS.items()]
    if not asked and argv:
        lines += ["", f"Expected one of {', '.join(_BENCHMARKS)}, got {argv[0]!r}."]
    print("\n".join(lines), file=sys.stdout if asked else sys.stderr)
    return 0 if asked else 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
