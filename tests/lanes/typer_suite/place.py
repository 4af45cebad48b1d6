"""Where the Typer suite keeps its files, and the Typer versions it runs on."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
HOOKS = Path(__file__).resolve().parent / "hooks"
NEWEST = "0.29.0"
OLDEST = "0.27.0"
VERSIONS = (NEWEST, OLDEST)
WITHIN = (OLDEST,)
"""Where tests that start programs are left out: they take most of the time, and start the
same programs as the newest version's."""


@dataclass(frozen=True)
class Place:
    """The cache folder of one Typer version, and the paths inside it."""

    version: str

    @property
    def folder(self) -> Path:
        """The folder that holds everything kept for this version."""
        return ROOT / ".cache" / "typer-suite" / self.version

    @property
    def tree(self) -> Path:
        """The unpacked source distribution, which is where the suite runs."""
        return self.folder / f"typer-{self.version}"

    @property
    def runtime(self) -> Path:
        """The folder of what depends on the running Python as well."""
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
        """The file that says which requirements the environment was made for."""
        return self.runtime / "stamp"

    @property
    def packages(self) -> Path:
        """The list of what is installed in the environment, this project left out."""
        return self.runtime / "packages.txt"

    @property
    def baseline(self) -> Path:
        """The kept outcomes of Typer itself."""
        return self.runtime / "baseline.json"

    @property
    def substituted(self) -> Path:
        """The outcomes of the last whole run with the stand-in class."""
        return self.runtime / "substituted.json"
