"""`samovar run`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.cli.shop import FLOW, Samovar

from samovar.cli import named_workflows
from samovar.cli.shared_options import bytes_of
from samovar.errors import WorkflowError
from samovar.record.store import find_recordings
from samovar.runtime.run import Run

PYTHON = """\
import samovar as sv

flow = sv.Workflow("numbers")
flow.values("n int", [(1,), (2,), (3,)], name="numbers").filter("n > 1").sink("S")
"""


# --- documents ----------------------------------------------------------------------------------------------


def test_a_document_runs_and_its_results_are_shown(samovar: Samovar, spark: Any, shop: Path) -> None:
    said = samovar("run", "shop.yaml")
    assert said.code == 0, said.err
    assert "S: 3 rows" in said.out
    assert "5000" in said.out
    assert f"all: 4 rows written to {shop / 'out'}" in said.out
    assert "recorded in runs/shop-" in said.out
    assert "100%" in said.err  # progress goes to stderr
    assert len(find_recordings("runs")) == 1


def test_json_is_all_there_is_on_stdout(samovar: Samovar, spark: Any, shop: Path) -> None:
    said = samovar("run", "shop.yaml", "--json", "--show", "S", "--rows", 1)
    assert said.code == 0, said.err
    told = json.loads(said.out)
    assert told["status"] == "completed"
    assert told["epochs"] >= 1
    counters = {op["name"]: (op["taken"], op["given"]) for op in told["operators"]}
    assert counters["tally"] == (4, 4)
    assert counters["large"] == (4, 3)
    assert told["results"]["S"]["rows"] == 3
    assert told["results"]["S"]["head"] == [{"id": 1, "customer": "Bob", "amount": 20.0, "total": 20.0}]
    assert all(Path(folder).is_dir() for folder in told["results"]["S"]["path"])
    assert told["results"]["all"]["path"] == str(shop / "out")
    assert told["rejected"] == {}
    assert told["error"] is None
    assert said.err == ""


def test_events_are_lines_of_json_on_stderr(samovar: Samovar, spark: Any, shop: Path) -> None:
    said = samovar("run", "shop.yaml", "--json-events", "--quiet")
    assert said.code == 0
    events = [json.loads(line) for line in said.err.splitlines()]
    assert events[0]["event"] == "started"
    assert events[-1]["event"] == "ended"
    assert events[-1]["status"] == "completed"
    assert {op["name"] for op in events[-1]["operators"]} == {"orders", "tally", "large", "S", "all"}
    assert said.out == ""


def test_no_record_leaves_no_recording(samovar: Samovar, spark: Any, shop: Path) -> None:
    said = samovar("run", "shop.yaml", "--no-record", "--quiet", "--show", "S")
    assert said.code == 0, said.err
    assert "S: 3 rows" in said.out
    assert not Path("runs").exists()


def test_rows_that_do_not_parse_are_shown_with_file_and_line(
    samovar: Samovar, spark: Any, shop: Path
) -> None:
    with (shop / "orders.csv").open("a") as file:
        file.write("oops,Bob,much\n")
    said = samovar("run", "shop.yaml")
    assert said.code == 0, said.err
    assert "1 row of 'orders' did not parse" in said.out
    assert "orders.csv, line 6: oops,Bob,much" in said.out


def test_an_operator_that_raises_ends_in_one_screen_and_exit_code_1(
    samovar: Samovar, spark: Any, shop: Path
) -> None:
    (shop / "shop.yaml").write_text(
        FLOW.replace('+ row["amount"]', '+ 1 / (row["amount"] - 5000)'), encoding="utf-8"
    )
    said = samovar("run", "shop.yaml")
    assert said.code == 1
    assert "Operator failed" in said.err
    assert "ZeroDivisionError" in said.err
    assert "samovar run --resume shop-" in said.err
    assert len(said.err.splitlines()) < 40
    told = json.loads(samovar("run", "shop.yaml", "--json").out)
    assert told["status"] == "failed"
    assert told["error"]["operator"] == "tally"
    assert told["error"]["type"] == "OperatorFailed"


def test_ctrl_c_keeps_what_is_committed_and_a_resume_goes_on(
    samovar: Samovar, spark: Any, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = shop / "orders.csv"
    parts.unlink()
    parts.mkdir()
    for number in range(3):
        (parts / f"{number}.csv").write_text(f"id,customer,amount\n{number},Bob,{20 + number}\n")

    def interrupted(run: Run, *_: Any, **__: Any) -> Run:
        while run.progress.epoch == 0 and run.status == "running":
            time.sleep(0.01)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Run, "wait", interrupted)
        said = samovar("run", "shop.yaml", "--epoch-bytes", "1B")
    assert said.code == 130
    assert "Stopped." in said.err
    (path,) = find_recordings("runs")
    assert f"samovar run --resume {path.name}" in said.err
    assert not (shop / "out").exists()

    again = samovar("run", "--resume", path.name[:-2], "--json", "--show", "S")
    assert again.code == 0, again.err
    told = json.loads(again.out)
    assert told["run"] == path.name
    assert [row["total"] for row in told["results"]["S"]["head"]] == [20.0, 41.0, 63.0]
    nothing = samovar("run", "--resume", "latest")
    assert nothing.code == 0
    assert "nothing is left to do" in nothing.out


# --- what is wrong before anything runs ---------------------------------------------------------------------


def test_an_unknown_sink_is_refused_before_spark_starts(samovar: Samovar, shop: Path) -> None:
    said = samovar("run", "shop.yaml", "--show", "s")
    assert said.code == 1
    assert "Did you mean 'S'?" in said.err
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["shop.yml"], "Did you mean shop.yaml?"),
        (["nowhere/shop.yaml"], "The folder nowhere does not exist either"),
        (["."], "shop.yaml"),
        (["orders.csv"], ".yaml, .json or .py"),
    ],
)
def test_a_flow_that_is_not_there_gets_advice(
    samovar: Samovar, shop: Path, arguments: list[str], hint: str
) -> None:
    said = samovar("run", *arguments)
    assert said.code == 1
    assert hint in said.err


def test_errors_before_the_run_are_json_too(samovar: Samovar, shop: Path) -> None:
    told = json.loads(samovar("run", "nothing.yaml", "--json").out)
    assert told["run"] is None
    assert told["status"] == "failed"
    assert "nothing.yaml" in told["error"]["message"]


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["shop.yaml", "--epoch-bytes", "many"],
        ["shop.yaml", "--epoch-bytes", "0"],
        ["shop.yaml", "--conf", "spark.x"],
        ["--resume", "latest", "--no-record"],
        ["shop.yaml", "--rows", "-1"],
    ],
)
def test_a_wrong_command_line_ends_with_2(samovar: Samovar, shop: Path, arguments: list[str]) -> None:
    assert samovar("run", *arguments).code == 2


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("64MB", 64_000_000),
        ("64 MiB", 64 << 20),
        ("1.5g", 1_500_000_000),
        ("2k", 2000),
        ("10", 10),
        ("7B", 7),
        ("1.5 MB", 1_500_000),
        ("4g", 4 * 10**9),
    ],
)
def test_sizes_are_read_as_people_write_them(text: str, size: int) -> None:
    assert bytes_of(text, "--epoch-bytes") == size


def test_a_size_that_is_not_one_is_refused() -> None:
    with pytest.raises(typer.BadParameter, match="64MB"):
        bytes_of("much", "--epoch-bytes")


# --- Python files -------------------------------------------------------------------------------------------


def test_a_python_file_runs_without_being_main(samovar: Samovar, spark: Any, shop: Path) -> None:
    Path("flow.py").write_text(PYTHON + '\nif __name__ == "__main__":\n    raise SystemExit("not here")\n')
    said = samovar("run", "flow.py", "--json")
    assert said.code == 0, said.err
    assert json.loads(said.out)["results"]["S"]["rows"] == 2


def test_operators_and_helpers_beside_a_python_file_reach_the_workers(
    samovar: Samovar, spark: Any, shop: Path
) -> None:
    Path("beside_flow.py").write_text("def twice(n):\n    return 2 * n\n")
    Path("flow.py").write_text(
        "import samovar as sv\n"
        "from beside_flow import twice\n\n"
        "class Twice(sv.Operator):\n"
        "    output = 'n int'\n"
        "    def process(self, row, port=0):\n"
        "        yield {'n': twice(row['n'])}\n\n"
        "def build():\n"
        "    flow = sv.Workflow('twice')\n"
        "    flow.values('n int', [(1,), (2,)]).apply(Twice()).sink('S')\n"
        "    return flow\n"
    )
    told = json.loads(samovar("run", "flow.py:build", "--json", "--show", "S").out)
    assert told["results"]["S"]["head"] == [{"n": 2}, {"n": 4}]


def written(folder: Path, text: str) -> str:
    (folder / "flow.py").write_text(text)
    return str(folder / "flow.py")


def test_a_name_chooses_among_workflows(tmp_path: Path) -> None:
    file = written(tmp_path, PYTHON + 'other = sv.Workflow("other")\n')
    assert named_workflows.load_flow(f"{file}:other").name == "other"
    with pytest.raises(WorkflowError, match="got 2: flow, other") as raised:
        named_workflows.load_flow(file)
    assert raised.value.hint == f"Name one of them: {file}:flow."


def test_two_names_of_one_workflow_are_one(tmp_path: Path) -> None:
    assert named_workflows.load_flow(written(tmp_path, PYTHON + "same = flow\n")).name == "numbers"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\n", "No workflow in .*flow.py"),
        (
            "import samovar as sv\ndef build(path):\n    return sv.Workflow('x')\n",
            "to take no arguments, got path",
        ),
        ("def build():\n    return 7\n", "to return an sv.Workflow, got int"),
        ("def build():\n    return 1 / 0\n", "(?s)raised.*line 2.*ZeroDivisionError"),
        ("import nothing_of_the_kind\n", "(?s)could not be imported.*line 1.*nothing_of_the_kind"),
        ("x = (\n", "SyntaxError"),
        (PYTHON + "flow.run()\n", "runs workflow 'numbers' while it is being imported"),
    ],
)
def test_a_python_file_that_gives_no_workflow_says_why(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(WorkflowError, match=message):
        named_workflows.load_flow(written(tmp_path, text))


def test_a_name_that_is_not_there_gets_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(WorkflowError) as raised:
        named_workflows.load_flow(written(tmp_path, PYTHON) + ":flwo")
    assert raised.value.hint == "Did you mean 'flow'?"


# --- the real command ---------------------------------------------------------------------------------------

SAMOVAR = [sys.executable, "-m", "samovar.cli.main"]


def test_exit_codes_of_the_real_command(samovar: Samovar, shop: Path) -> None:
    missing = subprocess.run([*SAMOVAR, "run", "nothing.yaml"], capture_output=True, text=True, check=False)
    assert missing.returncode == 1
    assert "No workflow at nothing.yaml" in missing.stderr
    assert "Traceback" not in missing.stderr
    assert samovar("run", "--nonsense").code == 2


@pytest.mark.slow
def test_the_real_command_is_stopped_by_ctrl_c_and_goes_on(shop: Path) -> None:
    parts = shop / "orders.csv"
    parts.unlink()
    parts.mkdir()
    for number in range(25):
        (parts / f"{number:03d}.csv").write_text(f"id,customer,amount\n{number},Bob,{20 + number}\n")
    command = [*SAMOVAR, "run", "shop.yaml", "--epoch-bytes", "1B", "--json-events", "--master", "local[2]"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if '"epoch"' in line and json.loads(line)["epoch"] >= 2:
                os.kill(process.pid, signal.SIGINT)
                break
        process.communicate(timeout=120)
    assert process.returncode == 130
    again = subprocess.run(
        [*SAMOVAR, "run", "--resume", "latest", "--json", "--master", "local[2]"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["results"]["S"]["rows"] == 25
