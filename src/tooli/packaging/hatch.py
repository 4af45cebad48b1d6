"""The build hook for hatchling. Enable it in pyproject.toml:

[build-system]
requires = ["hatchling", "tooli"]

[tool.hatch.build.targets.wheel.hooks.tooli]
app = "file_tools.app:app"
"""

from __future__ import annotations

import os
import shutil
from tempfile import mkdtemp
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.plugin import hookimpl

from tooli.packaging import build_skill, write_files


class SkillHook(BuildHookInterface[Any]):
    """Adds the skill of the app to the wheel."""

    PLUGIN_NAME = "tooli"
    _temp_dir: str | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the skill to a temporary folder and include its files in the wheel."""
        if self.target_name != "wheel" or version == "editable":
            return
        roots = [os.path.join(self.root, "src"), self.root]
        files = build_skill(self.config.get("app"), roots)
        self._temp_dir = folder = mkdtemp(prefix="tooli-skill-")
        write_files({os.path.join(folder, *path.split("/")): text for path, text in files.items()})
        for path in files:
            build_data["force_include"][os.path.join(folder, *path.split("/"))] = path

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Delete the temporary folder."""
        self.app.display_debug(f"the skill is in {artifact_path}")
        if self._temp_dir is not None:
            shutil.rmtree(self._temp_dir, ignore_errors=True)


@hookimpl
def hatch_register_build_hook() -> type[SkillHook]:
    """Return the hook class. hatchling calls this function of each plugin."""
    return SkillHook
