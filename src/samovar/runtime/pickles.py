"""Code for workers and recordings: pickled by value, unless it is installed."""

from __future__ import annotations

import site
import sys
import sysconfig
from types import ModuleType
from typing import Any

from pyspark import cloudpickle

from samovar.errors import WorkflowError
from samovar.runtime.exchange.user_errors import unpicklable

__all__ = ["by_value"]


def by_value(thing: Any, operator: str | None = None) -> bytes:
    """Pickle an operator or function so that a worker, or a later process, needs no source file of the user's.

    Modules that are installed (site-packages, the standard library, samovar) go by name; the user's own go by value.
    """
    users = [m for m in _modules(thing) if not _is_installed(m)]
    for module in users:
        cloudpickle.register_pickle_by_value(module)
    try:
        return bytes(cloudpickle.dumps(thing))
    except Exception as error:
        name = getattr(thing, "__name__", None) or type(thing).__name__
        attribute = unpicklable(thing)
        about = f"its attribute '{attribute[0]}' cannot be pickled ({error})" if attribute else str(error)
        raise WorkflowError(
            f"Expected {name} to be something that can be sent to Spark's workers, but {about}.",
            hint="Open connections, locks and files in process() when they are first needed, not in the constructor.",
            operator=operator,
        ) from None
    finally:
        for module in users:
            cloudpickle.unregister_pickle_by_value(module)


def _modules(thing: Any) -> set[ModuleType]:
    """The modules of an object's classes, and the modules that they import (a user's helpers may be among them)."""
    modules: set[ModuleType] = set()
    classes = type(thing).__mro__ if not hasattr(thing, "__code__") else ()
    names = {c.__module__ for c in classes} | {getattr(thing, "__module__", "")}
    for name in names:
        module = sys.modules.get(name)
        if module is not None:
            modules.add(module)
            for value in vars(module).values():
                name = getattr(value, "__module__", None) or ""
                used = value if isinstance(value, ModuleType) else sys.modules.get(name)
                if used is not None:
                    modules.add(used)
    return modules


def _is_installed(module: ModuleType) -> bool:
    """Whether workers have a module too. `__main__` counts: cloudpickle always pickles it by value."""
    name, file = module.__name__, getattr(module, "__file__", None)
    top = name.split(".")[0]
    if top in ("__main__", "samovar", "builtins") or not file or top in sys.stdlib_module_names:
        return True
    paths = sysconfig.get_paths()
    folders = [paths["stdlib"], paths["purelib"], paths["platlib"], site.getusersitepackages()]
    return str(file).startswith((*folders, *site.getsitepackages()))
