"""Typer's source distribution, downloaded with pip and unpacked."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .place import Place


class SetupFailed(RuntimeError):
    """A step before the suite could start that did not work."""


def checked(command: list[str]) -> None:
    """Run a command quietly, and raise with all it printed when it fails."""
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SetupFailed(f"{' '.join(command)}\nexit {done.returncode}\n{done.stdout}")


def download(version: str, into: Path) -> Path:
    """Download the source distribution from whichever index pip is set up with."""
    pip = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check"]
    wanted = ["--no-deps", "--no-binary", "typer", f"typer=={version}", "--dest", str(into)]
    checked([*pip, *wanted])
    return into / f"typer-{version}.tar.gz"


def unpack(archive: Path, into: Path) -> None:
    """Unpack a source distribution, without anything that points outside of it."""
    with tarfile.open(archive) as packed:
        if hasattr(tarfile, "data_filter"):
            packed.extractall(into, filter="data")
        else:
            packed.extractall(into)


def fetch(place: Place) -> None:
    """Put the source tree in its place, unless it is there already."""
    if (place.tree / "tests").is_dir():
        return
    place.folder.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(place.tree, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=place.folder) as work:
        unpack(download(place.version, Path(work)), Path(work))
        (Path(work) / place.tree.name).rename(place.tree)
