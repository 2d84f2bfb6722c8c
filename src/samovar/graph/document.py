"""Workflow documents: a workflow as plain data, as YAML or JSON text, and back.

The form is that of the operators' fields (see `samovar.graph.operators`), one mapping an operator, tagged by `op`:

    samovar: 1
    name: shop
    operators:
      - {name: orders, op: read, format: parquet, path: [orders/]}
      - {name: large, op: filter, inputs: [orders], condition: amount > 100}
      - {name: S, op: sink, inputs: [large]}

Guarantees: what `dump` writes, `load` reads back as equal operators; loading runs no code of the document (Python
operators stay text until `samovar.graph.code` runs them); every error names the place in the document and what was
expected. Paths of a document that is a file are relative to that file's folder; otherwise to the current directory.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

import msgspec
import yaml

from samovar.errors import DocumentError, WorkflowError, did_you_mean, nearest
from samovar.graph import operators as ops
from samovar.graph.arguments import option_text
from samovar.graph.code import with_source
from samovar.graph.operators.base import Op, column_of, current_fields
from samovar.graph.schema import KINDS, VERSION, field_description, json_schema
from samovar.graph.values import Type, columns, decode, encode
from samovar.graph.workflow import Graph, Workflow, row_of
from samovar.graph.yaml_form import Dumper, Loader, styled
from samovar.text import shown, with_caret

__all__ = ["VERSION", "dump", "json_schema", "load", "load_operators", "to_document"]

_TOP = ("samovar", "name", "operators")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_TEXT_LIST = tuple[str, ...]


# --- writing --------------------------------------------------------------------------------------------------------


def to_document(
    workflow: Workflow | Graph, *, relative_to: str | os.PathLike[str] | None = None
) -> dict[str, Any]:
    """The workflow as plain data that JSON can hold; its PySpark Columns must have been turned into SQL text before.

    `relative_to` is the folder the document will lie in: paths below it are written relative to it.
    """
    graph = workflow.graph() if isinstance(workflow, Workflow) else workflow
    folder = None if relative_to is None else os.path.abspath(relative_to)
    operators = [_written(op, graph.live.get(op.name), folder) for op in graph.ops.values()]
    return {"samovar": VERSION, "name": graph.name, "operators": operators}


def dump(
    workflow: Workflow | Graph | Mapping[str, Any],
    format: Literal["yaml", "json"] = "yaml",
    *,
    relative_to: str | os.PathLike[str] | None = None,
) -> str:
    """The workflow (or a document that `to_document` made) as YAML or JSON text."""
    if format not in ("yaml", "json"):
        raise WorkflowError(f"Expected format='yaml' or 'json', got {format!r}.")
    if isinstance(workflow, Mapping):
        document = dict(workflow)
    else:
        document = to_document(workflow, relative_to=relative_to)
    if format == "json":
        return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    document["operators"] = [{k: styled(v) for k, v in op.items()} for op in document["operators"]]
    text: str = yaml.dump(
        document,
        Dumper=Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=sys.maxsize,
        default_flow_style=False,
    )
    return text


def _written(op: Op, live: Any, folder: str | None) -> dict[str, Any]:
    if isinstance(op, ops.FrameSource):
        raise WorkflowError(
            f"Operator '{op.name}' reads a live DataFrame, which a document cannot hold.",
            hint="Read its files with flow.read.parquet(path), or give few rows with flow.values(schema, rows).",
            operator=op.name,
        )
    for text in op.expressions():
        if column_of(text) is not None:
            raise WorkflowError(
                f"Operator '{op.name}' ({op.kind}) holds the PySpark Column {text}, which has no SQL text.",
                hint="Use a SQL string there: it goes into a document as it is.",
                operator=op.name,
            )
    op = op.with_expressions(tuple(map(str, op.expressions())))
    try:
        op = with_source(op, live)
        op = _with_cells(op, encode) if isinstance(op, ops.Values) else op
    except WorkflowError as error:
        raise WorkflowError(
            f"Operator '{op.name}': {error.message}", hint=error.hint, operator=op.name
        ) from error
    except ValueError as error:
        hint = "Use plain values: numbers, texts, dates, decimals, bytes, lists, mappings."
        raise WorkflowError(f"Operator '{op.name}': {error}.", hint=hint, operator=op.name) from error
    if isinstance(op, ops.Replace):
        op = msgspec.structs.replace(op, pairs=tuple((_finite(a), _finite(b)) for a, b in op.pairs))
    elif isinstance(op, ops.FillNa):
        value = op.value
        plain = {k: _finite(v) for k, v in value.items()} if isinstance(value, dict) else _finite(value)
        op = msgspec.structs.replace(op, value=plain)
    if folder is not None:
        op = _with_paths(op, lambda path: _relative(path, folder))
    fields: dict[str, Any] = _with_lists(msgspec.to_builtins(op))
    return {k: fields.pop(k) for k in ("name", "op", "inputs") if k in fields} | fields


def _with_lists(value: Any) -> Any:
    """Tuples as lists, all the way down: what JSON would give back."""
    if isinstance(value, dict):
        return {k: _with_lists(v) for k, v in value.items()}
    return [_with_lists(v) for v in value] if isinstance(value, list | tuple) else value


def _with_cells(op: ops.Values, convert: Callable[[Any, Type], Any]) -> ops.Values:
    """The operator with each cell converted by the type of its column. Raises ValueError that names the cell."""
    types = columns(op.schema)

    def cell(index: int, value: Any, column: str, of: Type) -> Any:
        try:
            return convert(value, of)
        except ValueError as error:
            raise ValueError(f"row {index}, column '{column}': {error}") from None

    rows = (
        tuple(cell(index, value, *of) for value, of in zip(row, types, strict=True))
        for index, row in enumerate(op.rows)
    )
    return msgspec.structs.replace(op, rows=tuple(rows))


def _finite(value: Any) -> Any:
    """NaN and the infinities, which JSON lacks, as `{$float: NaN}`."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"$float": encode(value, _ANY)}
    return value


def _from_finite(value: Any) -> Any:
    if isinstance(value, Mapping) and list(value) == ["$float"] and value["$float"] in _NOT_FINITE:
        return float(value["$float"])
    return value


_ANY = columns("x double")[0][1]
_NOT_FINITE = ("NaN", "Infinity", "-Infinity")


def _with_paths(op: Op, change: Callable[[str], str]) -> Op:
    if isinstance(op, ops.Read):
        return msgspec.structs.replace(op, path=tuple(change(p) for p in op.path))
    if isinstance(op, ops.Write):
        return msgspec.structs.replace(op, path=change(op.path))
    if isinstance(op, ops.Query) and op.database:
        return msgspec.structs.replace(op, database=change(op.database))
    return op


def _relative(path: str, folder: str) -> str:
    """A path as a document in a folder names it. In Python a relative path starts from the current directory."""
    if _URI.match(path):
        return path
    below = (os.path.abspath(path) + os.sep).startswith(folder.rstrip(os.sep) + os.sep)
    if os.path.isabs(path) and not below:
        return path
    return os.path.relpath(path, folder) + (os.sep if path.endswith(os.sep) else "")


def _below(path: str, folder: str) -> str:
    """The path that a document in a folder names."""
    return path if _URI.match(path) or os.path.isabs(path) else os.path.join(folder, path)


# --- reading --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Source:
    """A document as it was given: its data, and for error messages where it stood."""

    data: Any
    label: str
    text: str | None = None
    folder: str | None = None

    def at(self, index: int) -> str:
        """Where an operator stands: `flow.yaml, line 12`."""
        line = self._line(index)
        return self.label if line is None else f"{self.label}, line {line}"

    def _line(self, index: int) -> int | None:
        if self.text is None:
            return None
        try:
            top = yaml.compose(self.text, Loader=Loader)
        except (yaml.YAMLError, RecursionError):
            return None
        for key, value in getattr(top, "value", ()):
            if key.value == "operators" and isinstance(value, yaml.SequenceNode) and index < len(value.value):
                return int(value.value[index].start_mark.line) + 1
        return None


def load(document: Any, *, folder: str | os.PathLike[str] | None = None) -> Workflow:
    """A workflow from plain data, from YAML or JSON text, or from the path of a file that holds it.

    A one-line text that is not a mapping is taken for a path. `folder` is what relative paths in the document are
    relative to; by default the folder of the file, and for text and data the current directory, as in Python. Raises
    DocumentError for what cannot be read, and the graph's own errors for names and edges that do not fit.
    """
    source = _opened(document, folder)
    name, items = _top_level(source)
    return Workflow.of(name, [_operator(source, i, item) for i, item in enumerate(items)])


def load_operators(
    document: Any, *, folder: str | os.PathLike[str] | None = None
) -> tuple[list[Op], list[DocumentError]]:
    """The operators that can be read, and an error for each that cannot; names and edges are not checked.

    For tools that show everything that is wrong with a document, where `load` stops at the first error.
    """
    source = _opened(document, folder)
    _, items = _top_level(source)
    operators: list[Op] = []
    errors: list[DocumentError] = []
    for index, item in enumerate(items):
        try:
            operators.append(_operator(source, index, item))
        except DocumentError as error:
            errors.append(error)
    return operators, errors


def _opened(document: Any, folder: str | os.PathLike[str] | None) -> _Source:
    place = None if folder is None else os.path.abspath(folder)
    if isinstance(document, Mapping):
        return _Source(document, "the document", folder=place)
    if isinstance(document, bytes):
        document = _utf8(document, "the document")
    if isinstance(document, str) and _is_text(document):
        return _Source(_parsed(document, "the document"), "the document", document, place)
    if not isinstance(document, str | os.PathLike):
        raise DocumentError(
            f"Expected a workflow document as a mapping, text or path, got {type(document).__name__}.",
            hint="A document is a mapping with samovar, name and operators.",
        )
    path = os.fspath(document)
    try:
        with open(path, "rb") as file:
            raw = file.read()
    except OSError as error:
        raise DocumentError(
            f"Expected a workflow document at '{path}', got: {error.strerror or error}.",
            hint=_beside(path),
        ) from error
    text = _utf8(raw, path)
    return _Source(_parsed(text, path), path, text, place or os.path.dirname(os.path.abspath(path)))


def _is_text(document: str) -> bool:
    """Whether a text is a document and not the path of one."""
    if "\n" in document or document.lstrip().startswith("{"):
        return True
    return re.match(r"\s*[\w'\"]+:(\s|$)", document) is not None and not os.path.exists(document)


def _beside(path: str) -> str | None:
    """The hint for a document that is not there: what lies in its folder."""
    folder = os.path.dirname(path) or "."
    try:
        names = [n for n in os.listdir(folder) if n.endswith((".yaml", ".yml", ".json"))]
    except OSError:
        return f"The folder '{folder}' does not exist either."
    close = nearest(os.path.basename(path), names)
    if close:
        return f"Did you mean '{os.path.join(os.path.dirname(path), close)}'?"
    return f"Documents in '{folder}': {', '.join(sorted(names)[:8])}." if names else None


def _utf8(raw: bytes, label: str) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise DocumentError(f"{label} is not UTF-8 text (line {line}).", hint="Save it as UTF-8.") from None


def _parsed(text: str, label: str) -> Any:
    try:
        if label.endswith(".json") or re.match(r'\s*\{\s*"', text):
            try:
                return json.loads(text, object_pairs_hook=_once)
            except json.JSONDecodeError as error:
                raise _unreadable(label, "JSON", text, error.lineno, error.colno, error.msg) from None
        return yaml.load(text, Loader=Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = " ".join(str(p) for p in (error.context, error.problem) if p) or "not understood"
        if mark is None:
            raise DocumentError(f"{label} is not readable as YAML: {problem}.") from None
        raise _unreadable(label, "YAML", text, mark.line + 1, mark.column + 1, problem) from None
    except yaml.reader.ReaderError as error:
        line, column = _line_and_column(text, error.position)
        raise _unreadable(label, "YAML", text, line, column, str(error.reason)) from None
    except _Twice as error:
        raise DocumentError(f"{label}: the key '{error}' comes twice in one mapping.") from None
    except (RecursionError, ValueError, yaml.YAMLError) as error:
        raise DocumentError(f"{label} is not readable: {error}.") from None


class _Twice(Exception):
    """A JSON object with the same key twice."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        names = [k for k, _ in pairs]
        raise _Twice(next(k for k in names if names.count(k) > 1))
    return mapping


def _line_and_column(text: str, position: int) -> tuple[int, int]:
    return text.count("\n", 0, position) + 1, position - (text.rfind("\n", 0, position) + 1) + 1


def _unreadable(label: str, form: str, text: str, line: int, column: int, problem: str) -> DocumentError:
    lines = text.splitlines()
    place = with_caret(lines[line - 1], column - 1) if 1 <= line <= len(lines) else ""
    hint = "Indent with blanks, not tabs." if "'\\t'" in problem else None
    return DocumentError(
        f"{label} is not readable as {form}: line {line}, column {column}: {problem}{place}", hint=hint
    )


def _top_level(source: _Source) -> tuple[str, Sequence[Any]]:
    data = source.data
    if not isinstance(data, Mapping):
        got = "nothing" if data is None else _word(data)
        raise DocumentError(
            f"{source.label}: expected a mapping with samovar, name and operators, got {got}.",
            hint=f"A document starts with 'samovar: {VERSION}'.",
        )
    version = data.get("samovar")
    if version is None:
        raise DocumentError(
            f"{source.label}: expected the document's version in 'samovar', got none.",
            hint=f"Put 'samovar: {VERSION}' on the first line.",
        )
    if type(version) is not int or version != VERSION:
        newer = type(version) is int and version > VERSION
        hint = "It was written for a newer Samovar: upgrade." if newer else f"Write 'samovar: {VERSION}'."
        raise DocumentError(
            f"{source.label}: expected document version {VERSION} in 'samovar', got {version!r}.", hint=hint
        )
    for key in data:
        if key not in _TOP:
            raise DocumentError(
                f"{source.label}: expected the fields {', '.join(_TOP)}, got '{key}'.",
                hint=did_you_mean(key, _TOP),
            )
    name, items = data.get("name"), data.get("operators")
    if not isinstance(name, str):
        raise DocumentError(f"{source.label}: expected the workflow's name in 'name', got {_word(name)}.")
    if not isinstance(items, list | tuple):
        raise DocumentError(
            f"{source.label}: expected a list in 'operators', got {_word(items)}.",
            hint="Each operator is an item: '- name: ...'.",
        )
    return name, items


def _operator(source: _Source, index: int, written: Any) -> Op:
    if not isinstance(written, Mapping):
        raise DocumentError(
            f"{source.at(index)}: expected operator number {index + 1} to be a mapping with name and op, "
            f"got {_word(written)}."
        )
    # `on` without quotes is the truth value True in YAML
    item = current_fields({("on" if key is True else key): value for key, value in written.items()})
    name = item.get("name")
    who = f"Operator '{name}'" if isinstance(name, str) else f"Operator number {index + 1}"

    def wrong(message: str, hint: str | None = None) -> DocumentError:
        return DocumentError(
            f"{who} ({source.at(index)}): {message}",
            hint=hint,
            operator=name if isinstance(name, str) else None,
        )

    if not isinstance(name, str):
        raise wrong(
            f"expected its name in 'name', got {_word(name)}.", "Each operator has a name of its own."
        )
    kind = item.get("op")
    if kind is None:
        raise wrong("expected 'op', got none.", f"Known: {', '.join(KINDS)}.")
    if kind == "frame":
        raise wrong(
            "a live DataFrame ('frame') cannot come from a document.", "Use op: read, table or values."
        )
    if not isinstance(kind, str) or kind not in KINDS:
        hint = did_you_mean(kind, KINDS, f"Known: {', '.join(KINDS)}.")
        raise wrong(f"expected a known operator in 'op', got {kind!r}.", hint)
    fields = {f.encode_name: f for f in msgspec.structs.fields(KINDS[kind])}
    if "input" in item:
        if "inputs" in item:
            raise wrong("expected 'input' or 'inputs', got both.")
        item["inputs"] = item.pop("input")
    for key in item:
        if key not in fields and key != "op":
            hint = did_you_mean(key, fields, f"Its fields: {', '.join(fields)}.")
            raise wrong(f"'{kind}' has no field '{key}'.", hint)
    for key, field in fields.items():
        if key in item:
            item[key] = _lenient(item[key], field)
        elif field.required:
            raise wrong(f"'{kind}' needs the field '{key}'.", field_description(kind, key))
    try:
        if (
            kind == "values"
            and isinstance(item["schema"], str)
            and isinstance(item.get("rows"), list | tuple)
        ):
            names = [column for column, _ in columns(item["schema"])]
            item["rows"] = [row_of(names, row, number, name) for number, row in enumerate(item["rows"])]
        op = msgspec.convert(item, KINDS[kind])
        op = _with_cells(op, decode) if isinstance(op, ops.Values) else op
    except msgspec.ValidationError as error:
        raise wrong(*_explained(error, item, fields)) from None
    except RecursionError:
        raise wrong("it refers to itself.") from None
    except WorkflowError as error:
        raise wrong(error.message, error.hint) from None
    except ValueError as error:
        raise wrong(f"{error}.") from None
    folder = source.folder
    return op if folder is None else _with_paths(op, lambda path: _below(path, folder))


def _lenient(value: Any, field: msgspec.structs.FieldInfo) -> Any:
    """One text where a list of texts is meant; numbers and booleans as options; NaN as it is written."""
    if isinstance(value, str) and (field.type == _TEXT_LIST or _TEXT_LIST in get_args(field.type)):
        return [value]
    if field.encode_name == "options" and isinstance(value, Mapping):
        return {k: option_text(v) if isinstance(v, int | float) else v for k, v in value.items()}
    if field.encode_name == "value":
        plain = _from_finite(value)
        return {k: _from_finite(v) for k, v in plain.items()} if isinstance(plain, Mapping) else plain
    if field.encode_name == "pairs" and isinstance(value, list | tuple):
        return [[_from_finite(v) for v in pair] if isinstance(pair, list | tuple) else pair for pair in value]
    return value


_WORDS = {
    "array": "a list",
    "object": "a mapping",
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "null": "nothing",
}


def _explained(
    error: msgspec.ValidationError, item: Mapping[str, Any], fields: Mapping[str, msgspec.structs.FieldInfo]
) -> tuple[str, str | None]:
    """A validation error in the words of a document, and a hint."""
    text = str(error)
    message, _, path = text.partition(" - at `$")
    path = path.rstrip("`").lstrip(".")
    key = re.split(r"[.\[]", path, maxsplit=1)[0]
    where = f"field '{path}': " if path else ""
    field = fields.get(key)
    choices = _choices(field.type) if field is not None else []
    if choices and isinstance(item.get(key), str):
        return (
            f"{where}expected one of {', '.join(choices)}, got '{item[key]}'.",
            did_you_mean(item[key], choices),
        )
    mismatch = re.match(r"Expected `([^`]+)`, got `([^`]+)`", message)
    if mismatch is None:
        return f"{where}{message}.", None
    kinds = [kind.strip() for kind in mismatch[1].split("|") if kind.strip() != "null"]
    expected = " or ".join(_WORDS.get(kind, kind) for kind in kinds)
    got = _word(item[key]) if key in item and path == key else _WORDS.get(mismatch[2], mismatch[2])
    return f"{where}expected {expected}, got {got}.", field_description(str(item["op"]), key)


def _choices(of: Any) -> list[str]:
    if get_origin(of) is Literal:
        return [str(a) for a in get_args(of)]
    return [c for a in get_args(of) if get_origin(a) is Literal for c in _choices(a)]


def _word(value: Any) -> str:
    """A value as an error message shows it."""
    if value is None:
        return "nothing"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    return shown(value, 60)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n")
