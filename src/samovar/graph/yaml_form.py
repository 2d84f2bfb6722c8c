"""How YAML documents are read and written: plain words as in YAML 1.2, code as block text.

YAML 1.1 takes `on`, `yes` and `12:30` for booleans and numbers, and unquoted dates for dates; here they are text, so
that the key `on` of a join is a word. The writer quotes what a reader of either version would take for something else.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from typing import Any

import yaml

__all__ = ["Dumper", "Loader", "styled"]


class _Flow(list[Any]):
    """A list written on one line."""


class Dumper(yaml.SafeDumper):
    """Code as block text, short lists on one line, items indented below their key."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        return True


_REPEATED = 10
"""How many times larger aliases may make a document: enough for repeated settings, too little for an attack."""
_SMALL = 10_000
"""Parts that a document may always have, written out or by aliases."""


class Loader(yaml.SafeLoader):
    """Booleans are true and false, nothing else; no dates, no sexagesimal numbers; a key comes once.

    Aliases may make a document at most ten times larger: a few lines of aliases of aliases would otherwise keep every
    reader busy for hours.
    """

    def get_single_node(self) -> yaml.Node | None:
        top = super().get_single_node()
        sizes: dict[int, int] = {}
        if top is not None and _size(top, sizes) > max(_SMALL, _REPEATED * len(sizes)):
            problem = f"aliases make {sizes[id(top)]:,} parts of {len(sizes):,}; write them out, or use fewer"
            raise yaml.composer.ComposerError(None, None, problem, top.start_mark)
        return top

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Any] = set()
        for key, _ in node.value:
            if key.value in seen and key.value != "<<":
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key '{key.value}' comes twice", key.start_mark
                )
            seen.add(key.value if isinstance(key.value, str) else id(key))
        return super().construct_mapping(node, deep)


def _size(node: yaml.Node, sizes: dict[int, int]) -> int:
    """How many parts a node has when aliases are written out; `sizes` gets each node that is written once."""
    known = sizes.get(id(node))
    if known == 0:
        raise yaml.composer.ComposerError(None, None, "an alias of what it is part of", node.start_mark)
    if known is not None:
        return known
    sizes[id(node)] = 0  # under way
    parts: list[yaml.Node] = []
    if isinstance(node, yaml.SequenceNode):
        parts = node.value
    elif isinstance(node, yaml.MappingNode):
        parts = [part for pair in node.value for part in pair]
    sizes[id(node)] = 1 + sum(_size(part, sizes) for part in parts)
    return sizes[id(node)]


def _text_node(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    # PyYAML takes these for line breaks in plain and block text, and folds them: only escapes keep them.
    odd = any(ch in text for ch in "\r\x85\u2028\u2029\ufeff")
    return dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style='"' if odd else "|" if "\n" in text else None
    )


Dumper.add_representer(str, _text_node)
Dumper.add_representer(
    _Flow, lambda dumper, data: dumper.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=True)
)
_CORE: dict[str, tuple[str, str]] = {
    "null": (r"(?:~|null|Null|NULL|)\Z", "~nN"),
    "bool": (r"(?:true|True|TRUE|false|False|FALSE)\Z", "tTfF"),
    "int": (r"(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)\Z", "-+0123456789"),
    "float": (
        r"(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z",
        "-+.0123456789",
    ),
    "merge": (r"<<\Z", "<"),
}
Loader.yaml_implicit_resolvers = {}
for _tag, (_pattern, _first) in _CORE.items():
    Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), list(_first))
Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"\Z"), [""])
# The writer quotes what YAML 1.1 or 1.2 would take for something else than text, except the word `on`.
Dumper.yaml_implicit_resolvers = {
    first: [*pairs, *Loader.yaml_implicit_resolvers.get(first, [])]
    for first, pairs in yaml.SafeDumper.yaml_implicit_resolvers.items()
}
Dumper.yaml_implicit_resolvers["o"] = [
    ("tag:yaml.org,2002:bool", re.compile(r"(?:off)\Z")),
]


def _int_node(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int:
    text = loader.construct_scalar(node)
    return int(text, 0) if text[:2] in ("0o", "0x") else int(text)


def _float_node(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> float:
    text = loader.construct_scalar(node).lower()
    return float(text.replace(".inf", "inf").replace(".nan", "nan"))


Loader.add_constructor("tag:yaml.org,2002:int", _int_node)
Loader.add_constructor("tag:yaml.org,2002:float", _float_node)


def styled(value: Any) -> Any:
    """Lists of short scalars, and rows, on one line; everything else in block form."""
    if isinstance(value, dict):
        return {k: styled(v) for k, v in value.items()}
    if not isinstance(value, list | tuple):
        return value
    if _one_line(value):
        return _flow(value)
    return [_flow(v) if isinstance(v, list | tuple) and not _has_lines(v) else styled(v) for v in value]


def _flow(value: Any) -> Any:
    return _Flow(_flow(v) for v in value) if isinstance(value, list | tuple) else value


def _one_line(value: Sequence[Any]) -> bool:
    if any(isinstance(v, list | tuple | dict) for v in value) or _has_lines(value):
        return False
    return sum(len(str(v)) + 2 for v in value) <= 90


def _has_lines(value: Any) -> bool:
    """Whether some text in it has several lines, which only block form shows as such."""
    if isinstance(value, str):
        return "\n" in value
    if isinstance(value, dict):
        return any(_has_lines(v) for v in value.values())
    return isinstance(value, list | tuple) and any(_has_lines(v) for v in value)
