"""Five reducers as they stand in production code (Xiao et al.), each of which depends on the order of its items.

Whether that is a bug is for the application to say, and there are three answers: the result has to be the same
always; it has to be under an assumption on the input; it may be one of several right ones. The table below is Figure
12 of DiffStream, with all of its cells: five bugs found, and none seen where there is none.

    python examples/diffstream/reducers.py
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from samovar.diff import Equality, accepts, equality, shake

N = 3
Items = list[dict[str, Any]]
Answer = dict[str, Any]


def reducer(schema: str, of_group: Callable[[list[tuple[int, int]]], Answer]) -> Callable[[Any], Any]:
    """A program that reduces the items (x, y) of each key k, in the order they arrive."""
    names = [field.split()[0] for field in schema.split(", ")]

    def program(df: Any) -> Any:
        def reduce(frame: pd.DataFrame) -> pd.DataFrame:
            pairs = zip(frame["x"].tolist(), frame["y"].tolist(), strict=True)
            answer = {"k": int(frame["k"].iloc[0]), **of_group(list(pairs))}
            return pd.DataFrame([answer], columns=names)

        return df.groupBy("k").applyInPandas(reduce, schema)

    return program


single_item = reducer("k int, x int", lambda items: {"x": items[0][0]})
index_value_pair = reducer("k int, pairs string", lambda items: {"pairs": str(sorted(dict(items).items()))})
max_row = reducer(
    "k int, x int, y int",
    lambda items: dict(zip("xy", max(items, key=lambda item: item[1]), strict=True)),
)
first_n = reducer("k int, items string", lambda items: {"items": ",".join(str(x) for x, _ in items[:N])})
str_concat = reducer("k int, items string", lambda items: {"items": "@".join(str(x) for x, _ in items)})


def some_items(count: int = 90, keys: int = 3) -> Items:
    """Items without any assumption."""
    return [{"k": n % keys, "x": n * 13 % 17, "y": n * 5 % 7} for n in range(count)]


def one_item_a_key(items: Items) -> Items:
    """SingleItem's assumption: all items of a key are the same."""
    return [{**item, "x": item["k"], "y": item["k"]} for item in items]


def y_by_x(items: Items) -> Items:
    """IndexValuePair's assumption: y is a function of x."""
    return [{**item, "y": item["x"] * 2 % 11} for item in items]


def no_ties(items: Items) -> Items:
    """MaxRow's assumption: one item has the largest y."""
    return [{**item, "y": number} for number, item in enumerate(items)]


def few_and_equal(items: Items) -> Items:
    """FirstN's assumption: no more than N items a key, and those the same."""
    return one_item_a_key(items)[: 3 * N]


def groups_of(items: Iterable[dict[str, Any]]) -> dict[int, Counter[int]]:
    """The items of each key."""
    made: dict[int, Counter[int]] = defaultdict(Counter)
    for item in items:
        made[item["k"]][item["x"]] += 1
    return made


def any_largest(items: Items) -> Equality:
    """MaxRow, where any item with the largest y will do: the reference says which y that is."""
    there = {(item["k"], item["x"], item["y"]) for item in items}
    return accepts(
        lambda reference, output: (
            (reference["k"], reference["y"]) == (output["k"], output["y"])
            and (output["k"], output["x"], output["y"]) in there
        )
    )


def any_n(items: Items) -> Equality:
    """FirstN, where any N items of the key will do: the reference says for which key, and how many."""
    groups = groups_of(items)

    def will_do(reference: Answer, output: Answer) -> bool:
        chosen = [int(x) for x in output["items"].split(",")]
        same = reference["k"] == output["k"] and len(chosen) == len(reference["items"].split(","))
        return same and not Counter(chosen) - groups[output["k"]]

    return accepts(will_do)


def any_order(items: Items) -> Equality:
    """StrConcat, where the order in the text does not matter."""
    return equality(key=lambda answer: (answer["k"], sorted(answer["items"].split("@"))))


@dataclass(frozen=True)
class Pattern:
    """A reducer, the assumption that makes it deterministic, and what will do where it need not be."""

    name: str
    program: Callable[[Any], Any]
    assumption: Callable[[Items], Items] | None = None
    tolerant: Callable[[Items], Equality] | None = None


PATTERNS = (
    Pattern("SingleItem", single_item, one_item_a_key),
    Pattern("IndexValuePair", index_value_pair, y_by_x),
    Pattern("MaxRow", max_row, no_ties, any_largest),
    Pattern("FirstN", first_n, few_and_equal, any_n),
    Pattern("StrConcat", str_concat, None, any_order),
)


def cells(pattern: Pattern, runs: int = 8) -> list[bool | None]:
    """A row of Figure 12: bug found; no false alarm under the assumption; none where anything right will do."""
    items = some_items()
    found: list[bool | None] = [not shake(pattern.program, items)]
    if pattern.assumption is None:
        found.append(None)
    else:
        found.append(bool(shake(pattern.program, pattern.assumption(items), runs=runs)))
    if pattern.tolerant is None:
        found.append(None)
    else:
        found.append(bool(shake(pattern.program, items, equal=pattern.tolerant(items), runs=runs)))
    return found


def main() -> None:
    """The table."""
    print(f"{'':16}{'determinism':14}{'assumption':14}{'none':6}")
    for pattern in PATTERNS:
        marks = ["n/a" if cell is None else "ok" if cell else "WRONG" for cell in cells(pattern)]
        print(f"{pattern.name:16}{marks[0]:14}{marks[1]:14}{marks[2]:6}")


if __name__ == "__main__":
    main()
