"""The build hook for setuptools, a `build_py` command. Enable it in pyproject.toml:

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
from setuptools.config.pyprojecttoml import load_file

from tooli.packaging import build_skill, write_files


class BuildSkill(build_py):
    """The command `build_py` that also writes the skill of the app to the build folder."""

    def run(self) -> None:
        """Copy the package, then write the skill. An editable install gets no skill."""
        super().run()
        if not self.editable_mode:
            write_files(self._skill_files())

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        """Return the paths of all files that the command writes, including the skill."""
        outputs: Any = super().get_outputs(include_bytecode)
        return [*outputs, *(() if self.editable_mode else self._skill_files())]

    def _skill_files(self) -> dict[str, str]:
        here = os.getcwd()
        roots = [os.path.join(here, "src"), here]
        files = build_skill(_app_setting(here), roots)
        return {
            os.path.join(self.build_lib, *path.split("/")): text for path, text in files.items()
        }


def _app_setting(folder: str) -> object:
    """Return `app` of the table `tool.tooli.build` in pyproject.toml, or None."""
    pyproject: Any = load_file(os.path.join(folder, "pyproject.toml"))
    return pyproject.get("tool", {}).get("tooli", {}).get("build", {}).get("app")
