"""Download and unpack Typer's source distribution."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .suite_paths import SuitePaths


class SetupFailed(RuntimeError):
    """The suite could not be downloaded or installed."""


def run_checked(command: list[str]) -> None:
    """Run a command; raise SetupFailed with its output if it fails."""
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


def download(version: str, folder: Path) -> Path:
    """Download the source distribution from the index that pip is configured for."""
    pip = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check"]
    arguments = ["--no-deps", "--no-binary", "typer", f"typer=={version}", "--dest", str(folder)]
    run_checked([*pip, *arguments])
    return folder / f"typer-{version}.tar.gz"


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a source distribution. Members that point outside of the folder are rejected."""
    with tarfile.open(archive) as tar:
        if hasattr(tarfile, "data_filter"):
            tar.extractall(folder, filter="data")
        else:
            tar.extractall(folder)


def fetch(paths: SuitePaths) -> None:
    """Download the source tree, unless it exists already."""
    if (paths.tree / "tests").is_dir():
        return
    paths.folder.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(paths.tree, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=paths.folder) as work:
        unpack(download(paths.version, Path(work)), Path(work))
        (Path(work) / paths.tree.name).rename(paths.tree)
