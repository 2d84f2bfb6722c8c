"""`samovar debug`: the interpreter on a real recording, scripts, JSON, and what is drawn."""

from __future__ import annotations

import io
import json
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from rich.console import Console
from tests.cli.shop import ORDERS, Samovar, write_shop

import samovar as sv
from samovar.cli.debug import debug_command as debug_module
from samovar.cli.debug.debug_interpreter import Debugger, PromptAnswer
from samovar.cli.debug.debug_screen import Screen
from samovar.cli.debug.debug_words import COMMANDS, completions
from samovar.errors import SamovarError, TimeTravelError, UnknownName, WorkflowError

FIXED = """\
import samovar as sv


class Tally(sv.Operator):
    output = "id int, customer string, amount double, total double"

    def process(self, row, port=0):
        yield {**row, "total": 0.0}


class Picky(sv.Operator):
    def __init__(self, limit):
        self.limit = limit
"""


@pytest.fixture(scope="module")
def past(spark: Any, recorded: Path) -> Iterator[sv.Past]:
    opened = sv.open(recorded, spark=spark)
    yield opened
    opened.close()


@pytest.fixture
def at(past: sv.Past) -> Debugger:
    return Debugger(past)


def place(answer: PromptAnswer) -> tuple[int, dict[str, int], dict[str, int]]:
    """Epoch, tuples taken, and tuples waiting, as an answer tells them."""
    moment = answer.data["moment"]
    taken = {op["name"]: op["taken"] for op in moment["operators"] if op["taken"]}
    return moment["epoch"], taken, {op["name"]: op["waiting"] for op in moment["operators"] if op["waiting"]}


def drawn(at: Debugger, answer: PromptAnswer, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    Screen(console, at.graph).show(answer)
    file: Any = console.file
    return str(file.getvalue())


# --- moving ---------------------------------------------------------------------------------------------------------


def test_a_jump_goes_behind_the_whole_scope_of_a_tuple(at: Debugger) -> None:
    answer = at.do("jump tally 2")
    assert place(answer) == (0, {"tally": 2, "large": 2, "S": 1, "all": 2}, {"tally": 2})
    assert answer.data["last"]["row"]["customer"] == "Chris"
    assert answer.data["changes"][0]["kind"] == "added"
    assert answer.data["moment"]["of"] == 4
    assert at.operator == "tally"
    assert place(at.do("jump 1"))[1]["tally"] == 1


def test_epochs_start_and_end_can_be_jumped_to(at: Debugger) -> None:
    assert place(at.do("jump start"))[1] == {}
    assert place(at.do("jump epoch 0"))[1] == {}
    assert place(at.do("jump end"))[1]["tally"] == 4


def test_steps_go_over_into_and_out(at: Debugger) -> None:
    at.do("jump tally 0")
    assert place(at.do("into")) == (0, {"tally": 1}, {"tally": 3, "large": 1, "all": 1})
    assert place(at.do("i large"))[2]["S"] == 1
    assert at.operator == "large"
    out = at.do("out")
    assert place(out)[1]["S"] == 1
    assert at.operator == "tally", "nothing waits at large, so the operator around it is next"
    assert place(at.do("over tally"))[1]["tally"] == 2


def test_back_undoes_steps_with_the_operator_that_was_looked_at(at: Debugger) -> None:
    at.do("jump tally 1")
    before = at.moment
    at.do("into tally")
    at.do("over large")
    assert at.operator == "large"
    at.do("back")
    assert at.operator == "tally"
    at.do("b")
    assert at.moment is before
    assert place(at.do("back"))[1] == {}


def test_a_changed_state_is_told_with_what_was_there_before(at: Debugger) -> None:
    (change,) = at.do("jump tally 3").data["changes"]
    assert change == {
        "operator": "tally",
        "name": "totals",
        "key": "Bob",
        "kind": "changed",
        "before": 20.0,
        "after": 5020.0,
    }


def test_where_draws_the_moment_again(at: Debugger) -> None:
    at.do("jump tally 3")
    assert at.do("where").data == at.do("w").data
    assert at.do("where").moved


def test_when_finds_the_first_moment(at: Debugger) -> None:
    answer = at.do("when tally totals.get('Bob', 0) > 1000")
    assert answer.data["found"] is True
    assert answer.data["last"]["row"]["id"] == 3
    assert at.do("when 'Dana' in totals").data["last"]["row"]["id"] == 4
    here = at.moment
    never = at.do("when tally 'Eva' in totals")
    assert never.data == {"found": False, "operator": "tally", "predicate": "'Eva' in totals"}
    assert at.moment is here
    assert "never held" in drawn(at, never)


def test_changed_goes_back_to_the_last_change_of_a_key(at: Debugger) -> None:
    at.do("jump end")
    assert at.do("changed tally Chris").data["last"]["row"]["id"] == 2
    at.do("jump tally 1")
    assert at.do("changed Dana").data["found"] is False


# --- looking --------------------------------------------------------------------------------------------------------


def test_the_state_is_shown_a_page_at_a_time(at: Debugger) -> None:
    at.do("jump tally 3")
    answer = at.do("state tally")
    (totals,) = answer.data["states"]
    assert totals["items"] == [{"key": "Bob", "value": 5020.0}, {"key": "Chris", "value": 10.0}]
    assert at.do("state totals search chris").data["states"][0]["matches"] == 1
    assert at.do("state tally totals page 1").data["states"][0]["pages"] == 1
    assert at.do("s S").data["states"][0] == {
        "name": "rows",
        "kind": "value",
        "entries": 1,
        "matches": 1,
        "page": 1,
        "pages": 1,
        "items": [{"key": None, "value": 2}],
    }
    with pytest.raises(TimeTravelError, match="from 1 to 1"):
        at.do("state tally totals page 2")
    with pytest.raises(UnknownName, match="a state of 'tally'"):
        at.do("state tally total")


def test_waiting_tuples_last_step_and_counters(at: Debugger) -> None:
    at.do("jump tally 1")
    at.do("into tally")
    waiting = at.do("pending large").data
    assert waiting["waiting"] == 1
    assert waiting["rows"][0]["customer"] == "Chris"
    assert at.do("pending tally").data["waiting"] == 2
    assert at.do("pending S").data == {"operator": "S", "waiting": 0, "rows": []}
    assert at.do("last").data["last"]["outputs"][0]["total"] == 10.0
    assert at.do("changes").data["changes"][0]["key"] == "Chris"
    counted = {op["name"]: op["given"] for op in at.do("counters").data["moment"]["operators"]}
    assert counted["tally"] == 2
    assert place(at.do("ops")) == place(at.do("counters"))


def test_lines_show_what_ran_and_the_locals(at: Debugger) -> None:
    at.do("jump tally 3")
    answer = at.do("lines")
    texts = [line["text"].strip() for line in answer.data["lines"]]
    assert any("total = self.totals.get" in text for text in texts)
    assert answer.data["lines"][-1]["locals"]["total"] == 5020.0
    for width in (120, 40):
        assert "total=5020.0" in drawn(at, answer, width)
    with pytest.raises(TimeTravelError, match="inside Spark"):
        at.do("lines large")


def test_why_and_log(at: Debugger) -> None:
    origins = at.do("why S {'id': 3}").data["origins"]
    assert [o["operator"] for o in origins] == ["large", "tally", "orders"]
    assert at.do("why S 0").data["origins"][-1]["row"]["id"] == 1
    logged = at.do("log tally amount * 2 where customer = 'Bob'").data
    assert (logged["expression"], logged["where"], logged["rows"]) == ("amount * 2", "customer = 'Bob'", 2)
    with pytest.raises(TimeTravelError, match="such as"):
        at.do("why S Bob")
    with pytest.raises(UnknownName, match="a sink"):
        at.do("why tally 1")


def test_interactions_are_listed_and_jumped_to(at: Debugger, monkeypatch: pytest.MonkeyPatch) -> None:
    past: Any = at.past
    made = SimpleNamespace(id="I1", operator="tally", tuples=2, epoch=0, note="odd", at=1.0)
    moments = {"I1": past.jump("tally", tuples=2)}
    cost = SimpleNamespace(seconds=1.0, bytes=0)
    stand_in = SimpleNamespace(interactions=[made], jump=lambda to: moments[to], jump_cost=lambda to: cost)
    monkeypatch.setattr(at, "past", stand_in)
    answer = at.do("interactions")
    assert answer.data["interactions"] == [{**vars(made), **vars(cost)}]
    assert "odd" in drawn(at, answer)
    assert place(at.do("jump I1"))[1]["tally"] == 2
    assert completions("jump I", at.names()) == ["I1"]
    with pytest.raises(UnknownName, match="an interaction"):
        at.do("jump I2")


def test_a_fork_takes_classes_from_files(
    at: Debugger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "fixed.py"
    file.write_text(FIXED, encoding="utf-8")
    at.do("jump tally 1")
    given: dict[str, Any] = {}

    def fork(changes: dict[str, Any]) -> Any:
        given.update(changes)
        return SimpleNamespace(
            id="shop-2", status="completed", recording=tmp_path, wait=lambda progress=False: None
        )

    monkeypatch.setattr(at, "_moment", SimpleNamespace(fork=fork))
    answer = at.do(f"fork tally={file}:Tally")
    assert type(given["tally"]).__name__ == "Tally"
    assert answer.data["run"] == "shop-2"
    assert "samovar show" in drawn(at, answer)
    for wrong, message in [
        ("fork", "its new class"),
        ("fork tally", "OP=file.py:Class"),
        (f"fork taly={file}:Tally", "an operator of the run"),
        (f"fork tally={file}", "file.py:Class"),
        (f"fork tally={tmp_path / 'missing.py'}:Tally", "No Python file at"),
        (f"fork tally={file}:Tall", "No sv.Operator 'Tall' in"),
        (f"fork tally={file}:Picky", "missing 1 required"),
    ]:
        with pytest.raises(SamovarError, match=message):
            at.do(wrong)
    with pytest.raises(WorkflowError):
        at.do(f"fork tally={file}:Tall")


def test_help_tells_every_command(at: Debugger) -> None:
    answer = at.do("help")
    assert [c["name"] for c in answer.data["commands"]] == list(COMMANDS)
    for width in (120, 40):
        text = drawn(at, answer, width)
        assert "state [OP] [NAME] [search TEXT] [page N]" in " ".join(text.split())
    assert "jump OP N" in drawn(at, at.do("help jump"))
    assert at.do("quit").verb == "quit"


def test_every_command_is_in_the_reference() -> None:
    text = (Path(__file__).parents[2] / "docs/reference/debug.md").read_text("utf-8")
    assert [name for name in COMMANDS if f"`{name}" not in text] == []


# --- what cannot be done --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("jmp tally 1", "Expected a command"),
        ("jump taly 1", "an operator of the run"),
        ("jump tally", "how many tuples"),
        ("jump tally many", "a number of tuples"),
        ("jump tally 5", "at most 4"),
        ("jump epoch 9", "an epoch from 0"),
        ("jump I99", "an interaction"),
        ("jump", "Expected `jump"),
        ("over taly", "an operator of the run"),
        ("over tally now", "one operator"),
        ("over large", "a tuple waiting"),
        ("out", "none is open"),
        ("out now", "nothing after"),
        ("when", "Expected `when"),
        ("when taly len(totals) > 1", "an operator of the run"),
        ("when tally nosuch > 1", "nosuch"),
        ("state tally page x", "`search TEXT` or `page N`"),
        ("why", "a sink and a row"),
        ("help nonsense", "Expected a command"),
    ],
)
def test_what_cannot_be_done_is_said_and_changes_nothing(at: Debugger, line: str, message: str) -> None:
    at.do("jump end")
    before = at.mark()
    with pytest.raises(SamovarError, match=message):
        at.do(line)
    assert at.mark() == before


def test_a_failed_run_opens_where_it_failed(past: sv.Past, monkeypatch: pytest.MonkeyPatch) -> None:
    there = past.jump("tally", tuples=3)
    monkeypatch.setattr(sv.Past, "status", "failed")
    monkeypatch.setattr(sv.Past, "failure", lambda self: there, raising=False)
    assert Debugger(past).moment is there
    monkeypatch.setattr(sv.Past, "failure", lambda self: None, raising=False)
    assert place(Debugger(past).opening())[1]["tally"] == 4


# --- drawing and completing -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [30, 60, 120])
def test_a_moment_fits_its_terminal(at: Debugger, width: int) -> None:
    text = drawn(at, at.do("jump tally 3"), width)
    assert max(len(line) for line in text.splitlines()) <= width
    assert "▶" in text
    assert "5020.0" in text
    assert "→" in text


def test_everything_can_be_drawn(at: Debugger) -> None:
    at.do("jump tally 3")
    for line in ("state tally", "state all", "pending tally", "pending S", "last", "changes", "counters"):
        assert drawn(at, at.do(line)).strip()
    assert "filter amount > 10" in drawn(at, at.do("ops"))
    assert "5000" in drawn(at, at.do("log tally amount"))
    assert "orders" in drawn(at, at.do("why S {'id': 3}"))
    table = pa.table({"value": list(range(1000))})
    many = PromptAnswer("log", {"expression": "x", "rows": 5000, "head": table})
    assert "the first 20" in drawn(at, many)


def test_state_names_are_completed_without_computing_anything(past: sv.Past) -> None:
    at = Debugger(past)
    assert completions("state tally ", at.names()) == ["totals", "search", "page"]
    assert completions("when tally t", at.names()) == ["totals"]
    assert at._moment is None


# --- the command ----------------------------------------------------------------------------------------------------


def test_a_script_is_run_and_drawn(samovar: Samovar, spark: Any, recorded: Path) -> None:
    said = samovar("debug", recorded, "-c", "jump tally 2; over; state tally; quit; nonsense")
    assert said.code == 0, said.err
    assert "> jump tally 2" in said.out
    assert "tally.totals  2 entries" in said.out


def test_a_script_file_prints_json(samovar: Samovar, spark: Any, recorded: Path, tmp_path: Path) -> None:
    script = tmp_path / "hunt.txt"
    script.write_text("# Bob\njump tally 3\nstate; pending\nlog tally amount\n", encoding="utf-8")
    said = samovar("debug", recorded, "--script", script, "--json")
    assert said.code == 0, said.err
    told = [json.loads(line) for line in said.out.splitlines()]
    assert [t["verb"] for t in told] == ["jump", "state", "pending", "log"]
    assert all(t["ok"] for t in told)
    assert told[0]["command"] == "jump tally 3"
    assert set(told[0]) == {"command", "verb", "ok", "moment", "last", "changes"}
    assert set(told[0]["moment"]) == {"epoch", "epochs", "operator", "tuples", "of", "operators"}
    assert told[1]["states"][0]["items"][0] == {"key": "Bob", "value": 5020.0}
    assert len(told[3]["head"]) == 4


def test_a_script_ends_at_the_first_failure(samovar: Samovar, spark: Any, recorded: Path) -> None:
    said = samovar("debug", recorded, "-c", "jump tally 99; state", "--json")
    assert said.code == 1
    (told,) = [json.loads(line) for line in said.out.splitlines()]
    assert told["ok"] is False
    assert told["error"]["type"] == "TimeTravelError"
    assert "at most 4" in said.err
    assert "Hint" in said.err
    missing = samovar("debug", recorded, "--script", "no-such-file")
    assert missing.code == 1
    assert "a file of commands" in missing.err
    assert samovar("debug", recorded, "-c", "last", "--script", "x").code == 2


def test_lines_are_read_where_there_is_no_terminal(
    samovar: Samovar, spark: Any, recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("jump tally 1\nnonsense\nover\n"))
    said = samovar("debug", recorded, "--json")
    assert said.code == 1
    told = [json.loads(line) for line in said.out.splitlines()]
    assert [t["ok"] for t in told] == [True, False, True]
    monkeypatch.setattr("sys.stdin", io.StringIO("jump tally 1\nquit\nnonsense\n"))
    assert samovar("debug", recorded).code == 0


def test_a_prompt_goes_on_after_errors_and_repeats_steps(
    samovar: Samovar, spark: Any, recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = iter(["jump tally 1", "over", "", "nonsense", KeyboardInterrupt(), "state", EOFError()])

    class Asking:
        def prompt(self, text: str) -> str:
            said = next(typed)
            if isinstance(said, BaseException):
                raise said
            return str(said)

    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(debug_module, "_prompt_session", lambda debugger: Asking())
    said = samovar("debug", recorded)
    assert said.code == 0, said.err
    assert "has processed 3 of 4 tuples" in said.out
    assert "Expected a command" in said.out
    assert "tally.totals" in said.out


def test_the_prompt_completes_and_keeps_its_history(
    past: sv.Past, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from prompt_toolkit.application import create_app_session
    from prompt_toolkit.completion import CompleteEvent
    from prompt_toolkit.document import Document
    from prompt_toolkit.input import DummyInput
    from prompt_toolkit.output import DummyOutput

    monkeypatch.setenv("SAMOVAR_CACHE", str(tmp_path / "cache"))
    with create_app_session(input=DummyInput(), output=DummyOutput()):
        asking = debug_module._prompt_session(Debugger(past))
    assert asking.completer is not None
    found = list(asking.completer.get_completions(Document("over ta"), CompleteEvent()))
    assert [(c.text, c.start_position) for c in found] == [("tally", -2)]
    asking.history.append_string("jump tally 3")
    assert "jump tally 3" in debug_module.history_file().read_text("utf-8")


def test_ctrl_c_cancels_the_command_and_keeps_the_moment(
    past: sv.Past, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = Debugger(past)
    at.do("jump tally 1")
    before = at.mark()
    tags: list[str] = []
    stop = threading.Event()

    def interrupt(tag: str) -> None:
        tags.append(tag)
        stop.set()

    stand_in: Any = SimpleNamespace(interruptTag=interrupt, interruptAll=stop.set)
    talk = debug_module.Talk(at, stand_in, False)
    real = threading.Thread.join
    pressed: list[bool] = []

    def join(self: threading.Thread, timeout: float | None = None) -> None:
        if self.name == "samovar-debug" and not pressed:
            pressed.append(True)
            raise KeyboardInterrupt
        real(self, timeout)

    monkeypatch.setattr(threading.Thread, "join", join)

    def work() -> PromptAnswer:
        at.do("over tally")
        stop.wait(20)
        raise SamovarError("the job was cancelled")

    with pytest.raises(debug_module.Cancelled):
        talk._work(work)
    assert tags[0] == f"{past.id}-replay"
    assert at.mark() == before


def test_a_recording_without_epochs_is_refused(
    samovar: Samovar, spark: Any, recorded: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "empty"
    shutil.copytree(recorded, copy)
    first = (copy / "log.jsonl").read_bytes().splitlines(keepends=True)[0]
    (copy / "log.jsonl").write_bytes(first)
    said = samovar("debug", copy, "-c", "where")
    assert said.code == 1
    assert "No epoch" in said.err
    assert samovar("debug", "nonsense", "--dir", recorded.parent).code == 1


def test_an_input_that_changed_is_refused(samovar: Samovar, spark: Any, tmp_path: Path) -> None:
    folder = write_shop(tmp_path)
    flow = sv.Workflow.from_document(folder / "shop.yaml")
    run = flow.run(spark=spark, record=folder / "runs", progress=False)
    (folder / "orders.csv").write_text(ORDERS + "5,Eva,1\n", encoding="utf-8")
    said = samovar("debug", run.recording, "-c", "jump tally 1")
    assert said.code == 1
    assert "Source changed" in said.err


def test_a_real_failure_is_opened_and_a_fork_mends_it(samovar: Samovar, spark: Any, tmp_path: Path) -> None:
    folder = write_shop(tmp_path, ORDERS)
    document = folder / "shop.yaml"
    text = document.read_text("utf-8").replace(
        "yield {**row", 'assert row["amount"] < 1000\n              yield {**row'
    )
    document.write_text(text, encoding="utf-8")
    flow = sv.Workflow.from_document(document)
    with pytest.raises(SamovarError, match="AssertionError"):
        flow.run(spark=spark, record=folder / "runs", progress=False)
    (folder / "fixed.py").write_text(FIXED, encoding="utf-8")
    fix = f"fork tally={folder / 'fixed.py'}:Tally"
    said = samovar("debug", "--dir", folder / "runs", "-c", f"where; pending; jump epoch 0; {fix}", "--json")
    assert said.code == 0, said.err
    where, pending, _, fork = [json.loads(line) for line in said.out.splitlines()]
    assert where["moment"]["operator"] == "tally"
    assert where["moment"]["tuples"] == 2
    assert pending["rows"][0]["amount"] == 5000.0
    assert fork["status"] == "completed"
    assert [r["id"] for r in sv.open(fork["recording"]).result("S").to_pylist()] == [1, 3, 4]
