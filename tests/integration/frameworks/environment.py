"""The frameworks, each at its pinned version, in a virtual environment of their own.

    python -m tests.integration.frameworks.environment     makes it

It is made once for a list of requirements and a Python, and kept in `.cache`.
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
NEW = sys.version_info >= (3, 11)
"""Whether this Python is new enough for all of them."""


def python() -> pathlib.Path:
    """The interpreter that has the frameworks; it gets them now, if it has none yet."""
    parts = (REQUIREMENTS.read_bytes(), sys.version.encode(), sys.base_prefix.encode())
    room = ROOT / ".cache" / f"frameworks-{hashlib.sha256(b'|'.join(parts)).hexdigest()[:12]}"
    room.parent.mkdir(exist_ok=True)
    with (room.parent / f"{room.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the tests' other process waits here
        if not (room / ".ready").exists():
            _install(room)
            (room / ".ready").touch()
    return room / "bin" / "python"


def _install(room: pathlib.Path) -> None:
    interpreter = room / "bin" / "python"
    uv = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", interpreter]
    for words in (
        [sys.executable, "-m", "venv", "--clear", "--without-pip", room],
        [*uv, "--requirement", REQUIREMENTS],
    ):
        done = subprocess.run(words, capture_output=True, text=True, timeout=600)
        if done.returncode != 0:
            raise RuntimeError(f"{words[:4]}: {done.stderr.strip()[-1000:]}")


def variables(**more: str) -> dict[str, str]:
    """What a process of the frameworks has in its environment: this tree, and no network."""
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
