"""The control layer works where there is no Spark."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import importlib, pkgutil, sys
import samovar.control
for module in pkgutil.walk_packages(samovar.control.__path__, "samovar.control."):
    importlib.import_module(module.name)
loaded = sorted(m for m in sys.modules if m.split(".")[0] in ("pyspark", "py4j", "pandas", "pyarrow", "asyncio"))
assert not loaded, loaded
"""


def test_the_control_layer_imports_no_pyspark() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
