"""The ten most frequent words of a text."""

from __future__ import annotations

from pathlib import Path

import samovar as sv

TEXT = Path(__file__).parent / "data" / "tea.txt"


def build(text: Path = TEXT) -> sv.Workflow:
    """Lines to words, words to counts, counts in order."""
    flow = sv.Workflow("wordcount")
    lines = flow.read.text(text, name="lines")
    words = lines.selectExpr("explode(split(lower(value), '[^a-z]+')) AS word", name="split")
    counts = words.filter("word <> ''").groupBy("word").agg("count(*) AS n", name="count")
    counts.orderBy("n", "word", ascending=[False, True], name="sort").limit(10, name="top").sink("S")
    return flow


def main() -> None:
    run = build().run()
    for row in run.result("S").to_pylist():
        print(f"{row['n']:>4}  {row['word']}")


if __name__ == "__main__":
    main()
