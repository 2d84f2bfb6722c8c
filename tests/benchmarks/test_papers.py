"""Experiments: measured part by part, taken up again, and written as a page. Tiny ones, no Spark."""

from __future__ import annotations

import json
import os
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from benchmarks.papers import EXPERIMENTS, _newest, main
from benchmarks.papers.charts import Chart, Series, draw
from benchmarks.papers.context import Context
from benchmarks.papers.experiment import Experiment, Figure, Raw, Row, Size
from benchmarks.papers.goals import SHOWN, TARGETS
from benchmarks.papers.report import fill, page, write
from benchmarks.papers.runner import run, to_measure
from benchmarks.papers.store import NotResults, Store
from benchmarks.papers.targets import Target, find
from rich.console import Console

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def no_look_at_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.papers.runner._LOOK", None)


def rows(raw: Raw, size: Size) -> list[Row]:
    return [
        Row(part, paper="7 s", ours=value, other=2.0, instead="by hand", ratios=(value / 2, value / 2.1))
        for part, value in raw.items()
    ]


def chart(raw: Raw, size: Size) -> Chart:
    return Chart("Seconds", "bars", "s", (Series("ours", list(raw.values())),), tuple(raw))


def tiny(measure: Callable[[Context, str], Any], parts: tuple[str, ...] = ("a", "b", "c")) -> Experiment:
    figure = Figure("tiny.fig1", "Figure 1: tiny", "It took 7 s.", "The same.", rows, chart)
    size = {"parts": parts, "n": {"a": 1, "b": 2, "c": 3}, "runs": 1}
    return Experiment("tiny.all", measure, (figure,), quick=size, full={**size, "runs": 5})


def measured(experiment: Experiment, store: Store, folder: Path, **options: Any) -> list[str]:
    return run([experiment], store, "quick", root=folder, console=Console(quiet=True), **options)


def test_parts_are_measured_in_order_each_with_its_own_numbers(tmp_path: Path) -> None:
    seen: list[tuple[str, int]] = []

    def measure(context: Context, part: str) -> float:
        seen.append((part, context.size["n"]))
        return 1.0

    failed = measured(tiny(measure), Store(tmp_path / "r.json", "quick"), tmp_path)

    assert (seen, failed) == ([("a", 1), ("b", 2), ("c", 3)], [])


def test_an_interrupted_measurement_goes_on_with_what_is_missing(tmp_path: Path) -> None:
    seen: list[str] = []

    def measure(context: Context, part: str) -> float:
        seen.append(part)
        if part == "b" and len(seen) == 2:
            raise KeyboardInterrupt
        return float(len(seen))

    file = tmp_path / "r.json"
    with pytest.raises(KeyboardInterrupt):
        measured(tiny(measure), Store(file, "quick"), tmp_path)
    measured(tiny(measure), Store(file, "quick"), tmp_path)

    assert seen == ["a", "b", "b", "c"]
    assert Store(file, "quick").raw("tiny.all") == {"a": 1.0, "b": 3.0, "c": 4.0}


def test_a_part_that_failed_is_shown_and_measured_again_and_the_others_are_measured(tmp_path: Path) -> None:
    broken = [True]

    def measure(context: Context, part: str) -> float:
        if part == "b" and broken:
            raise ValueError("no such thing\nand more")
        return 1.0

    experiment, file = tiny(measure), tmp_path / "r.json"
    assert measured(experiment, Store(file, "quick"), tmp_path) == ["tiny.all/b"]
    failed = Store(file, "quick")
    assert failed.errors() == {"tiny.all/b": "ValueError: no such thing"}
    assert "no such thing" in page(failed, [experiment], [])
    assert [part for _, part in to_measure([experiment], failed, "quick")] == ["b"]

    broken.clear()
    assert measured(experiment, Store(file, "quick"), tmp_path) == []
    assert Store(file, "quick").errors() == {}


def test_other_numbers_mean_another_measurement(tmp_path: Path) -> None:
    store = Store(tmp_path / "r.json", "quick")
    experiment = tiny(lambda context, part: 1.0)
    measured(experiment, store, tmp_path)

    larger = replace(experiment, quick={**experiment.quick, "n": {"a": 1, "b": 20, "c": 3}})

    assert [part for _, part in to_measure([larger], store, "quick")] == ["b"]
    assert len(to_measure([experiment], store, "quick", again=True)) == 3


def test_a_failure_does_not_overwrite_what_was_measured(tmp_path: Path) -> None:
    store = Store(tmp_path / "r.json", "quick")
    measured(tiny(lambda context, part: 1.0), store, tmp_path)

    def fails(context: Context, part: str) -> float:
        raise RuntimeError("not now")

    assert len(measured(tiny(fails), store, tmp_path, again=True)) == 3
    assert store.raw("tiny.all") == {"a": 1.0, "b": 1.0, "c": 1.0}


def test_scratch_folders_are_gone_afterwards(tmp_path: Path) -> None:
    folders: list[Path] = []

    def measure(context: Context, part: str) -> float:
        assert context.scratch.is_dir()
        folders.append(context.scratch)
        return 1.0

    measured(tiny(measure), Store(tmp_path / "r.json", "quick"), tmp_path)

    assert len(set(folders)) == 3
    assert not any(folder.exists() for folder in folders)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "Expected results of a benchmark"),
        ('{"format": 99, "size": "quick", "parts": {}}', "Expected results of format 1"),
        ('{"format": 1, "size": "full", "parts": {}}', "Expected results of size quick"),
    ],
)
def test_a_file_of_something_else_is_refused_and_left_alone(
    tmp_path: Path, content: str, message: str
) -> None:
    file = tmp_path / "r.json"
    file.write_text(content)

    with pytest.raises(NotResults, match=message):
        Store(file, "quick")
    assert file.read_text() == content


def test_rounds_are_added_until_ratios_are_steady(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("benchmarks.papers.context.time.perf_counter", lambda: clock[0])
    waits = iter([1, 1.0, 2.0, 1.0, 1.0, *[1.0] * 20])
    context = Context({}, tmp_path)

    def other() -> None:
        clock[0] += next(waits)

    def base() -> None:
        clock[0] += 1.0

    times = context.by_turns({"base": base, "other": other}, base="base", runs=2, most=9)

    assert times["other"] == [1.0, 2.0, 1.0, 1.0, 1.0]
    assert len(times["base"]) == 5


def test_the_page_states_machine_size_paper_ratio_and_spread(tmp_path: Path) -> None:
    store = Store(tmp_path / "r.json", "quick")
    experiment = tiny(lambda context, part: {"a": 1.0, "b": 2.0, "c": 4.0}[part])
    measured(experiment, store, tmp_path)

    files = write(store, [experiment], [], tmp_path / "docs")
    text = files[0].read_text(encoding="utf-8")

    assert f"{store.document['machine']['cores']} cores" in text
    assert "| c | 7 s | 4 s | 2 s | 1.952 (1.929 to 1.976) |" in text
    assert "by hand" in text
    assert "images/results/tiny-fig1.svg" in text
    ET.parse(tmp_path / "docs" / "images" / "results" / "tiny-fig1.svg")
    assert write(store, [experiment], [], tmp_path / "docs")[0].read_text(encoding="utf-8") == text


def test_measurements_of_another_version_are_named_and_do_not_hinder_the_rest(tmp_path: Path) -> None:
    def rows_of_today(raw: Raw, size: Size) -> list[Row]:
        return [Row(part, ours=value["seconds"]) for part, value in raw.items()]

    old = tiny(lambda context, part: {"time": 4.0})
    store = Store(tmp_path / "r.json", "quick")
    measured(old, store, tmp_path)
    figure = replace(old.figures[0], rows=rows_of_today)

    text = page(store, [replace(old, figures=(figure,))], [])

    assert "Measured by another version: use `--again`." in text


def test_charts_that_are_no_longer_drawn_are_removed(tmp_path: Path) -> None:
    store = Store(tmp_path / "r.json", "quick")
    images = tmp_path / "docs" / "images" / "results"
    images.mkdir(parents=True)
    (images / "old.svg").write_text("<svg/>")

    write(store, [tiny(lambda context, part: 1.0)], [], tmp_path / "docs")

    assert list(images.iterdir()) == []


def test_a_target_is_met_missed_or_not_measured() -> None:
    measured = {"x": {"a": {"s": 2.0}}}

    def value(part: str) -> Callable[[Any], float]:
        return lambda found: float(found["x"][part]["s"])

    assert find(Target("A", "t", value("a"), at_most=2.0), measured).met is True
    assert find(Target("A", "t", value("a"), at_most=1.9), measured).met is False
    assert find(Target("A", "t", value("a"), at_least=2.1), measured).met is False
    assert find(Target("A", "t", value("b"), at_most=9.0), measured).met is None


def test_a_miss_is_shown_as_a_miss(tmp_path: Path) -> None:
    store = Store(tmp_path / "r.json", "quick")
    experiment = tiny(lambda context, part: 4.0)
    measured(experiment, store, tmp_path)
    targets = [
        Target("Engine", "a is short", lambda found: found["tiny.all"]["a"], at_most=3, unit="s"),
        Target("Engine", "a is not too short", lambda found: found["tiny.all"]["a"], at_least=3, unit="s"),
        Target("Engine", "d is there", lambda found: found["tiny.all"]["d"], at_most=3, only_full=True),
    ]

    text = page(store, [experiment], targets)

    assert "1 met, 1 missed, 1 not measured" in text
    assert "| **Engine** | a is short | ≤ 3 s | 4 s | **missed** |" in text
    assert "|  | a is not too short | ≥ 3 s | 4 s | met |" in text
    assert "| d is there | ≤ 3 | - | only with `--full` |" in text


def test_tables_of_another_page_are_filled(tmp_path: Path) -> None:
    store = Store(tmp_path / "r.json", "quick")
    experiment = tiny(lambda context, part: 4.0, ("a",))
    text = "Costs:\n<!-- results: tiny.fig1 -->\nold\n<!-- end -->\nMore.\n"

    assert fill(text, store, [experiment]) == text
    measured(experiment, store, tmp_path)
    filled = fill(text, store, [experiment])

    assert "old" not in filled
    assert "| a | 7 s | 4 s |" in filled
    assert "`tiny.fig1`, size quick, 20" in filled
    assert filled.endswith("<!-- end -->\nMore.\n")
    assert fill(filled, store, [experiment]) == filled
    with pytest.raises(ValueError, match="Expected the id of a figure"):
        fill("<!-- results: nothing -->\n<!-- end -->", store, [experiment])


@pytest.mark.parametrize(
    "drawn",
    [
        Chart("bars & more", "bars", "s", (Series("a<b", [1.0, None]), Series("c", [0.5, 3.0])), ("x", "y")),
        Chart("log", "bars", "s", (Series("a", [1e-3, 1e3, 0.0]),), ("x", "y", "z"), log_y=True),
        Chart("lines", "lines", "s", (Series("a", [1.0, 2.0], [1.0, 10.0]),), x="n", log_x=True, limit=1.5),
        Chart("points", "points", "s", (Series("a", [5.0], [0.0]),), x="n"),
        Chart("nothing", "points", "s", (), x="n"),
        Chart(
            "many", "lines", "s", tuple(Series("a long name " * 3 + str(n), [1.0], [1.0]) for n in range(8))
        ),
    ],
)
def test_charts_are_well_formed_and_stay_inside(drawn: Chart) -> None:
    text = draw(drawn)

    root = ET.fromstring(text)
    assert text == draw(drawn)
    numbers = [float(n) for n in re.findall(r' (?:x|y|cx|cy|x1|y1|x2|y2)="(-?[\d.]+)"', text)]
    assert all(-1 <= n <= 721 for n in numbers)
    titles = [node.text for node in root.iter() if node.tag.endswith("text")]
    assert drawn.title in titles
    assert all(series.name in titles for series in drawn.series)


def test_every_figure_has_its_own_id_and_speaks_of_the_paper() -> None:
    figures = [figure for experiment in EXPERIMENTS for figure in experiment.figures]

    assert len({figure.id for figure in figures}) == len(figures)
    assert len({experiment.name for experiment in EXPERIMENTS}) == len(EXPERIMENTS)
    assert all(figure.paper and figure.here for figure in figures)
    wanted = {f"icedtea.fig{n}" for n in range(16, 23)} | {f"icedtea.table{n}" for n in range(1, 5)}
    wanted |= {f"texera.fig{n}" for n in range(12, 16)} | {"texera.table2"}
    wanted |= {f"diffstream.{n}" for n in ("fig11", "fig12", "fig14a", "fig14b", "fig14d", "fig14f")}
    assert wanted <= {figure.id for figure in figures}


def test_sizes_can_be_kept_in_a_file_and_full_has_every_part_of_quick() -> None:
    for experiment in EXPERIMENTS:
        assert set(experiment.parts("quick")) <= set(experiment.parts("full"))
        for size in ("quick", "full"):
            for part in experiment.parts(size):
                json.dumps(experiment.part_size(size, part))


def test_tests_that_the_page_names_are_there() -> None:
    for _, _, where in SHOWN:
        for path in where.split():
            assert path.startswith("--") or (ROOT / path).exists(), path


def test_targets_are_unknown_where_nothing_was_measured() -> None:
    nothing: dict[str, Any] = {experiment.name: {} for experiment in EXPERIMENTS}

    assert {find(target, nothing).met for target in TARGETS} == {None}


def test_the_page_of_no_results_can_be_written(tmp_path: Path) -> None:
    status = main(["--report", "--results", str(tmp_path / "none.json"), "--docs", str(tmp_path)])

    assert status == 0
    text = (tmp_path / "results.md").read_text(encoding="utf-8")
    assert "0 met, 0 missed" in text
    assert "Figure 16" in text


def test_an_unfinished_file_of_these_days_is_gone_on_with(tmp_path: Path) -> None:
    assert _newest(tmp_path, "full") is None
    for name, size in (("2026-01-01", "full"), ("2026-01-02", "full"), ("2026-01-03-quick", "quick")):
        Store(tmp_path / f"{name}.json", size).save()

    assert _newest(tmp_path, "full") == tmp_path / "2026-01-02.json"
    assert _newest(tmp_path, "quick") == tmp_path / "2026-01-03-quick.json"
    os.utime(tmp_path / "2026-01-02.json", (0, 0))
    assert _newest(tmp_path, "full") is None


def test_an_unknown_figure_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--only", "icedtea.fig99"])
    assert "icedtea.fig99" in capsys.readouterr().err


def test_the_page_of_results_was_written_from_the_file_it_names() -> None:
    if not (ROOT / "docs" / "results.md").exists():
        pytest.skip("no results are kept yet")
    text = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    name = re.search(r"benchmarks/results/(\S+\.json)", text)
    assert name is not None
    file = ROOT / "benchmarks" / "results" / name[1]
    store = Store(file, json.loads(file.read_text())["size"])
    charts = {file.stem for file in (ROOT / "docs" / "images" / "results").glob("*.svg")}

    hint = "`scripts/bench papers --full --report` writes it anew"
    assert text == page(store, EXPERIMENTS, TARGETS, charts), hint
    costs = (ROOT / "docs" / "explanation" / "what-costs-what.md").read_text(encoding="utf-8")
    assert costs == fill(costs, store, EXPERIMENTS), hint
