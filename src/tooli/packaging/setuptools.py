"""The build hook for setuptools: its `build_py`, with the app's skill.

[build-system]
requires = ["setuptools", "tooli"]

[tool.setuptools.cmdclass]
build_py = "tooli.packaging.setuptools.BuildSkill"

[tool.tooli.build]
app = "file_tools.app:app"
"""

from __future__ import annotations

import os
from typing import Any

from setuptools.command.build_py import build_py

from tooli.packaging.skill_build import build_skill


class BuildSkill(build_py):
    """Copies the package as ever, then writes the skill beside the copy."""

    def run(self) -> None:
        """Build."""
        super().run()
        if self.editable_mode:
            return
        for path, text in self._skill_files().items():
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        """The files that the build makes, the skill's among them."""
        outputs: Any = super().get_outputs(include_bytecode)
        return [*outputs, *(() if self.editable_mode else self._skill_files())]

    def _skill_files(self) -> dict[str, str]:
        here = os.getcwd()
        roots = [os.path.join(here, "src"), here]
        files = build_skill(_app_setting(here), roots)
        return {
            os.path.join(self.build_lib, *place.split("/")): text for place, text in files.items()
        }


def _app_setting(folder: str) -> object:
    """What pyproject.toml says about the app."""
    from setuptools.config.pyprojecttoml import load_file

    pyproject: Any = load_file(os.path.join(folder, "pyproject.toml"))
    return pyproject.get("tool", {}).get("tooli", {}).get("build", {}).get("app")
