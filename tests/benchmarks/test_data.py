"""Generated data sets: same seed, same bytes; the shape of the real ones; words at stated frequencies."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from benchmarks.data import Data, DataError
from benchmarks.logic import KnnSentiment, sentiment_of_rating

GENERATED = ("tweets", "all_beauty", "luxury_beauty")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Data:
    made = Data(0.02, tmp_path_factory.mktemp("bench"))
    made.ensure(GENERATED, progress=False)
    return made


def share(table: pa.Table, keyword: str) -> float:
    hits = pc.match_substring(table["text"], keyword, ignore_case=True)
    return float(pc.mean(hits.cast(pa.float64())).as_py())


def bytes_of(data: Data, name: str) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(Path(data.path(name)).iterdir())}


@pytest.mark.parametrize("name", GENERATED)
def test_the_same_scale_gives_the_same_bytes(name: str, tmp_path: Path) -> None:
    first, second = Data(0.001, tmp_path / "a"), Data(0.001, tmp_path / "b")
    first.ensure([name], progress=False)
    second.ensure([name], progress=False)

    assert bytes_of(first, name) == bytes_of(second, name)
    assert len(bytes_of(first, name)) >= 2


@pytest.mark.parametrize(
    ("name", "rows", "attributes"),
    [("tweets", 20_000, 34), ("all_beauty", 7_420, 14), ("luxury_beauty", 11_480, 14)],
)
def test_rows_and_attributes_are_those_of_the_real_data_set(
    data: Data, name: str, rows: int, attributes: int
) -> None:
    table = pq.read_table(data.path(name))

    assert table.num_rows == rows
    assert len(table.column_names) == attributes
    assert all(column.null_count < rows for column in table.columns)


def test_tweets_lie_in_time_order_between_november_and_april(data: Data) -> None:
    created = pq.read_table(data.path("tweets"), columns=["created_at"])["created_at"]

    months = pc.strftime(created, "%Y-%m")
    assert sorted(months.unique().to_pylist()) == [
        "2019-11", "2019-12", "2020-01", "2020-02", "2020-03", "2020-04",
    ]  # fmt: skip
    assert created.to_pylist() == sorted(created.to_pylist())


def test_tweets_have_unique_ids_and_consistent_users(data: Data) -> None:
    table = pq.read_table(data.path("tweets"), columns=["id", "user_id", "user_name", "location"])

    assert pc.count_distinct(table["id"]).as_py() == table.num_rows
    users = table.group_by("user_name").aggregate(
        [("user_id", "count_distinct"), ("location", "count_distinct")]
    )
    assert pc.max(users["user_id_count_distinct"]).as_py() == 1
    assert pc.max(users["location_count_distinct"]).as_py() == 1
    assert 0.05 < users.num_rows / table.num_rows < 0.5, "few users write many tweets"


@pytest.mark.parametrize(
    ("keyword", "low", "high"),
    [
        ("happy", 0.02, 0.06),
        ("glad", 0.004, 0.012),
        ("birthday", 0.006, 0.015),
        ("new year", 0.001, 0.01),
        ("climate", 0.01, 0.03),
        ("fire", 0.01, 0.04),
    ],
)
def test_searched_words_come_up_at_realistic_frequencies(
    data: Data, keyword: str, low: float, high: float
) -> None:
    assert low < share(pq.read_table(data.path("tweets"), columns=["text"]), keyword) < high


def test_words_follow_zipf(data: Data) -> None:
    text = pq.read_table(data.path("tweets"), columns=["text"])["text"]
    counts = pc.value_counts(pc.list_flatten(pc.split_pattern(text, " "))).field("counts")
    ranked = sorted(counts.to_pylist(), reverse=True)

    assert 5 < ranked[9] / ranked[99] < 20
    assert 5 < ranked[99] / ranked[999] < 20


def test_reviews_speak_as_they_rate_so_that_the_model_beats_the_majority(data: Data) -> None:
    table = pq.read_table(data.path("luxury_beauty"), columns=["reviewText", "overall"])
    model = KnnSentiment()
    pairs = list(zip(table["reviewText"].to_pylist(), table["overall"].to_pylist(), strict=True))
    truth = [sentiment_of_rating(overall) for _, overall in pairs]

    right = sum(model.step(*pair) == label for pair, label in zip(pairs, truth, strict=True))

    assert right > max(truth.count(label) for label in set(truth))


def test_the_model_depends_on_the_order_of_its_input(data: Data) -> None:
    table = pq.read_table(data.path("all_beauty"), columns=["reviewText", "overall"]).slice(0, 2_000)
    pairs = list(zip(table["reviewText"].to_pylist(), table["overall"].to_pylist(), strict=True))
    forwards, backwards = KnnSentiment(), KnnSentiment()

    onwards = [forwards.step(*pair) for pair in pairs]
    returning = [backwards.step(*pair) for pair in reversed(pairs)]

    assert onwards != returning[::-1]


def test_tpch_tables_come_as_several_files_that_sort_in_row_order(tmp_path: Path) -> None:
    data = Data(0.001, tmp_path)
    data.ensure(["orders", "nation"], progress=False)

    files = sorted(Path(data.path("orders")).iterdir())
    keys = pa.chunked_array(
        [pq.read_table(file, columns=["o_orderkey"])["o_orderkey"].combine_chunks() for file in files]
    )
    assert len(files) == 4
    assert len(keys) == 1_500
    assert keys.to_pylist() == sorted(keys.to_pylist())
    assert pq.read_table(data.path("nation")).num_rows == 25


def test_a_failed_generation_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> pa.Table:
        raise OSError("disk full")

    monkeypatch.setattr("benchmarks.data.tweets", fail)
    data = Data(0.001, tmp_path)

    with pytest.raises(OSError, match="disk full"):
        data.ensure(["tweets"], progress=False)

    assert not [path for path in tmp_path.rglob("*") if path.is_file() or "tweets" in path.name]


def test_an_unknown_data_set_is_named_in_the_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="got 'lineitems'"):
        Data(1.0, tmp_path).path("lineitems")
