"""The demo written down for people to edit: the payments, the workflow as a document, the workflow in Python."""

from __future__ import annotations

from pathlib import Path

from samovar.demo import fraud
from samovar.demo.payments import ROWS, write_payments
from samovar.errors import StorageProblem
from samovar.graph.document import dump

__all__ = ["export"]

_MAIN = """

flow = build(os.path.join(os.path.dirname(os.path.abspath(__file__)), "payments"))


if __name__ == "__main__":
    run = flow.run()
    print(run.result("S").slice(0, 10).to_pandas())
"""


def export(folder: Path, rows: int = ROWS) -> list[Path]:
    """Write `payments/`, `fraud.yaml` and `fraud.py` into a folder; what is there already is not touched."""
    data, document, code = folder / "payments", folder / "fraud.yaml", folder / "fraud.py"
    for path in (document, code):
        if path.exists():
            raise StorageProblem(f"{path} exists already.", hint="Choose another folder with --export.")
    if not data.is_dir():
        write_payments(data, rows)
    document.write_text(dump(fraud.build(data), relative_to=folder), encoding="utf-8")
    lines = Path(str(fraud.__file__)).read_text(encoding="utf-8").splitlines()
    text = "\n".join(line for line in lines if not line.startswith("# mypy:"))
    code.write_text(text.rstrip() + "\n" + _MAIN, encoding="utf-8")
    return [document, code, data]
