"""IcedTea's experiments on the past: bug hunts (Table 3), jumps, checkpoints, steps and large states (Figures 19 to
22, Table 4), and the fork of a run, which the paper does not have."""

from __future__ import annotations

import statistics
from dataclasses import replace
from typing import Any

from benchmarks.papers.charts import Chart, Series
from benchmarks.papers.context import Context, ratios
from benchmarks.papers.experiment import Experiment, Figure, Raw, Row, Size
from benchmarks.papers.icedtea import FIVE

__all__ = ["EXPERIMENTS"]

_POLICIES = {"none": "none", "every": "at every interaction", "tau": "online, by tau"}
_TAUS = ("0.5", "1", "2", "5", "10", "20")
_SHARES = {"5": "about 40 %", "10": "roughly 20 %", "20": "roughly 10 %"}
_OVERS = {"w1": "10,000", "w2": "about 13,000", "w3": "10,000", "w4": "9,982", "w5": "20,000"}
_INTOS = {"w4": "about 31,000", "w5": "60,000"}
_HUNTS = {"q1": (440, 407), "q2": (998, 600), "q3": (563, 541), "q4": (286, 690), "q5": (1020, 467)}
_WORDS = {"happy + glad": "65 of 1 M", "happy + new year": "2,359 of 1 M", "happy + birthday": "3,152 of 1 M"}


# --- Table 3


def _hunt(context: Context, part: str) -> dict[str, Any]:
    from benchmarks.travel.hunts import HUNTS, hunted

    setting = context.setting()
    hunt = next(hunt for hunt in HUNTS if hunt.name == part)
    hunted(replace(setting, scratch=context.scratch / "small"), hunt, context.size["tuples"] // 50)
    return dict(hunted(setting, hunt, context.size["tuples"]))


def _hunt_rows(raw: Raw, size: Size) -> list[Row]:
    return [
        Row(
            f"{name.upper()}, {raw[name]['bug']} at {raw[name]['at']}",
            paper=f"{iced} s; forward debugger {forward:,} s",
            ours=raw[name]["found in s"],
            other=raw[name]["rerun with a print s"],
            instead="rerun of the plain job with a print",
            more={"run s": raw[name]["run s"], "found": raw[name]["found"]},
        )
        for name, (forward, iced) in _HUNTS.items()
        if name in raw
    ]


HUNTS = Experiment(
    "icedtea.hunts",
    _hunt,
    (
        Figure(
            "icedtea.table3",
            "Table 3: time to the root cause",
            "Six people looked for the tuple behind five bugs, with IcedTea or with a forward debugger; the averages "
            "are in seconds and include thinking.",
            "The same five kinds of bugs, at the same shares of the run, found by script: `past.failure()` where a "
            "tuple raised, `past.first(...)` with the question that the result suggests where one poisoned the state. "
            "Seconds from the end of the run to the tuple; a hunt of a fiftieth of the size warms up before. The "
            "alternative has to know already what to print.",
            _hunt_rows,
        ),
    ),
    quick={"parts": tuple(_HUNTS), "scale": 0.1, "tuples": 100_000},
    full={"parts": tuple(_HUNTS), "scale": 1, "tuples": 1_000_000},
)


# --- Figure 19, and jumps of all five


def _to_interactions(context: Context, part: str) -> dict[str, Any]:
    from benchmarks.travel.jumps import to_interactions

    size = context.size
    points, kept, seconds = to_interactions(
        context.setting(), "w3", part, size["interactions"], tau=size["tau"]
    )
    return {"points": points, "bytes": kept, "run": seconds}


def _policy_rows(raw: Raw, size: Size) -> list[Row]:
    papers = {"none": "above tau after 12 s; as long as the run up to there", "every": "below 1 s"}
    papers["tau"] = "below 1 s to 9.5 s, tau 10 s"
    made = []
    for policy, text in _POLICIES.items():
        if policy not in raw:
            continue
        there = sorted(seconds for _, seconds in raw[policy]["points"])
        made.append(
            Row(
                f"checkpoints: {text}",
                paper=papers[policy],
                ours=statistics.median(there),
                other=raw[policy]["run"],
                instead="the whole run again",
                more={
                    "p95 s": there[min(len(there) - 1, int(0.95 * len(there)))],
                    "worst s": there[-1],
                    "jumps": len(there),
                    "checkpoints KB": raw[policy]["bytes"] / 1e3,
                },
            )
        )
    return made


def _policy_chart(raw: Raw, size: Size) -> Chart:
    series = tuple(
        Series(text, [y for _, y in raw[policy]["points"]], [x for x, _ in raw[policy]["points"]])
        for policy, text in _POLICIES.items()
        if policy in raw
    )
    limit = {"limit": float(size["tau"]), "limit_name": "tau"}
    return Chart(
        "Jumps to interactions of W3", "points", "s to get there", series, x="s into the run", **limit
    )  # type: ignore[arg-type]


POLICIES = Experiment(
    "icedtea.jumps_w3",
    _to_interactions,
    (
        Figure(
            "icedtea.fig19",
            "Figure 19: jump latency by checkpoint strategy, W3",
            "Interactions every 5 s, tau 10 s. Without checkpoints a jump takes as long as the run took to get there; "
            "with one at every interaction less than a second, at a high cost in bytes; online, up to 9.5 s.",
            "Jumps to interactions spread over a run of W3, with the state of its operator. Epoch ends are starting "
            "points under each policy, so `none` means: none inside of epochs. The alternative is to run all again.",
            _policy_rows,
            _policy_chart,
        ),
    ),
    quick={"parts": tuple(_POLICIES), "scale": 0.1, "interactions": 12, "tau": 2.0},
    full={"parts": tuple(_POLICIES), "scale": 1, "interactions": 60, "tau": 2.0},
)


def _jump(context: Context, part: str) -> dict[str, Any]:
    from benchmarks.travel.jumps import jumped
    from benchmarks.travel.setting import interesting

    setting = context.setting()
    flow = setting.pair(part).samovar(setting.data)
    context.tick("running")
    run = setting.run(flow, tau=context.size["tau"])
    context.tick("jumping")
    return dict(jumped(setting, run, interesting(part, flow), context.size["moments"]))


def _jump_rows(raw: Raw, size: Size) -> list[Row]:
    return [
        Row(
            name.upper(),
            paper="within tau",
            ours=raw[name]["jump s"],
            other=raw[name]["run s"],
            instead="the whole run again",
            more={
                "worst s": raw[name]["jump max s"],
                "first step s": raw[name]["first step s"],
                "slowest later step ms": raw[name]["step ms"],
                "jumps": raw[name]["moments"],
            },
        )
        for name in FIVE
        if name in raw
    ]


JUMPS = Experiment(
    "icedtea.jumps",
    _jump,
    (
        Figure(
            "icedtea.jumps",
            "Jumps to any tuple of W1 to W5",
            "Jumps lead to interactions; to any tuple there are none.",
            "Random tuples of the operator that the paper marks, with its state, and five step-overs from there.",
            _jump_rows,
        ),
    ),
    quick={"parts": FIVE, "scale": {"w5": 0.05, **dict.fromkeys(FIVE[:4], 0.1)}, "tau": 2.0, "moments": 5},
    full={"parts": FIVE, "scale": 1, "tau": 2.0, "moments": 12},
)


# --- Figure 20


def _checkpoints(context: Context, part: str) -> dict[str, Any]:
    from benchmarks.travel.checkpoints import checkpointed

    return dict(checkpointed(context.setting(), float(part), context.size["moments"]))


def _tau_rows(raw: Raw, size: Size) -> list[Row]:
    least = raw["0.5"]["bytes"] if "0.5" in raw else None
    return [
        Row(
            f"tau {tau} s",
            paper=_SHARES.get(tau, "100 %" if tau == "0.5" else ""),
            ours=raw[tau]["bytes"],
            unit="B",
            other=least,
            instead="tau 0.5 s",
            more={
                "checkpoints": raw[tau]["marks"],
                "jump s": raw[tau]["jump s"],
                "worst jump s": raw[tau]["jump max s"],
                "run s": raw[tau]["run s"],
            },
        )
        for tau in _TAUS
        if tau in raw
    ]


def _tau_chart(raw: Raw, size: Size) -> Chart | None:
    there = tuple(tau for tau in _TAUS if tau in raw)
    least = raw["0.5"]["bytes"] if "0.5" in raw else 0
    if not least:
        return None
    papers = {"0.5": 1.0, "5": 0.4, "10": 0.2, "20": 0.1}
    series = (
        Series("Samovar", [raw[tau]["bytes"] / least for tau in there]),
        Series("IcedTea", [papers.get(tau) for tau in there]),
    )
    return Chart(
        "Bytes of checkpoints against tau 0.5 s, W5", "bars", "share", series, tuple(f"{t} s" for t in there)
    )


CHECKPOINTS = Experiment(
    "icedtea.checkpoints",
    _checkpoints,
    (
        Figure(
            "icedtea.fig20",
            "Figure 20: bytes of checkpoints by tau",
            "Against tau 0.5 s, which keeps one for almost every interaction: about 40 % at 5 s, 20 % at 10 s, 10 % "
            "at 20 s.",
            "W5 as one epoch, so that all checkpoints are inside of it; the state of its slow operator is a window of "
            "reviews. Rows that operators gave up to the last checkpoint are kept for forks, and counted apart: they "
            "do not depend on how many checkpoints there are.",
            _tau_rows,
            _tau_chart,
        ),
    ),
    quick={"parts": ("0.5", "2", "5"), "scale": 0.05, "moments": 3},
    full={"parts": _TAUS, "scale": 1, "moments": 4},
)


# --- Figure 21 and Table 4


def _steps(context: Context, part: str) -> dict[str, Any]:
    from benchmarks.travel.steps import stepped

    return dict(stepped(context.setting(), part, context.size["tuples"]))


def _step_rows(raw: Raw, size: Size) -> list[Row]:
    return [
        Row(
            name.upper(),
            paper=f"{_OVERS[name]} step-overs" + (f", {_INTOS[name]} step-intos" if name in _INTOS else ""),
            ours=raw[name]["step-overs"],
            unit="step-overs",
            more={
                "tuples": raw[name]["tuples"],
                "step-intos": raw[name]["step-intos"],
                "a step ms": raw[name]["step ms"],
                "p99 ms": raw[name]["step p99 ms"],
                "next window s": raw[name]["window s"],
            },
        )
        for name in FIVE
        if name in raw
    ]


STEPS = Experiment(
    "icedtea.steps",
    _steps,
    (
        Figure(
            "icedtea.fig21",
            "Figure 21: step options",
            "10,000 tuples a source. Step-overs: 10,000 for W1 and W3, about 13,000 for W2 (the join's build side "
            "counts), 9,982 for W4, 20,000 for W5. Step-intos: few for W1 to W3, about 31,000 for W4, 60,000 for W5.",
            "Every tuple of the marked operator is stepped over, one by one. A join's build side is its state and is "
            "not stepped through.",
            _step_rows,
        ),
    ),
    quick={"parts": FIVE, "scale": 0.1, "tuples": 1_000},
    full={"parts": FIVE, "scale": 1, "tuples": 10_000},
)


def _overlaps(context: Context, part: str) -> dict[str, Any]:
    from benchmarks.travel.steps import overlapping

    first, second = part.split(" + ")
    found = {}
    for order in ("canonical", "arrival"):
        without, taken, _ = overlapping(
            context.setting(), (first, second), context.size["tuples"], arrival=order == "arrival"
        )
        found[order] = {"without": without, "tuples": taken}
    return found


def _overlap_rows(raw: Raw, size: Size) -> list[Row]:
    return [
        Row(
            words,
            paper=paper,
            ours=raw[words]["canonical"]["without"],
            unit="without step-over",
            other=raw[words]["arrival"]["without"],
            instead="order of arrival",
            more={"tuples": raw[words]["canonical"]["tuples"]},
        )
        for words, paper in _WORDS.items()
        if words in raw
    ]


OVERLAPS = Experiment(
    "icedtea.overlaps",
    _overlaps,
    (
        Figure(
            "icedtea.table4",
            "Table 4: tuples without a step-over, W4",
            "Of 1 M tweets: 65 (0.01 %) for happy and glad, 2,359 (0.20 %) for happy and new year, 3,152 (0.30 %) for "
            "happy and birthday.",
            "In canonical order, the default, and with the Python operator taking tuples as they arrive, as the "
            "paper's operators do.",
            _overlap_rows,
        ),
    ),
    quick={"parts": ("happy + glad",), "scale": 0.1, "tuples": 1_000},
    full={"parts": tuple(_WORDS), "scale": 1, "tuples": 10_000},
)


# --- Figure 22


def _states(context: Context, part: str) -> dict[str, Any]:
    from benchmarks.travel.states import large_state

    return dict(large_state(context.setting(), context.size["tuples"]))


def _state_rows(raw: Raw, size: Size) -> list[Row]:
    found = raw["groups"]
    return [
        Row(
            "100 step-overs",
            paper="4.3 GB sent whole; 47 % less by blocks of 4 KB; hundreds of bytes a step by changed keys",
            ours=found["bytes moved"],
            unit="B",
            other=found["state bytes"] * found["steps"],
            instead="the state at each step",
            more={
                "state MB": found["state bytes"] / 1e6,
                "KB for the jump": found["bytes of the jump"] / 1e3,
                "jump s": found["jump s"],
                "steps s": found["steps s"],
            },
        )
    ]


STATES = Experiment(
    "icedtea.states",
    _states,
    (
        Figure(
            "icedtea.fig22",
            "Figure 22: cost of sending large states",
            "An aggregate whose state is 47 MB after 500,000 tuples; 100 step-overs.",
            "The same aggregate over tweets, each a group of its own. Bytes that come from Spark to the driver; the "
            "alternative is computed: the state's size times the steps.",
            _state_rows,
        ),
    ),
    quick={"parts": ("groups",), "scale": 0.1, "tuples": 50_000},
    full={"parts": ("groups",), "scale": 1, "tuples": 500_000},
)


# --- forks


def _forks(context: Context, part: str) -> dict[str, Any]:
    from benchmarks.travel.forks import forked_and_rerun

    forked, rerun, taken = forked_and_rerun(context.setting())
    return {"fork": forked, "rerun": rerun, "tuples": taken}


def _fork_rows(raw: Raw, size: Size) -> list[Row]:
    found = raw["w5"]
    return [
        Row(
            "W5 from 70 % on, with a fixed operator",
            ours=statistics.median(found["fork"]),
            other=statistics.median(found["rerun"]),
            instead="all of it again",
            ratios=ratios(found["fork"], found["rerun"]),
            more={"tuples": found["tuples"]},
        )
    ]


FORKS = Experiment(
    "icedtea.forks",
    _forks,
    (
        Figure(
            "icedtea.forks",
            "A fork of the past",
            "Forks are not among its experiments.",
            "From the jump to the fork's result, which is compared with that of a full run of the same logic.",
            _fork_rows,
        ),
    ),
    quick={"parts": ("w5",), "scale": 0.05, "runs": 1},
    full={"parts": ("w5",), "scale": 0.5, "runs": 3},
)

EXPERIMENTS = (HUNTS, POLICIES, JUMPS, CHECKPOINTS, STEPS, OVERLAPS, STATES, FORKS)
