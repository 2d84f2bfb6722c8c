"""Makes the pictures in this folder from a real run of the demo (scripts/pictures)."""

from __future__ import annotations

import contextlib
import io
import re
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

from samovar.cli.demo_command import report
from samovar.demo import fraud
from samovar.demo.payments import payments_folder
from samovar.runtime.display import Eta, render
from samovar.runtime.progress import Progress

HERE = Path(__file__).parent
WIDTH = 100


def main() -> None:
    payments = payments_folder()
    flow = fraud.build(payments)
    seen: list[tuple[Progress, float | None]] = []
    eta = Eta()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        run = flow.start(epoch_bytes=max(f.stat().st_size for f in payments.iterdir()))
        run.on_progress(lambda progress: seen.append((progress, eta.left(progress))))
        run.wait(progress=False)
        console = terminal("samovar demo")
        console.print(render(run.progress, width=WIDTH))
        report(console, run, payments)
        save(console, "demo")
        console = terminal("samovar demo")
        halfway, left = seen[len(seen) // 2]
        console.print(render(halfway, left=left, width=80))
        save(console, "running")


def terminal(command: str) -> Console:
    """A console that remembers what is printed, with a command on its first line."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, highlight=False)
    console.print(Text.assemble(("$ ", "dim"), (command, "bold")))
    return console


def save(console: Console, name: str) -> None:
    """Write the picture, without the fonts that a viewer would fetch from elsewhere."""
    picture = console.export_svg(title="", unique_id=f"samovar-{name}")
    picture = re.sub(r"\s*@font-face \{.*?\}", "", picture, flags=re.DOTALL)
    (HERE / f"{name}.svg").write_text(
        "\n".join(line.rstrip() for line in picture.splitlines()) + "\n", encoding="utf-8"
    )
    sys.stdout.write(f"wrote {HERE.name}/{name}.svg\n")


if __name__ == "__main__":
    main()
