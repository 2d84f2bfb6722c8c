"""``scripts/bench papers``: the experiments of the three papers on Samovar, beside their figures.

Each part is measured once and kept at once in a file of results: an interrupted measurement is taken up by the same
command. `--quick` is small and ends within minutes; `--full` has the papers' sizes. The page of results and its charts
are written from the file alone.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from benchmarks.data import default_root
from benchmarks.papers import beside, diffstream, diffstream_compare, icedtea, icedtea_travel, scaling, texera
from benchmarks.papers.experiment import Experiment
from benchmarks.papers.goals import TARGETS
from benchmarks.papers.report import fill, write
from benchmarks.papers.runner import run, to_measure
from benchmarks.papers.store import NotResults, Store

__all__ = ["EXPERIMENTS", "main"]

EXPERIMENTS: tuple[Experiment, ...] = (
    *icedtea.EXPERIMENTS,
    *icedtea_travel.EXPERIMENTS,
    *texera.EXPERIMENTS,
    *diffstream.EXPERIMENTS,
    *diffstream_compare.EXPERIMENTS,
    *scaling.EXPERIMENTS,
    *beside.EXPERIMENTS,
)
_ROOT = Path(__file__).resolve().parents[2]
_RESULTS = _ROOT / "benchmarks" / "results"
_THESE_DAYS = 2 * 86_400
_PAGES = ("explanation/what-costs-what.md",)
"""Pages with tables that are filled from results."""


def main(argv: Sequence[str] | None = None) -> int:
    """Measure what is missing, and write the page; 1 when a part failed, 130 when interrupted."""
    options = _parser().parse_args(argv)
    errors = Console(stderr=True)
    size = "full" if options.full else "quick"
    if options.list:
        _list(size)
        return 0
    path = (
        options.results
        or _newest(_RESULTS, size)
        or _RESULTS / f"{_today()}{'' if size == 'full' else '-quick'}.json"
    )
    try:
        store = Store(path, size)
        failed: list[str] = []
        if not options.report:
            failed = run(options.only, store, size, root=options.data, again=options.again, console=errors)
    except NotResults as problem:
        errors.print(str(problem), style="red")
        return 2
    except KeyboardInterrupt:
        errors.print(f"Interrupted. What was measured is in {path}; the same command goes on from there.")
        return 130
    folder = options.docs or (_ROOT / "docs" if size == "full" else path.parent / path.stem)
    for file in write(store, EXPERIMENTS, TARGETS, folder)[:1]:
        errors.print(f"written: {file}", soft_wrap=True, highlight=False)
    for name in _PAGES:
        if (folder / name).exists():
            filled = fill((folder / name).read_text(encoding="utf-8"), store, EXPERIMENTS)
            (folder / name).write_text(filled, encoding="utf-8")
    return int(bool(failed))


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


def _newest(folder: Path, size: str) -> Path | None:
    """The newest file of a size, if it is not complete and of these days: it is gone on with also after midnight."""
    for path in sorted(folder.glob("*.json"), reverse=True):
        if path.stem.endswith("-quick") == (size == "quick"):
            try:
                missing = to_measure(EXPERIMENTS, Store(path, size), size)
            except NotResults:
                return None
            return path if missing and time.time() - path.stat().st_mtime < _THESE_DAYS else None
    return None


def _list(size: str) -> None:
    for experiment in EXPERIMENTS:
        for figure in experiment.figures:
            parts = ", ".join(experiment.parts(size)) or "only with --full"
            print(f"{figure.id:<22} {figure.title} [{parts}]")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="scripts/bench papers", description=(__doc__ or "").split("\n\n")[0]
    )
    add = parser.add_argument
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--quick", action="store_true", help="small sizes, within 15 minutes (the default)")
    sizes.add_argument("--full", action="store_true", help="the papers' sizes, within 3 hours")
    every = ",".join(e.name for e in EXPERIMENTS)
    add(
        "--only",
        type=_chosen,
        default=every,
        metavar="IDS",
        help="figures or papers, such as icedtea.fig16,texera",
    )
    add("--again", action="store_true", help="measure also what is there already")
    add("--report", action="store_true", help="measure nothing; write the page from the file")
    add("--list", action="store_true", help="print the figures and their parts")
    add(
        "--results",
        type=Path,
        metavar="FILE",
        help="where results are kept (default: benchmarks/results/DATE.json)",
    )
    add(
        "--docs",
        type=Path,
        metavar="DIR",
        help="where the page goes (default: docs; beside the results for --quick)",
    )
    add("--data", type=Path, metavar="DIR", default=default_root(), help="where data sets are cached")
    return parser


def _chosen(names: str) -> list[Experiment]:
    """Experiments by name, by a figure of theirs, or by paper; in the order they stand here."""
    wanted = {name.strip() for name in names.split(",") if name.strip()}
    known: dict[str, set[str]] = {}
    for experiment in EXPERIMENTS:
        figures = {figure.id for figure in experiment.figures}
        for name in {experiment.name, experiment.name.split(".")[0], *figures}:
            known.setdefault(name, set()).add(experiment.name)
    unknown = sorted(wanted - set(known))
    if unknown or not wanted:
        raise argparse.ArgumentTypeError(
            f"expected names that --list prints, got {', '.join(unknown) or 'none'}; such as icedtea.fig16"
        )
    chosen = set().union(*(known[name] for name in wanted))
    return [experiment for experiment in EXPERIMENTS if experiment.name in chosen]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
