"""The live display of a run on a terminal."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from samovar.runtime.progress import Progress

if TYPE_CHECKING:
    from samovar.runtime.run import Run

__all__ = ["follow", "render"]


def follow(run: Run, timeout: float | None = None) -> None:
    """Draw a run's progress until it ends, then leave the last picture standing."""
    console = Console(stderr=True)
    deadline = None if timeout is None else time.monotonic() + timeout
    with Live(render(run.progress), console=console, refresh_per_second=8, transient=False) as live:
        while not run._ended.wait(0.12):
            live.update(render(run.progress))
            if deadline is not None and time.monotonic() > deadline:
                raise TimeoutError(f"run {run.id} has not ended after {timeout} s")
        live.update(render(run.progress))


def render(progress: Progress) -> Group:
    """A picture of a progress: a bar, and a line an operator."""
    head = Text.assemble(
        (progress.workflow or progress.run, "bold"),
        f"  {progress.status}  epoch {progress.epoch}  {progress.seconds:.1f} s  ",
    )
    if progress.note:
        head.append(progress.note, style="dim")
    bar = ProgressBar(total=1.0, completed=progress.fraction, width=48)
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("operator")
    for column in ("in", "out", "per second", "state"):
        table.add_column(column, justify="right")
    for op in progress.operators:
        state = f"{op.state_entries:,} / {_bytes(op.state_bytes)}" if op.state_bytes else ""
        rate = f"{op.rate:,.0f}" if op.rate else ""
        table.add_row(f"{op.name} [dim]{op.kind}[/dim]", f"{op.taken:,}", f"{op.given:,}", rate, state)
    parts: list[object] = [head, bar, table]
    for source, n in progress.rejected.items():
        parts.append(Text(f"{n:,} rows of '{source}' did not parse and are kept as rejected", style="yellow"))
    return Group(*parts)  # type: ignore[arg-type]


def _bytes(n: int) -> str:
    size = float(n)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
