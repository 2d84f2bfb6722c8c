"""`samovar run`: run a workflow, or take up a run that was stopped or killed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from samovar.cli.conductor import Output, check_sinks, conduct, session, spark_settings, telling
from samovar.cli.named_recordings import RecordingView, find_run, look
from samovar.cli.named_workflows import load_flow, needs_spark
from samovar.cli.shared_options import Conf, Record, RunOn, bytes_of
from samovar.cli.terminal import messages, output, print_json
from samovar.errors import RecordingError
from samovar.record.addresses import local_folder
from samovar.replay.past import open_recording
from samovar.runtime.rollback import whole_epochs
from samovar.runtime.run import Run

__all__ = ["run"]


def run(
    flow: Annotated[
        str | None,
        typer.Argument(
            metavar="[FLOW]",
            help="A document (flow.yaml, flow.json) or a Python file (flow.py, flow.py:name).",
        ),
    ] = None,
    record: Record = Path("runs"),
    no_record: Annotated[bool, typer.Option("--no-record", help="Leave no recording.")] = False,
    master: RunOn = None,
    conf: Conf = None,
    epoch_bytes: Annotated[
        str | None,
        typer.Option(
            "--epoch-bytes",
            help="The input an epoch takes, such as 64MB; by default chosen by time.",
            metavar="SIZE",
        ),
    ] = None,
    key_partitions: Annotated[
        int | None,
        typer.Option(
            "--key-partitions",
            min=1,
            help="Key partitions of operators with `by`; twice the cores by default.",
        ),
    ] = None,
    hold: Annotated[
        bool,
        typer.Option(
            "--hold", help="Hold a tuple that a Python operator raises on, and ask what to do with it."
        ),
    ] = False,
    resume: Annotated[
        str | None,
        typer.Option(
            "--resume",
            help="Go on with a recorded run: its id, the beginning of it, a path, or `latest`.",
            metavar="RUN",
        ),
    ] = None,
    show: Annotated[
        list[str] | None,
        typer.Option("--show", help="A sink whose rows to print; all of them by default.", metavar="SINK"),
    ] = None,
    rows: Annotated[int, typer.Option("--rows", min=0, help="How many rows of each sink to print.")] = 10,
    json: Annotated[
        bool, typer.Option("--json", help="Print a summary as JSON on stdout, and nothing else.")
    ] = False,
    json_events: Annotated[
        bool, typer.Option("--json-events", help="Print each epoch's progress as a line of JSON on stderr.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print errors, and the sinks of --show, only.")
    ] = False,
) -> None:
    """Run a workflow on Spark and record it.

    FLOW is a document or a Python file. A Python file is imported, not run: it defines one sv.Workflow, or a
    function build() that returns one. Ctrl-C stops the run after its last committed epoch; --resume goes on
    from there.
    """
    wanted = Output(json=json, events=json_events, quiet=quiet, show=tuple(show or ()), rows=rows)
    settings = spark_settings(conf or [])
    if resume is None and flow is None:
        raise typer.BadParameter("Name a workflow to run, or a recording with --resume.", param_hint="FLOW")
    if resume is not None and (no_record or epoch_bytes or key_partitions):
        raise typer.BadParameter(
            "A resumed run keeps its recording, epochs and key partitions.", param_hint="--resume"
        )
    if resume is not None and hold:
        raise typer.BadParameter("A resumed run holds tuples if it did before.", param_hint="--hold")
    options: dict[str, Any] = {
        "on_error": "hold" if hold else "fail",
        "record": False if no_record else record,
        "epoch_bytes": bytes_of(epoch_bytes, "--epoch-bytes", least=1) if epoch_bytes is not None else None,
        "key_partitions": key_partitions,
    }
    with telling(wanted):
        if resume is not None:
            begin = _resumed(find_run(resume, record), flow, master, settings, wanted)
        else:
            begin = _started(str(flow), master, settings, options, wanted)
    if begin is not None:
        conduct(begin, wanted, hold=hold or resume is not None)


def _started(
    flow: str, master: str | None, conf: dict[str, str], options: dict[str, Any], wanted: Output
) -> Callable[[], Run]:
    """Load a workflow, and return what starts it."""
    if options["record"]:
        local_folder(options["record"])  # refused before Spark is started, which takes seconds
    if needs_spark(flow):
        session(master, conf, wanted)
    loaded = load_flow(flow)
    check_sinks(wanted.show, [op.name for op in loaded.graph().sinks])
    spark = session(master, conf, wanted)
    return lambda: loaded.start(spark=spark, interactive=wanted.watched, **options)


def _resumed(
    path: Path, flow: str | None, master: str | None, conf: dict[str, str], wanted: Output
) -> Callable[[], Run] | None:
    """Open a recording, and return what goes on with it; None when it is complete."""
    view = look(path)
    if view.status == "completed" and _is_whole(view):
        if wanted.json:
            print_json(
                {"run": path.name, "status": "completed", "recording": str(path.absolute()), "error": None}
            )
        elif not wanted.quiet:
            output().print(
                f"Run {path.name} is complete: nothing is left to do. `samovar show {path.name}` shows it."
            )
        return None
    if view.damage is None and view.history.started is None:
        raise RecordingError(
            f"The recording {path} holds no start of a run.",
            hint="Start the workflow again: samovar run FLOW.",
        )
    past = open_recording(path.absolute())  # Spark may have another current folder
    if wanted.display:
        messages().print(f"Going on with {path.name} after {len(view.history.epochs):,} epochs.")
    if flow is not None and needs_spark(flow):
        session(master, conf, wanted)
    loaded = load_flow(flow) if flow is not None else None
    spark = session(master, conf, wanted)
    return lambda: past.resume(spark, flow=loaded, interactive=wanted.watched)


def _is_whole(view: RecordingView) -> bool:
    """Whether all that a complete run left is there: else it goes on before what is damaged."""
    if view.graph is None:
        return True
    count, _ = whole_epochs(view.recording, view.history, view.graph)
    return count == len(view.history.epochs)
