"""Names of operators and workflows: one rule for the library, documents and the server."""

from __future__ import annotations

import re

import pytest

import samovar as sv
from samovar.errors import WorkflowError
from samovar.graph.document import dump, load
from samovar.graph.operator_names import SCHEMA_PATTERN, is_name


@pytest.mark.parametrize("name", ["FE", "_x", "large orders", "a.b-c_9", "Über", "налог", "売上", "é"])
def test_names_start_with_a_letter_of_any_script(name: str) -> None:
    assert is_name(name)
    assert re.search(SCHEMA_PATTERN, name)
    flow = sv.Workflow(name)
    flow.values("n int", [(1,)], name=name).sink("S")
    assert list(load(dump(flow)).graph().ops) == [name, "S"]


@pytest.mark.parametrize("name", ["", "9a", " a", ".a", "-a", "a/b", "a\nb", "a`b", "a:b", 7, None])
def test_other_names_are_refused(name: object) -> None:
    assert not is_name(name)
    assert not re.search(SCHEMA_PATTERN, str(name)) or not isinstance(name, str)
    with pytest.raises(WorkflowError, match="Expected a workflow name"):
        sv.Workflow(name)  # type: ignore[arg-type]
