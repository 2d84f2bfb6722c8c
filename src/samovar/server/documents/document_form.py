"""A workflow as a shared document (Yjs), and as a workflow document.

The shared form is made so that edits made at the same time merge into something sound:

    workflow    map: name
    operators   map: id -> map: name, op, x, y, fields -> map: field -> JSON text, or a shared text (`code`)
    edges       map: "<id of the operator>/<port>" -> id of the operator that feeds it
    comments    map: id -> map: text (shared), x, y, width, height; for people, no part of the document

`read` returns the workflow document. Whatever is in the shared form, also nonsense that a broken client sent, the
document has unique, well-formed names, inputs that exist, and no circle; `problems` lists what had to be skipped or
renamed for that. The document depends on the shared form alone, so all who have the same form read the same document.
"""

from __future__ import annotations

import json
import math
import re
import secrets
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeGuard

import numpy as np
from pycrdt import Doc, Map, Text

from samovar.graph.operator_names import is_name
from samovar.graph.schema import KINDS, VERSION

__all__ = [
    "Problem",
    "Reading",
    "arranged",
    "read",
    "read_comments",
    "shared_form",
    "write",
    "write_comment",
    "write_comments",
]

TEXTS = ("code",)
"""Fields that are shared texts: people type in them at the same time."""
_NOT_FIELDS = ("name", "op", "inputs", "input")
"""Keys of an operator in a workflow document that the shared form holds elsewhere."""
_EDGE = re.compile(r"(.+)/(\d{1,3})\Z", re.DOTALL)


@dataclass(frozen=True)
class Problem:
    """Something a person should mend: where, what, and what to do."""

    message: str
    hint: str | None = None
    operator: str | None = None
    kind: str = "WorkflowError"
    field: str | None = None


@dataclass(frozen=True)
class Reading:
    """The workflow document that `read` found in a shared document."""

    document: dict[str, Any]
    layout: dict[str, tuple[float, float]] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    """From names to ids of the shared form."""
    problems: tuple[Problem, ...] = ()


@dataclass
class _Item:
    id: str
    name: str
    kind: str
    place: tuple[float, float]
    fields: dict[str, Any]


def shared_form(doc: Doc[Any]) -> tuple[Map[Any], Map[Any], Map[Any]]:
    """The three maps of a shared document: workflow, operators, edges."""
    return (
        doc.get("workflow", type=Map),
        doc.get("operators", type=Map),
        doc.get("edges", type=Map),
    )


# --- reading --------------------------------------------------------------------------------------------------------


def read(doc: Doc[Any]) -> Reading:
    """The workflow document a shared document stands for."""
    workflow, operators, edges = shared_form(doc)
    problems: list[Problem] = []
    items = _items(operators, problems)
    _name_apart(items, problems)
    inputs = _inputs(items, edges, problems)
    names = {item.id: item.name for item in items}
    listed: list[dict[str, Any]] = []
    for item in items:
        ups = [names[up] for up in inputs.get(item.id, ())]
        listed.append({"name": item.name, "op": item.kind, **({"inputs": ups} if ups else {}), **item.fields})
    name = workflow.get("name")
    return Reading(
        {"samovar": VERSION, "name": name if _well_named(name) else "workflow", "operators": listed},
        {item.name: item.place for item in items},
        {item.name: item.id for item in items},
        tuple(problems),
    )


def _well_named(name: Any) -> TypeGuard[str]:
    return is_name(name) and len(name) <= 200


def _items(operators: Map[Any], problems: list[Problem]) -> list[_Item]:
    items: list[_Item] = []
    for id in sorted(operators.keys()):
        entry = operators[id]
        kind = entry.get("op") if isinstance(entry, Map) else None
        if not isinstance(entry, Map) or kind not in KINDS:
            problems.append(Problem(f"Skipped an entry that is not an operator (id {id[:40]!r})."))
            continue
        name = entry.get("name")
        if not _well_named(name):
            fallback = f"{kind}_{len(items) + 1}"
            message = f"Expected a name of letters, digits, '_', '.', '-' or blanks, got {str(name)[:40]!r}."
            hint = f"It is read as '{fallback}'; give it a name that starts with a letter or '_'."
            problems.append(Problem(message, hint, fallback))
            name = fallback
        items.append(_Item(id, name, kind, _place(entry), _fields(entry.get("fields"), name, problems)))
    return items


def _place(entry: Map[Any]) -> tuple[float, float]:
    x, y = entry.get("x"), entry.get("y")
    if isinstance(x, int | float) and isinstance(y, int | float) and abs(x) < 1e7 and abs(y) < 1e7:
        return float(x), float(y)
    return 0.0, 0.0


def _fields(shared: Any, name: str, problems: list[Problem]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key in sorted(shared.keys()) if isinstance(shared, Map) else ():
        value = shared[key]
        if key in _NOT_FIELDS:
            continue
        if isinstance(value, Text):
            fields[key] = str(value)
            continue
        try:
            fields[key] = json.loads(value, parse_constant=_no_constant)
        except (TypeError, ValueError, RecursionError):
            problems.append(Problem(f"The field '{key}' is not JSON.", "Set it again.", name, field=key))
    return fields


def _no_constant(word: str) -> Any:
    raise ValueError(f"JSON has no {word}")


def _name_apart(items: list[_Item], problems: list[Problem]) -> None:
    """Add a number to a name that occurs again. The first id keeps the name, so that all readers agree."""
    taken = {item.name for item in items}
    seen: set[str] = set()
    for item in items:
        if item.name in seen:
            fresh = next(name for n in count(2) if (name := f"{item.name}_{n}") not in taken)
            message = f"Two operators are called '{item.name}'; this one is read as '{fresh}'."
            problems.append(Problem(message, "Rename one of them.", fresh, "DuplicateName"))
            item.name = fresh
            taken.add(fresh)
        seen.add(item.name)


def _inputs(items: list[_Item], edges: Map[Any], problems: list[Problem]) -> dict[str, list[str]]:
    """For each operator the ids on its ports. Skips edges to missing operators, and edges that close a circle."""
    names = {item.id: item.name for item in items}
    feeds: dict[str, list[tuple[int, str]]] = {}
    reach: dict[str, set[str]] = {}

    def leads_to(start: str, target: str) -> bool:
        seen, waiting = set(), [start]
        while waiting:
            at = waiting.pop()
            if at == target:
                return True
            if at not in seen:
                seen.add(at)
                waiting += reach.get(at, ())
        return False

    for key in sorted(edges.keys()):
        match, source = _EDGE.match(key), edges[key]
        if match is None or not isinstance(source, str):
            continue
        target, port = match[1], int(match[2])
        if target not in names or source not in names:
            continue
        if leads_to(target, source):
            message = f"The edge from '{names[source]}' to '{names[target]}' closes a circle and is skipped."
            hint = "A workflow is acyclic: remove one of its edges."
            problems.append(Problem(message, hint, names[target], "CyclicWorkflow"))
            continue
        reach.setdefault(source, set()).add(target)
        feeds.setdefault(target, []).append((port, source))
    return {target: [source for _, source in sorted(ports)] for target, ports in feeds.items()}


# --- writing --------------------------------------------------------------------------------------------------------


def write(
    doc: Doc[Any], document: Mapping[str, Any], layout: Mapping[str, tuple[float, float]] | None = None
) -> None:
    """Change the shared document into a workflow document. What is the same already is not touched.

    `samovar.graph.document.load` must accept the document. Operators keep their ids by name.
    """
    ids = read(doc).ids
    wanted = {str(item["name"]): item for item in document["operators"]}
    places = dict(arranged(document))
    if layout is not None:
        places.update({name: place for name, place in layout.items() if name in wanted})
    workflow, operators, edges = shared_form(doc)
    with doc.transaction(origin="server"):
        if workflow.get("name") != document["name"]:
            workflow["name"] = str(document["name"])
        kept = {ids[name] for name in wanted if name in ids}
        for id in sorted(set(operators.keys()) - kept):
            del operators[id]
        for number, (name, item) in enumerate(wanted.items()):
            ids[name] = id = ids.get(name) or new_id(number)
            _write_operator(operators, id, item, places[name])
        links = {
            f"{ids[name]}/{port}": ids[up]
            for name, item in wanted.items()
            for port, up in enumerate(_ups(item))
        }
        for key in sorted(set(edges.keys()) - links.keys()):
            del edges[key]
        for key, source in links.items():
            if edges.get(key) != source:
                edges[key] = source


def write_comment(doc: Doc[Any], text: str) -> None:
    """Put a comment above the operators."""
    comments: Map[Any] = doc.get("comments", type=Map)
    _, operators, _ = shared_form(doc)
    places = [_place(entry) for entry in operators.values() if isinstance(entry, Map)]
    x, y = min((p[0] for p in places), default=60.0), min((p[1] for p in places), default=200.0)
    width, height = 460.0, 40.0 + 18.0 * sum(1 + len(line) // 62 for line in text.splitlines())
    with doc.transaction(origin="server"):
        comments[new_id()] = Map(
            {"text": Text(text), "x": x, "y": y - height - 30, "width": width, "height": height}
        )


def read_comments(doc: Doc[Any]) -> list[dict[str, Any]]:
    """The comments on the canvas, the oldest first; entries that are not comments are skipped."""
    comments: Map[Any] = doc.get("comments", type=Map)
    listed = (_comment(comments[id]) for id in sorted(comments.keys()))
    return [comment for comment in listed if comment is not None]


def write_comments(doc: Doc[Any], wanted: Sequence[Mapping[str, Any]]) -> None:
    """Make these the comments on the canvas. One that is there already is not touched."""
    comments: Map[Any] = doc.get("comments", type=Map)
    missing = [dict(one) for one in wanted]
    with doc.transaction(origin="server"):
        for id in sorted(comments.keys()):
            there = _comment(comments[id])
            if there in missing:
                missing.remove(there)
            else:
                del comments[id]
        for number, one in enumerate(missing):
            comments[new_id(number)] = Map({**one, "text": Text(str(one["text"]))})


def _comment(entry: object) -> dict[str, Any] | None:
    if not isinstance(entry, Map) or not isinstance(entry.get("text"), Text):
        return None
    comment: dict[str, Any] = {"text": str(entry["text"])}
    for key in ("x", "y", "width", "height"):
        size = entry.get(key)
        if not isinstance(size, int | float) or not math.isfinite(size):
            return None
        comment[key] = float(size)
    return comment


def new_id(number: int = 0) -> str:
    """An id that sorts after older ids: the time, a number, and random digits; as `newId` in web/ has it."""
    at = np.base_repr(int(time.time() * 1000), 36).lower()
    return f"{at:0>9}{np.base_repr(number, 36).lower():0>3}{secrets.token_hex(3)}"


def _ups(item: Mapping[str, Any]) -> list[str]:
    given = item.get("inputs", item.get("input", []))
    return [given] if isinstance(given, str) else list(given)


def _write_operator(
    operators: Map[Any], id: str, item: Mapping[str, Any], place: tuple[float, float]
) -> None:
    if id not in operators:
        operators[id] = Map()
        operators[id]["fields"] = Map()
    entry = operators[id]
    plain = {"name": str(item["name"]), "op": str(item["op"]), "x": float(place[0]), "y": float(place[1])}
    for key, value in plain.items():
        if entry.get(key) != value:
            entry[key] = value
    if not isinstance(entry.get("fields"), Map):
        entry["fields"] = Map()
    fields = entry["fields"]
    values = {k: v for k, v in item.items() if k not in _NOT_FIELDS}
    for key in sorted(set(fields.keys()) - values.keys()):
        del fields[key]
    for key, value in values.items():
        _write_field(fields, key, value)


def _write_field(fields: Map[Any], key: str, value: Any) -> None:
    old = fields.get(key)
    if key in TEXTS and isinstance(value, str):
        if not isinstance(old, Text):
            fields[key] = Text(value)
        elif str(old) != value:
            old.clear()
            old += value
        return
    text = json.dumps(value, ensure_ascii=False)
    if isinstance(old, Text) or old != text:
        fields[key] = text


def arranged(document: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """Places for operators: columns by their distance from the sources, in rows as they come."""
    ups = {str(item["name"]): _ups(item) for item in document["operators"]}
    column: dict[str, int] = {}
    for _ in ups:
        settled = {n: max((column.get(u, 0) + 1 for u in of if u in ups), default=0) for n, of in ups.items()}
        if settled == column:
            break
        column = settled
    rows: dict[int, Iterator[int]] = defaultdict(count)
    at = {name: column.get(name, 0) for name in ups}
    return {name: (60.0 + 240.0 * at[name], 60.0 + 130.0 * next(rows[at[name]])) for name in ups}
