"""The graph layer works where there is no Spark: importing it, building and writing workflows."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import importlib, pkgutil, sys
import samovar.graph
for module in pkgutil.walk_packages(samovar.graph.__path__, "samovar.graph."):
    importlib.import_module(module.name)
from samovar.graph.document import dump, load
from samovar.graph.workflow import Workflow
flow = Workflow("w")
flow.values("a int", [(1,)], name="v").filter("a > 0", name="f").groupBy("a").count(name="n").sink("S")
assert dump(load(dump(flow))) == dump(flow)
loaded = sorted(m for m in sys.modules if m.split(".")[0] in ("pyspark", "py4j", "pandas", "pyarrow"))
assert not loaded, loaded
"""


def test_building_and_writing_a_workflow_imports_no_pyspark() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
