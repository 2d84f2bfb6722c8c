"""The targets, area by area, and where each number is found among the measurements."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.papers.context import ratios
from benchmarks.papers.diffstream_compare import BY_FUNCTION, OF_TWO, STRUCTURED
from benchmarks.papers.icedtea import FIVE
from benchmarks.papers.targets import Measured, Target
from benchmarks.papers.texera import at_work

__all__ = ["SHOWN", "TARGETS"]

_ENGINE = "Engine"
_TRAVEL = "Time travel"
_LIVE = "Live interaction"
_DIFF = "Differential testing"
_SCALE = "Scaling"
_TITLES = {"w1": "W1", "w2": "W2", "w3": "W3", "w4": "W4", "w5": "W5"}


def _seconds(experiment: str, part: str, way: str, base: str) -> Callable[[Measured], float]:
    """The median ratio of two ways."""

    def value(measured: Measured) -> float:
        seconds = measured[experiment][part]["seconds"]
        return statistics.median(ratios(seconds[way], seconds[base]))

    return value


def _extra(part: str) -> Callable[[Measured], float]:
    def value(measured: Measured) -> float:
        seconds = measured["icedtea.overhead"][part]["seconds"]
        return statistics.median(seconds["recorded"]) - statistics.median(seconds["plain"])

    return value


def _log_share(measured: Measured) -> float:
    found = [measured["icedtea.overhead"][part]["bytes"] for part in FIVE]
    return max(sizes["log"] / sizes["input"] for sizes in found)


def _worst(
    experiment: str, key: str, parts: Sequence[str] = FIVE, by: float = 1.0
) -> Callable[[Measured], float]:
    """The largest of all parts; those that are missing make it unknown."""
    return lambda measured: max(by * measured[experiment][part][key] for part in parts)


def _policy(measured: Measured) -> float:
    return max(seconds for _, seconds in measured["icedtea.jumps_w3"]["tau"]["points"])


def _tau_share(tau: str) -> Callable[[Measured], float]:
    def value(measured: Measured) -> float:
        found = measured["icedtea.checkpoints"]
        return float(found[tau]["bytes"] / found["0.5"]["bytes"])

    return value


def _gap(gap: str) -> Callable[[Measured], float]:
    def value(measured: Measured) -> float:
        found = [measured["icedtea.interactions"][part]["seconds"] for part in FIVE]
        return max(statistics.median(ratios(seconds[gap], seconds["None"])) for seconds in found)

    return value


def _without_step(measured: Measured) -> float:
    found = [measured["icedtea.steps"][part] for part in FIVE]
    return float(sum(one["tuples"] - one["step-overs"] for one in found))


def _hunts(measured: Measured) -> float:
    found = [measured["icedtea.hunts"][f"q{n}"] for n in range(1, 6)]
    return max(one["found in s"] / one["rerun with a print s"] for one in found)


def _fork(measured: Measured) -> float:
    found = measured["icedtea.forks"]["w5"]
    return statistics.median(ratios(found["fork"], found["rerun"]))


def _p95(samples: Sequence[float]) -> float:
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]


def _single(*parts: str) -> Callable[[Measured], float]:
    return lambda measured: max(_p95(at_work(measured["texera.single"][part])) for part in parts)


def _native(measured: Measured) -> float:
    return max(_p95(measured["texera.pauses"][part]["direct"]["ms"]) for part in ("w2 2", "w3 2"))


def _check(measured: Measured) -> float:
    found = measured["texera.checks"]["operator"]["checks"]
    return float(next(one["ratio"] for one in found if one["every"] == 1))


def _matcher(*cases: str) -> Callable[[Measured], float]:
    def value(measured: Measured) -> float:
        found = [measured["diffstream.matcher"][case]["by"][0] for case in cases]
        return float(min(one["events_per_second"] for one in found))

    return value


def _unmatched_growth(measured: Measured) -> float:
    grown = []
    for case in STRUCTURED:
        found = measured["diffstream.matcher"][case]["by"]
        grown.append(found[0]["events_per_second"] / found[-1]["events_per_second"])
    return max(grown)


def _compare(measured: Measured) -> float:
    """Ours against the fastest of the others, in the worse of the two cases."""
    found = measured["diffstream.compare"]["all"]["answers"]
    worst = 0.0
    for case in ("equal", "one row differs"):
        by: dict[str, list[float]] = {}
        for one in found:
            if one["case"] == case:
                by.setdefault(one["tool"], []).append(one["seconds"])
        ours = statistics.median(by.pop("samovar compare"))
        worst = max(worst, ours / min(statistics.median(other) for other in by.values()))
    return worst


def _reducers(measured: Measured) -> float:
    found = measured["diffstream.reducers"]
    cells = [cell for name in found for cell in found[name]["cells"] if cell is not None]
    return float(sum(cells)) if len(found) == 5 else found["all"]


def _lost(measured: Measured) -> float:
    seconds = measured["diffstream.monitor"]["throughput"]["seconds"]
    return 1 - 1 / statistics.median(ratios(seconds["monitor"], seconds["no monitor"]))


def _growth(name: str) -> Callable[[Measured], float]:
    def value(measured: Measured) -> float:
        found = {part: one for part, one in measured["scaling.rows"].items() if part.startswith(name)}
        base, last = found[f"{name} x1"], max(found.values(), key=lambda one: one["factor"])
        return statistics.median(last["recorded"]) / statistics.median(base["recorded"]) / last["factor"]

    return value


def _jump_growth(name: str) -> Callable[[Measured], float]:
    def value(measured: Measured) -> float:
        found: dict[str, Any] = {p: one for p, one in measured["scaling.rows"].items() if p.startswith(name)}
        base, last = found[f"{name} x1"], max(found.values(), key=lambda one: one["factor"])
        return float(last["jump"] / base["jump"] / last["factor"])

    return value


def _memory_growth(key: str) -> Callable[[Measured], float]:
    def value(measured: Measured) -> float:
        small, large = measured["beside.memory"]["driver"]["drivers"]
        return float(large[key] - small[key])

    return value


def _engine() -> list[Target]:
    made = [
        Target(
            _ENGINE,
            f"{_TITLES[part]}: time against the plain job, where that takes 15 s or more",
            _seconds("icedtea.large", part, "recorded", "plain"),
            at_most=1.05,
            only_full=True,
        )
        for part in FIVE
    ]
    made += [
        Target(
            _ENGINE,
            f"{_TITLES[part]}: seconds more than the plain job at scale 1",
            _extra(part),
            at_most=0.3,
            unit="s",
            only_full=True,
        )
        for part in FIVE[:4]
    ]
    made += [
        Target(
            _ENGINE,
            f"{_TITLES[part]}: recording on against off",
            _seconds("icedtea.large", part, "recorded", "unrecorded"),
            at_most=1.02,
            only_full=True,
        )
        for part in FIVE
    ]
    made.append(
        Target(
            _ENGINE,
            "driver's memory on ten times the input: Python process grows by",
            _memory_growth("python_growth_mb"),
            at_most=40,
            unit="MB",
            only_full=True,
        )
    )
    made.append(
        Target(
            _ENGINE,
            "`samovar --help`",
            lambda measured: statistics.median(measured["beside.help"]["help"]["seconds"]["help"]),
            at_most=0.5,
            unit="s",
        )
    )
    return [
        *made,
        Target(_ENGINE, "log against the input, worst of W1 to W5", _log_share, at_most=0.001, unit="%"),
    ]


TARGETS: tuple[Target, ...] = (
    *_engine(),
    Target(_TRAVEL, "tuples without a step-over in canonical order, W1 to W5", _without_step, at_most=0),
    *(
        Target(
            _TRAVEL,
            f"{_TITLES[part]}: worst jump at scale 1",
            _worst("icedtea.jumps", "jump max s", (part,)),
            at_most=1.0,
            unit="s",
            only_full=True,
        )
        for part in FIVE
    ),
    Target(
        _TRAVEL, "W3: worst jump to an interaction, tau 2 s", _policy, at_most=2.0, unit="s", only_full=True
    ),
    Target(
        _TRAVEL, "first step after a jump", _worst("icedtea.jumps", "first step s"), at_most=1.5, unit="s"
    ),
    Target(
        _TRAVEL,
        "a step within a traced window, 99 of 100",
        _worst("icedtea.steps", "step p99 ms"),
        at_most=50,
        unit="ms",
    ),
    *(
        Target(
            _TRAVEL,
            f"bytes of checkpoints at tau {tau} s against 0.5 s",
            _tau_share(tau),
            at_most=share,
            unit="%",
            only_full=True,
        )
        for tau, share in (("5", 0.40), ("10", 0.20), ("20", 0.10))
    ),
    Target(
        _TRAVEL,
        "bytes moved for 100 steps at a large state",
        lambda measured: measured["icedtea.states"]["groups"]["bytes moved"],
        at_most=100_000,
        unit="B",
    ),
    *(
        Target(
            _TRAVEL,
            f"run time with interactions every {gap:g} s, worst",
            _gap(str(gap)),
            at_most=most,
            only_full=True,
        )
        for gap, most in ((10.0, 1.02), (1.0, 1.03), (0.1, 1.05))
    ),
    Target(
        _TRAVEL,
        "bug hunts: seconds to the tuple against a rerun with a print, worst of five",
        _hunts,
        at_most=1.0,
        only_full=True,
    ),
    Target(_TRAVEL, "fork from 70 % of W5 against a full rerun", _fork, at_most=0.40, only_full=True),
    Target(
        _LIVE,
        "direct pause with a Python operator at work, p95",
        _single("slow", "icedtea w5"),
        at_most=50,
        unit="ms",
    ),
    Target(_LIVE, "direct pause of native epochs (Texera's W2 and W3), p95", _native, at_most=300, unit="ms"),
    Target(_LIVE, "a filter operator with a check at every tuple, against none", _check, at_most=1.02),
    Target(
        _DIFF,
        "matcher, slowest structured dependence",
        _matcher(*STRUCTURED),
        at_least=2_000_000,
        unit="events/s",
    ),
    Target(
        _DIFF,
        "matcher, keyed by a function, slowest",
        _matcher(*BY_FUNCTION),
        at_least=100_000,
        unit="events/s",
    ),
    Target(
        _DIFF,
        "matcher, a function of two events, slowest",
        _matcher(*OF_TWO),
        at_least=100_000,
        unit="events/s",
    ),
    Target(
        _DIFF, "matcher: cost an event at most unmatched against 500, worst", _unmatched_growth, at_most=1.10
    ),
    Target(_DIFF, "`compare` against the fastest other tool, worse case", _compare, at_most=1.0),
    Target(
        _DIFF, "cells of Figure 12 that are right (5 bugs, 7 without a false alarm)", _reducers, at_least=12
    ),
    Target(_DIFF, "throughput lost to a monitor", _lost, at_most=0.05, unit="%"),
    *(
        Target(_SCALE, f"{name.upper()}: time a row, largest against x1", _growth(name), at_most=1.0)
        for name in ("w1", "w5")
    ),
    *(
        Target(
            _SCALE,
            f"{name.upper()}: jump, largest against x1, by the growth of the rows",
            _jump_growth(name),
            at_most=1.0,
        )
        for name in ("w1", "w5")
    ),
)


SHOWN: tuple[tuple[str, str, str], ...] = (
    (
        _ENGINE,
        "results equal plain Spark's: W1 to W5, TPC-H, random workflows, any epoch size",
        "tests/oracle",
    ),
    (
        _ENGINE,
        "drivers, Python workers and executors killed: no epoch lost or counted twice",
        "--slow tests/e2e",
    ),
    (_ENGINE, "a cluster of one master and two workers", "--slow tests/e2e/test_cluster.py"),
    (_TRAVEL, "the story of IcedTea's sections 3 and 4", "tests/replay/test_story.py"),
    (
        _TRAVEL,
        "stepping gives the states of a run from scratch; steps back undo",
        "tests/oracle/test_time_travel.py",
    ),
    (_LIVE, "pause, hold, fix and modify; nothing lost, nothing twice", "tests/runtime"),
    (_LIVE, "the channel: wrong tokens, garbage, slow and lost peers", "tests/control"),
    (_DIFF, "verdicts equal a brute-force implementation of the definition", "tests/diff/test_oracle.py"),
    (_DIFF, "the four case studies", "tests/examples/test_diffstream.py"),
    ("Workbench", "security, convergence of edits, runs over HTTP", "tests/server"),
    ("Workbench", "the whole of it in a real browser, edit to other screen among it", "--web"),
)
"""Targets that are not numbers, and the tests that show them."""
