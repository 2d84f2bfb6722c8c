"""A workflow from what a command line names: a document, or a Python file.

`flow.yaml`, `flow.json`: a document, which runs no code. `flow.py` or `flow.py:name`: the file is imported, never run
as `__main__`; what it defines under `name` is taken, else its one `sv.Workflow`, else what its function `build()`
returns. Other modules beside the file can be imported from it, as with `python flow.py`.
"""

from __future__ import annotations

import importlib.util
import inspect
import os
import re
import sys
import traceback
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from itertools import dropwhile
from pathlib import Path
from types import ModuleType
from typing import Any

from samovar.errors import SamovarError, WorkflowError, nearest
from samovar.graph.document import load as load_document
from samovar.graph.operator import Operator
from samovar.graph.workflow import Workflow, no_starts

__all__ = ["is_python", "load_flow", "load_function", "load_operator", "needs_spark"]

_DOCUMENTS = (".yaml", ".yml", ".json")


def load_flow(named: str) -> Workflow:
    """The workflow a command line names. Raises WorkflowError (DocumentError for a document)."""
    path, name = _split(named)
    if not path.exists():
        raise WorkflowError(f"No workflow at {path}.", hint=_beside(path))
    if path.is_dir():
        raise WorkflowError(f"Expected a workflow, got the folder {path}.", hint=_within(path))
    if path.suffix == ".py":
        return _from_python(path, name)
    if name is not None:
        raise WorkflowError(f"Expected a Python file before ':{name}', got {path}.")
    if path.suffix.lower() in _DOCUMENTS:
        return load_document(path)
    raise WorkflowError(
        f"Expected a workflow as .yaml, .json or .py, got {path}.",
        hint="Give a document its ending; see docs/reference/document.md.",
    )


def load_operator(named: str) -> Operator:
    """A new instance of an operator's class, named as `file.py:Class`; the class is called without arguments."""
    path, name = _split(named)
    if name is None or path.suffix != ".py":
        raise WorkflowError(
            f"Expected a class as file.py:Class, got '{named}'.", hint="Such as fixed.py:Enrichment."
        )
    defined = vars(_imported(path)).items()
    kinds = {
        n: v for n, v in defined if isinstance(v, type) and issubclass(v, Operator) and v is not Operator
    }
    if name not in kinds:
        raise _missing("sv.Operator", name, path, kinds)
    with _named_errors(f"{name}() of {path} raised", path):
        operator: Operator = kinds[name]()
    return operator


def load_function(named: str) -> Any:
    """What a Python file defines under a name: `file.py:name`; without one its function `program`, or its workflow."""
    path, name = _split(named)
    module = _imported(path)
    if name is None and not callable(getattr(module, "program", None)):
        return load_flow(named)
    program = getattr(module, name or "program", None)
    if isinstance(program, Workflow) or callable(program):
        return program
    functions = [n for n, v in vars(module).items() if inspect.isfunction(v)]
    raise _missing("function", name or "", path, functions)


def is_python(named: str) -> bool:
    """Whether a command line names a Python file."""
    return _split(named)[0].suffix == ".py"


def needs_spark(named: str) -> bool:
    """Whether a Python file may use PySpark while it is imported (Columns need a live session)."""
    path = _split(named)[0]
    try:
        return path.suffix == ".py" and "pyspark" in path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


def _split(named: str) -> tuple[Path, str | None]:
    match = re.fullmatch(r"(.+\.py):([^/\\:]+)", named)
    return (Path(match[1]), match[2]) if match else (Path(named), None)


def _beside(path: Path) -> str | None:
    if not path.parent.is_dir():
        return f"The folder {path.parent} does not exist either."
    return _within(path.parent, nearest_to=path.name)


def _within(folder: Path, nearest_to: str | None = None) -> str | None:
    there = sorted(p.name for p in folder.iterdir() if p.suffix in (*_DOCUMENTS, ".py"))
    close = nearest(nearest_to, there) if nearest_to else None
    if close:
        return f"Did you mean {folder / close}?"
    return f"There are {', '.join(there[:8])}." if there else None


# --- Python files -------------------------------------------------------------------------------------------


def _from_python(path: Path, name: str | None) -> Workflow:
    def starts(flow: Workflow) -> WorkflowError:
        return WorkflowError(
            f"{path} runs workflow '{flow.name}' while it is being imported.",
            hint='Put that under `if __name__ == "__main__":`; `samovar run` then runs it.',
        )

    with no_starts(starts):
        return _chosen(_imported(path), path, name)


def _imported(path: Path) -> ModuleType:
    if not path.is_file():
        raise WorkflowError(f"No Python file at {path}.", hint=_beside(path))
    folder = str(path.absolute().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    name = "samovar_flow_" + re.sub(r"\W", "_", path.stem)
    spec = importlib.util.spec_from_file_location(name, path.absolute())
    if spec is None or spec.loader is None:
        raise WorkflowError(f"{path} cannot be imported as Python.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # so that its classes can be sent to workers by value
    with _named_errors(f"{path} could not be imported", path):
        spec.loader.exec_module(module)
    return module


@contextmanager
def _named_errors(message: str, path: Path) -> Iterator[None]:
    """Raise what a user's code raises as a WorkflowError, with the traceback from their file on."""
    try:
        yield
    except SamovarError:
        raise
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        theirs = dropwhile(lambda frame: os.path.abspath(frame.filename) != str(path.absolute()), frames)
        lines = traceback.format_list(list(theirs)) + traceback.format_exception_only(error)
        raise WorkflowError(f"{message}:\n\n{''.join(lines).rstrip()}") from error


def _missing(what: str, name: str, path: Path, known: Collection[str]) -> WorkflowError:
    close = nearest(name, known)
    defined = f"It defines {', '.join(known)}." if known else None
    hint = f"Did you mean '{close}'?" if close else defined
    return WorkflowError(f"No {what} '{name}' in {path}.", hint=hint)


def _chosen(module: ModuleType, path: Path, name: str | None) -> Workflow:
    flows = {n: v for n, v in vars(module).items() if isinstance(v, Workflow)}
    if name is not None:
        if not hasattr(module, name):
            raise _missing("workflow", name, path, flows)
        return _workflow(getattr(module, name), path, name)
    different = {id(v): n for n, v in reversed(flows.items())}
    if len(different) == 1:
        return next(iter(flows.values()))
    if different:
        names = ", ".join(sorted(different.values()))
        raise WorkflowError(
            f"Expected one workflow in {path}, got {len(different)}: {names}.",
            hint=f"Name one of them: {path}:{min(different.values())}.",
        )
    if callable(getattr(module, "build", None)):
        return _workflow(module.build, path, "build")
    raise WorkflowError(
        f"No workflow in {path}.",
        hint='Define one at the top of the file, such as flow = sv.Workflow("shop"), or a function build().',
    )


def _workflow(thing: Any, path: Path, name: str) -> Workflow:
    if isinstance(thing, Workflow):
        return thing
    if not callable(thing):
        raise WorkflowError(
            f"Expected '{name}' of {path} to be an sv.Workflow or a function that returns one, "
            f"got {type(thing).__name__}."
        )
    needed = [
        p.name
        for p in inspect.signature(thing).parameters.values()
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    if needed:
        raise WorkflowError(
            f"Expected {name}() of {path} to take no arguments, got {', '.join(needed)}.",
            hint="Give them defaults.",
        )
    with _named_errors(f"{name}() of {path} raised", path):
        flow = thing()
    if not isinstance(flow, Workflow):
        raise WorkflowError(
            f"Expected {name}() of {path} to return an sv.Workflow, got {type(flow).__name__}."
        )
    return flow
