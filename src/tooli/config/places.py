"""Where settings are kept: the project's folder, the user's, the machine's."""

from __future__ import annotations

import os

from tooli.contract.record import Record

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping

SYSTEM = (
    os.path.join(os.environ.get("PROGRAMDATA", r"C:\ProgramData"), "tooli", "config.yaml")
    if os.name == "nt"
    else "/etc/tooli/config.yaml"
)
HIGHEST = 40
"""How many folders above the current one are looked at for the project's."""

OFF = ("off", "0", "false", "no")
"""What `TOOLI_CONFIG` says to leave the files of project and user alone; the system's stays."""


class Place(Record):
    """A file that holds settings, and the layer that they belong to."""

    layer: str  # ".env" | "project" | "user" | "system"
    path: str


def find(env: Mapping[str, str], folder: str | None = None) -> list[Place]:
    """The files that there are, from the highest layer to the lowest."""
    found: list[Place] = []
    if env.get("TOOLI_CONFIG", "").lower() not in OFF:
        found += project(folder)
        own = user_file(env)
        if own is not None and os.path.exists(own):
            found.append(Place("user", own))
    if os.path.exists(SYSTEM):
        found.append(Place("system", SYSTEM))
    return found


_moved = ("", "")


def move_to(folder: str) -> None:
    """Go to the folder of `work_dir`; whose project it is that runs does not change by that."""
    global _moved  # a process has one current folder
    before = started_in()
    os.chdir(folder)
    _moved = (before, os.getcwd())


def started_in() -> str:
    """The current folder, or the one that `work_dir` took the process from; "" if it is gone."""
    try:
        here = os.getcwd()
    except OSError:
        return ""
    return _moved[0] if here == _moved[1] else here


def project(folder: str | None = None) -> list[Place]:
    """The settings of the project that a folder (this one) belongs to.

    A project's folder has a `.tooli.yaml`, a pyproject.toml with a table `tool.tooli`, or is
    the top of a repository. Where there is none, it is the folder itself.
    """
    here = root = folder or started_in()
    if not here:
        return []
    for _ in range(HIGHEST):
        files = [path for path in _files(root) if os.path.exists(path)]
        kept = [path for path in files if not path.endswith(".toml") or names_tooli(path)]
        if kept or os.path.exists(os.path.join(root, ".git")):
            return [*_dotenv(root), *(Place("project", path) for path in kept)]
        above = os.path.dirname(root)
        if above == root:
            break
        root = above
    return _dotenv(here)


def _files(root: str) -> list[str]:
    return [os.path.join(root, name) for name in (".tooli.yaml", "pyproject.toml")]


def _dotenv(root: str) -> list[Place]:
    path = os.path.join(root, ".env")
    return [Place(".env", path)] if os.path.isfile(path) else []


def user_file(env: Mapping[str, str]) -> str | None:
    """The user's own file; None where nobody knows the user's folder."""
    if os.name == "nt":
        home = env.get("APPDATA")
        return os.path.join(home, "tooli", "config.yaml") if home else None
    home = env.get("XDG_CONFIG_HOME")
    if not home:
        user = env.get("HOME")
        home = os.path.join(user, ".config") if user else None
    return os.path.join(home, "tooli", "config.yaml") if home else None


def names_tooli(path: str) -> bool:
    """Whether a pyproject.toml may have a table `tool.tooli`; it is not parsed for that."""
    try:
        with open(path, "rb") as file:
            text = file.read().translate(None, b" \t\r\"'")
    except OSError:
        return True  # it is there and cannot be read: whoever reads it says so
    signs = (b"tool.tooli]", b"tool.tooli.", b"tool.tooli=", b"[tool]\n", b"\ntool={")
    return any([sign in b"\n" + text for sign in signs])
