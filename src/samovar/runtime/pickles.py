"""Code sent to workers and kept in recordings: pickled by value unless it is installed."""

from __future__ import annotations

import site
import sys
import sysconfig
from types import ModuleType
from typing import Any

from pyspark import cloudpickle

from samovar.errors import WorkflowError

__all__ = ["by_value"]


def by_value(thing: Any, operator: str | None = None) -> bytes:
    """Pickle an operator or function so that a worker, or a later process, needs no source file of the user's.

    Modules that are installed (site-packages, the standard library, samovar) go by name; the user's own go by value.
    """
    own = [m for m in _modules(thing) if _is_own(m)]
    for module in own:
        cloudpickle.register_pickle_by_value(module)
    try:
        return bytes(cloudpickle.dumps(thing))
    except Exception as error:
        name = getattr(thing, "__name__", None) or type(thing).__name__
        culprit = _culprit(thing)
        about = f"its attribute '{culprit}' cannot be pickled ({error})" if culprit else str(error)
        raise WorkflowError(
            f"Expected {name} to be something that can be sent to Spark's workers, but {about}.",
            hint="Open connections, locks and files in process() when they are first needed, not in the constructor.",
            operator=operator,
        ) from None
    finally:
        for module in own:
            cloudpickle.unregister_pickle_by_value(module)


def _culprit(thing: Any) -> str | None:
    """The attribute that cannot be pickled."""
    for name, value in getattr(thing, "__dict__", {}).items():
        if name == "_sv_params":
            continue
        try:
            cloudpickle.dumps(value)
        except Exception:
            return str(name)
    return None


def _modules(thing: Any) -> set[ModuleType]:
    found: set[ModuleType] = set()
    classes = type(thing).__mro__ if not hasattr(thing, "__code__") else ()
    names = {c.__module__ for c in classes} | {getattr(thing, "__module__", "")}
    for name in names:
        module = sys.modules.get(name)
        if module is not None:
            found.add(module)
            # helpers of the user's that the module imports
            for value in vars(module).values():
                other = (
                    value
                    if isinstance(value, ModuleType)
                    else sys.modules.get(getattr(value, "__module__", "") or "")
                )
                if other is not None:
                    found.add(other)
    return found


def _is_own(module: ModuleType) -> bool:
    name = module.__name__
    if name == "__main__" or name.split(".")[0] in ("samovar", "builtins"):
        return False
    file = getattr(module, "__file__", None)
    if not file or name.split(".")[0] in sys.stdlib_module_names:
        return False
    paths = sysconfig.get_paths()
    installed = [
        *site.getsitepackages(),
        site.getusersitepackages(),
        paths["stdlib"],
        paths["purelib"],
        paths["platlib"],
    ]
    return not any(file.startswith(p) for p in installed)
