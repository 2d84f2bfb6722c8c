"""Builds the workbench's pages (web/) before a wheel is made, when they are not there and Node is.

A wheel made without them works, apart from the pages of `samovar serve`; an editable install never builds them
(`scripts/setup` does).
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Pages(BuildHookInterface):  # type: ignore[type-arg]
    """The build hook; hatchling finds it by its base class."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the pages if this is a real build and they are missing."""
        root = Path(self.root)
        if version == "editable" or (root / "src/samovar/server/static/index.html").is_file():
            return
        npm = shutil.which("npm")
        if npm is None or not (root / "web/package.json").is_file():
            self.app.display_warning(
                "The workbench's pages are left out: they are not built, and there is no npm."
            )
            return
        self.app.display_info("Building the workbench's pages")
        for command in ([npm, "ci", "--silent"], [npm, "run", "--silent", "build"]):
            subprocess.run(command, cwd=root / "web", check=True)
