"""The files of the Typer suite, and the Typer versions that it runs with."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
HOOKS = Path(__file__).resolve().parent / "hooks"
NEWEST = "0.29.0"
OLDEST = "0.16.1"
VERSIONS = (NEWEST, "0.27.0", "0.26.8", "0.25.1", "0.21.2", OLDEST)
IN_PROCESS_VERSIONS = VERSIONS[1:]
"""Versions for which tests that start programs are not run. These tests take most of the time, and
start the same programs as the tests of the newest version."""


@dataclass(frozen=True)
class SuitePaths:
    """The cache folder of one Typer version, and the paths inside it."""

    version: str

    @property
    def folder(self) -> Path:
        """The folder for all files of this version."""
        return ROOT / ".cache" / "typer-suite" / self.version

    @property
    def tree(self) -> Path:
        """The unpacked source distribution. The suite runs in this folder."""
        return self.folder / f"typer-{self.version}"

    @property
    def runtime(self) -> Path:
        """The folder for files that also depend on the version of Python."""
        return self.folder / f"py{sys.version_info.major}{sys.version_info.minor}"

    @property
    def venv(self) -> Path:
        """The private virtual environment."""
        return self.runtime / "venv"

    @property
    def python(self) -> Path:
        """The interpreter of the private virtual environment."""
        windows = sys.platform == "win32"
        return self.venv / ("Scripts/python.exe" if windows else "bin/python")

    @property
    def stamp(self) -> Path:
        """The file with the fingerprint that the environment was created for."""
        return self.runtime / "stamp"

    @property
    def packages(self) -> Path:
        """The list of the packages in the environment, without this project."""
        return self.runtime / "packages.txt"

    @property
    def baseline(self) -> Path:
        """The outcomes of the last comparison with Typer itself."""
        return self.runtime / "baseline.json"

    @property
    def substituted(self) -> Path:
        """The outcomes of the last comparison with the replacement."""
        return self.runtime / "substituted.json"
