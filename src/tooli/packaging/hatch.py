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

from tooli.packaging.skill_build import build_skill


class SkillHook(BuildHookInterface[Any]):
    """Adds the skill of the app to the wheel."""

    PLUGIN_NAME = "tooli"
    _temp_dir: str | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the skill to a temporary folder and include its files in the wheel."""
        if self.target_name != "wheel" or version == "editable":
            return
        roots = [os.path.join(self.root, "src"), self.root]
        self._temp_dir = folder = mkdtemp(prefix="tooli-skill-")
        for relative_path, text in build_skill(self.config.get("app"), roots).items():
            path = os.path.join(folder, *relative_path.split("/"))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
            build_data["force_include"][path] = relative_path

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Delete the temporary folder."""
        self.app.display_debug(f"the skill is in {artifact_path}")
        if self._temp_dir is not None:
            shutil.rmtree(self._temp_dir, ignore_errors=True)


@hookimpl
def hatch_register_build_hook() -> type[SkillHook]:
    """Return the hook class. hatchling calls this function of each plugin."""
    return SkillHook
