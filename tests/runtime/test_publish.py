"""Results of `write`: every mode and format, and nothing at the target unless the run ended well."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import samovar as sv
from samovar.errors import OperatorFailed, StorageProblem, WorkflowError
from samovar.runtime import publication

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("publish") / "in"
    folder.mkdir()
    for n in range(2):
        pq.write_table(pa.table({"k": ["a", "b"], "n": [2 * n, 2 * n + 1]}), folder / f"{n}.parquet")
    return folder


ROWS = [("a", 0), ("a", 2), ("b", 1), ("b", 3)]


class Published(NamedTuple):
    """A run that has written, and what one of its targets held before."""

    folder: Path
    past: sv.Past
    ignored: dict[str, bytes]


class Fails(sv.Operator):
    """Raises on the last row, while the file `broken` is there."""

    output = "k string, n bigint"

    def __init__(self, mark: str) -> None:
        self.mark = mark

    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[dict[str, Any]]:
        """One row out for one row in."""
        if row["n"] == 3 and Path(self.mark).exists():
            raise ValueError("broken")
        yield dict(row)


def _run(
    spark: SparkSession, source: Path, folder: Path, write: Callable[[sv.Frame], object], mark: str = "/none"
) -> sv.Run:
    flow = sv.Workflow("w")
    rows = flow.read.parquet(str(source), name="rows").apply(Fails(mark), name="op")
    write(rows)
    run: sv.Run = flow.start(spark=spark, record=folder / "runs", epoch_bytes=1)
    return run


def _rows(path: Path) -> list[tuple[Any, ...]]:
    """The rows of all Parquet files in a folder."""
    return sorted((r["k"], r["n"]) for p in path.rglob("*.parquet") for r in pq.read_table(p).to_pylist())


def _read(spark: SparkSession, path: Path, format: str = "parquet", **options: Any) -> list[tuple[Any, ...]]:
    df = spark.read.format(format).options(**options).load(str(path)).select("k", "n")
    return sorted((r[0], int(r[1])) for r in df.collect())


def _existing(target: Path) -> None:
    target.mkdir()
    pq.write_table(pa.table({"k": ["old"], "n": [9]}), target / "part-old.parquet")
    (target / "k=old").mkdir()
    pq.write_table(pa.table({"n": [9]}), target / "k=old" / "part-older.parquet")


def _listed(target: Path) -> dict[str, bytes]:
    return {str(p.relative_to(target)): p.read_bytes() for p in target.rglob("*") if p.is_file()}


@pytest.fixture(scope="module")
def published(spark: SparkSession, source: Path, tmp_path_factory: pytest.TempPathFactory) -> Published:
    """One run that writes in every format and mode."""
    folder = tmp_path_factory.mktemp("published")
    for name in ("overwritten", "ignored"):
        _existing(folder / name)
    (folder / "file").write_bytes(b"a file")
    before = _listed(folder / "ignored")

    def write(rows: sv.Frame) -> None:
        def at(name: str) -> str:
            return str(folder / name)

        rows.write.parquet(at("parquet"), name="parquet")
        rows.write.csv(at("csv"), name="csv", header=True)
        rows.write.json(at("json"), name="json")
        rows.write.partitionBy("k").parquet(at("partitions"), name="partitions")
        rows.write.mode("overwrite").parquet(at("overwritten"), name="overwritten")
        rows.write.mode("overwrite").parquet(at("file"), name="file")
        rows.write.mode("append").parquet(at("new and appended"), name="appended")
        rows.write.mode("ignore").parquet(at("ignored"), name="ignored")
        rows.write.mode("ignore").parquet(at("new"), name="new")

    run = _run(spark, source, folder, write).wait(progress=False)
    return Published(folder, sv.open(str(run.recording)), before)


@pytest.mark.parametrize("format", ["parquet", "csv", "json"])
def test_every_format_is_published_with_its_options_and_read_back(
    format: str, spark: SparkSession, published: Published
) -> None:
    options: dict[str, Any] = {"header": True} if format == "csv" else {}
    target = published.folder / format
    assert _read(spark, target, format, **options) == ROWS
    assert (target / "_SUCCESS").exists()
    assert published.past.history.published[format].files == len(list(target.glob("part-*")))


def test_partitions_become_folders(spark: SparkSession, published: Published) -> None:
    target = published.folder / "partitions"
    assert {p.name for p in target.iterdir() if p.is_dir()} == {"k=a", "k=b"}
    assert _read(spark, target) == ROWS


def test_mode_error_refuses_a_target_with_content_before_anything_runs(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    target = tmp_path / "out"
    _existing(target)
    before = _listed(target)
    with pytest.raises(StorageProblem, match="exists already") as caught:
        _run(spark, source, tmp_path, lambda r: r.write.parquet(str(target), name="W"))
    assert caught.value.operator == "W"
    assert "overwrite" in (caught.value.hint or "")
    assert _listed(target) == before
    assert not (tmp_path / "runs").exists() or not any((tmp_path / "runs").iterdir())


def test_mode_overwrite_leaves_only_the_new_rows(published: Published) -> None:
    target = published.folder / "overwritten"
    assert _rows(target) == ROWS
    assert not (target / "k=old").exists()


def test_mode_overwrite_replaces_a_single_file(published: Published) -> None:
    assert _rows(published.folder / "file") == ROWS


def test_mode_append_keeps_the_old_rows_and_adds_each_runs_own(
    spark: SparkSession, source: Path, published: Published, tmp_path: Path
) -> None:
    target = published.folder / "new and appended"
    assert _rows(target) == ROWS
    _run(spark, source, tmp_path, lambda r: r.write.mode("append").parquet(str(target), name="W")).wait(
        progress=False
    )
    assert _rows(target) == sorted(2 * ROWS)


def test_mode_ignore_leaves_what_is_there_and_writes_where_nothing_is(published: Published) -> None:
    assert _listed(published.folder / "ignored") == published.ignored
    assert _rows(published.folder / "new") == ROWS


def test_two_operators_may_not_write_to_one_place(spark: SparkSession, source: Path, tmp_path: Path) -> None:
    def write(rows: sv.Frame) -> None:
        rows.write.parquet(str(tmp_path / "out"), name="V")
        rows.write.parquet(str(tmp_path / "." / "out"), name="W")

    with pytest.raises(WorkflowError, match="both write to"):
        _run(spark, source, tmp_path, write)


def test_a_run_that_fails_leaves_its_targets_untouched_and_a_resume_publishes(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    mark = tmp_path / "broken"
    mark.touch()
    targets = {mode: tmp_path / mode for mode in ("error", "overwrite", "append")}
    for mode, target in targets.items():
        if mode != "error":
            _existing(target)
    before = {mode: _listed(target) if target.exists() else None for mode, target in targets.items()}

    def write(rows: sv.Frame) -> None:
        for mode, target in targets.items():
            rows.write.mode(mode).parquet(str(target), name=mode)

    run = _run(spark, source, tmp_path, write, mark=str(mark))
    with pytest.raises(OperatorFailed):
        run.wait(progress=False)
    assert {m: _listed(target) if target.exists() else None for m, target in targets.items()} == before
    mark.unlink()
    sv.open(str(run.recording)).resume(spark).wait(progress=False)
    for mode, target in targets.items():
        new = [p for p in target.rglob("part-*.parquet") if "old" not in p.name]
        assert sorted((r["k"], r["n"]) for p in new for r in pq.read_table(p).to_pylist()) == ROWS, mode


@pytest.mark.parametrize("mode", ["error", "overwrite", "append", "ignore"])
def test_an_interrupted_publish_is_finished_by_a_resume(
    mode: str, spark: SparkSession, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "out"
    if mode in ("overwrite", "append"):
        _existing(target)
    real, moved = publication._move, 0

    def interrupted(file: Path, to: Path) -> None:
        nonlocal moved
        if moved == 1:
            raise OSError(5, "Input/output error")
        moved += 1
        real(file, to)

    with monkeypatch.context() as patched:
        patched.setattr(publication, "_move", interrupted)
        run = _run(spark, source, tmp_path, lambda r: r.write.mode(mode).parquet(str(target), name="W"))
        with pytest.raises(StorageProblem, match="Input/output error"):
            run.wait(progress=False)
    assert not (target / "_SUCCESS").exists()
    past = sv.open(str(run.recording))
    past.resume(spark).wait(progress=False)
    new = [p for p in target.rglob("part-*.parquet") if "old" not in p.name]
    assert sorted((r["k"], r["n"]) for p in new for r in pq.read_table(p).to_pylist()) == ROWS
    assert past.history.published["W"].files == len(new)
    past.resume(spark).wait(progress=False)  # and once more: nothing is left to do
    assert len([p for p in target.rglob("part-*.parquet") if "old" not in p.name]) == len(new)


def test_files_that_appear_at_the_target_meanwhile_are_not_mixed_with_ours(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    target, mark = tmp_path / "out", tmp_path / "broken"
    mark.touch()
    run = _run(spark, source, tmp_path, lambda r: r.write.parquet(str(target), name="W"), mark=str(mark))
    with pytest.raises(OperatorFailed):
        run.wait(progress=False)
    mark.unlink()
    _existing(target)
    before = _listed(target)
    with pytest.raises(StorageProblem, match="have appeared"):
        sv.open(str(run.recording)).resume(spark).wait(progress=False)
    assert _listed(target) == before


def test_a_move_onto_another_disk_shows_no_half_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, to = tmp_path / "part-1", tmp_path / "out" / "part-2"
    file.write_bytes(b"rows")
    to.parent.mkdir()
    real = Path.replace

    def other_disk(self: Path, target: Path) -> Path:
        if self == file:
            raise OSError(18, "Invalid cross-device link")
        return real(self, target)

    def torn(source: Path, target: Path) -> None:
        target.write_bytes(source.read_bytes()[:2])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", other_disk)
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "copy2", torn)
        with pytest.raises(OSError, match="No space left"):
            publication._move(file, to)
    assert list(to.parent.iterdir()) == []
    assert file.read_bytes() == b"rows"
    publication._move(file, to)
    assert to.read_bytes() == b"rows"
    assert not file.exists()
