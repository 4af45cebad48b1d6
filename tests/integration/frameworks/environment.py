"""Virtual environments with the agent frameworks at their pinned versions.

`python -m tests.integration.frameworks.environment` creates them. They are stored in `.cache`, one
per list of requirements and Python version.
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
REQUIREMENTS = {
    "frameworks": HERE / "requirements.txt",
    "crewai": HERE / "requirements-crewai.txt",
    "mcp": HERE / "requirements-mcp.txt",
    "smolagents": HERE / "requirements-smolagents.txt",
}
"""The list of requirements of each environment."""
EXPORT_ENVIRONMENTS = ("frameworks", "crewai")
"""The environments that exports run in."""

SUPPORTS_ALL = sys.version_info >= (3, 11)
"""True if this Python version runs all frameworks."""


def environment_of(target: str) -> str:
    """Return the name of the environment that has the framework of an export target."""
    return target if target in EXPORT_ENVIRONMENTS else "frameworks"


def python(name: str = "frameworks") -> pathlib.Path:
    """Return the interpreter of an environment; create the environment if it is missing."""
    requirements = REQUIREMENTS[name]
    parts = (requirements.read_bytes(), sys.version.encode(), sys.base_prefix.encode())
    folder = ROOT / ".cache" / f"{name}-{hashlib.sha256(b'|'.join(parts)).hexdigest()[:12]}"
    folder.parent.mkdir(exist_ok=True)
    with (folder.parent / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # other test processes wait here
        if not (folder / ".ready").exists():
            _install(folder, requirements)
            (folder / ".ready").touch()
    return folder / "bin" / "python"


def _install(folder: pathlib.Path, requirements: pathlib.Path) -> None:
    interpreter = folder / "bin" / "python"
    uv = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", interpreter]
    for argv in (
        [sys.executable, "-m", "venv", "--clear", "--without-pip", folder],
        [*uv, "--requirement", requirements],
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
        "CREWAI_DISABLE_TELEMETRY": "true",
        "CREWAI_DISABLE_VERSION_CHECK": "true",
        "CREWAI_TRACING_ENABLED": "false",
        **more,
    }


if __name__ == "__main__":
    for each in REQUIREMENTS:
        print(python(each))
