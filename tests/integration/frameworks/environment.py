"""A virtual environment with the agent frameworks at their pinned versions.

`python -m tests.integration.frameworks.environment` creates it. It is stored in `.cache`, one per
list of requirements and Python version.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
REQUIREMENTS = HERE / "requirements.txt"
SUPPORTS_ALL = sys.version_info >= (3, 11)
"""True if this Python version runs all frameworks."""


def python() -> pathlib.Path:
    """Return the interpreter of the environment; create the environment if it is missing."""
    parts = (REQUIREMENTS.read_bytes(), sys.version.encode(), sys.base_prefix.encode())
    folder = ROOT / ".cache" / f"frameworks-{hashlib.sha256(b'|'.join(parts)).hexdigest()[:12]}"
    folder.parent.mkdir(exist_ok=True)
    with (folder.parent / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # other test processes wait here
        if not (folder / ".ready").exists():
            _install(folder)
            (folder / ".ready").touch()
    return folder / "bin" / "python"


def _install(folder: pathlib.Path) -> None:
    interpreter = folder / "bin" / "python"
    uv = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", interpreter]
    for argv in (
        [sys.executable, "-m", "venv", "--clear", "--without-pip", folder],
        [*uv, "--requirement", REQUIREMENTS],
    ):
        done = subprocess.run(argv, capture_output=True, text=True, timeout=600)
        if done.returncode != 0:
            raise RuntimeError(f"{argv[:4]}: {done.stderr.strip()[-1000:]}")


def variables(**more: str) -> dict[str, str]:
    """Return the environment variables for the frameworks; they disable tracing."""
    return {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "HOME": os.environ.get("HOME", "/"),
        "LANG": "C.UTF-8",
        "XDG_STATE_HOME": os.environ["XDG_STATE_HOME"],
        "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "src", ROOT))),
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
        "OPENAI_API_KEY": "none",
        "LANGSMITH_TRACING": "false",
        "OTEL_SDK_DISABLED": "true",
        **more,
    }


if __name__ == "__main__":
    print(python())
