"""Bytes kept inside epochs for tau from 0.5 to 20 s, against keeping the state everywhere (IcedTea, Figure 20)."""

from __future__ import annotations

from benchmarks.travel.jumps import MOMENTS, jumped
from benchmarks.travel.setting import Row, Setting, interesting

__all__ = ["PAPER", "checkpointed", "checkpoints"]

PAPER = {5.0: 0.40, 10.0: 0.20, 20.0: 0.10}


def checkpoints(setting: Setting) -> list[Row]:
    """W5 in one epoch: marks and their bytes by tau, and the jumps they buy."""
    rows: list[Row] = []
    least = 0
    for tau in (0.5, 1.0, 2.0, 5.0, 10.0, 20.0):
        found = checkpointed(setting, tau)
        least = least or found["bytes"]
        share = found["bytes"] / least if least else None
        rows.append({"tau s": tau, **found, "share of 0.5 s": share, "paper": PAPER.get(tau)})
    return rows


def checkpointed(setting: Setting, tau: float, moments: int = MOMENTS) -> Row:
    """The marks of one tau, their bytes, and the jumps they buy."""
    setting.tick(f"checkpoints for tau {tau}")
    flow = setting.pair("w5").samovar(setting.data)
    run = setting.run(flow, tau=tau, epoch_bytes=1 << 40)
    past = setting.open(run)
    sizes = past.sizes()
    marks = sum(len(fact.marks) for fact in past.history.epochs)
    past.close()
    found = jumped(setting, run, interesting("w5", flow), moments)
    chosen = {name: found[name] for name in ("jump s", "jump max s", "run s")}
    return {"marks": marks, "bytes": sizes["marks"], **chosen}
