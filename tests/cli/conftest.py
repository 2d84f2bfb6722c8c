"""What tests of several verbs share: the command line in this process, and a recording to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.cli.shop import ORDERS, CommandOutput, Samovar, write_shop

from samovar.cli import main as main_module


@pytest.fixture
def samovar(capsys: pytest.CaptureFixture[str]) -> Samovar:
    """`samovar <arguments>` in this process."""

    def run(*arguments: object) -> CommandOutput:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main_module.main([str(a) for a in arguments])
        code = ended.value.code
        said = capsys.readouterr()
        return CommandOutput(code if isinstance(code, int) else 0 if code is None else 1, said.out, said.err)

    return run


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the document `shop.yaml` and its data; also the current folder."""
    monkeypatch.chdir(tmp_path)
    return write_shop(tmp_path)


@pytest.fixture(scope="session")
def recorded(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recording of a completed run, with a row that did not parse. Do not change it."""
    import samovar as sv

    folder = write_shop(tmp_path_factory.mktemp("shop"), ORDERS + "oops,Bob,much\n")
    flow = sv.Workflow.from_document(folder / "shop.yaml")
    run = flow.run(spark=spark, record=folder / "runs", progress=False)
    path: Path = run.recording
    return path
