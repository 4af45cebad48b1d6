"""Places: where agents look for skills and for MCP servers, in a project and for a user.

Data, and the few variables that move it: HOME, CLAUDE_CONFIG_DIR, CODEX_HOME, GEMINI_CLI_HOME
and XDG_CONFIG_HOME are honoured where the agents themselves honour them.
"""

from __future__ import annotations

import os
import sys

from tooli.contract.record import Record

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable

_SHARED = (".agents/skills", "{home}/.agents/skills")

SKILLS: dict[str, tuple[str, str]] = {
    # agent: (in a project, for a user)
    "agents": _SHARED,  # whoever reads the shared folder
    "claude-code": (".claude/skills", "{claude}/skills"),
    "codex": _SHARED,
    "copilot": _SHARED,
    "cursor": _SHARED,
    "gemini": _SHARED,
    "kimi-code": _SHARED,
    "opencode": _SHARED,
    "pi": _SHARED,
    "qwen-code": _SHARED,
}
EVERYBODY = ("agents", "claude-code")
"""Whom a skill is installed for where nobody is named: between them they reach all."""

DOCUMENTS = {"AGENTS.md": "agents", "CLAUDE.md": "claude-code"}


class Registry(Record):
    """A file in which an agent keeps its MCP servers."""

    project: str
    user: str
    form: str = "json"  # or toml
    container: str = "mcpServers"  # the object, or table, that holds them by name
    typed: bool = True  # whether an entry says "type": "stdio"


SERVERS: dict[str, Registry] = {
    "claude-code": Registry(".mcp.json", "{claude_state}"),
    "codex": Registry(".codex/config.toml", "{codex}/config.toml", "toml", "mcp_servers", False),
    "cursor": Registry(".cursor/mcp.json", "{home}/.cursor/mcp.json"),
    "gemini": Registry(".gemini/settings.json", "{gemini}/settings.json", typed=False),
    "vscode": Registry(".vscode/mcp.json", "{code}/mcp.json", container="servers"),
}


class Place(Record):
    """A path that agents look at, and which of them do."""

    path: str
    agent: str


def skill_places(agents: Iterable[str], *, user: bool) -> list[Place]:
    """The folders that skills go into, each once, with the agents that read it."""
    readers: dict[str, list[str]] = {}
    for agent in agents or EVERYBODY:
        place = _resolve(SKILLS[agent][user], user=user)
        if agent not in readers.setdefault(place, []):
            readers[place].append(agent)
    return [Place(path, ", ".join(names)) for path, names in readers.items()]


def server_places(agents: Iterable[str], *, user: bool) -> list[Place]:
    """The files that servers are registered in."""
    return [
        Place(_resolve(SERVERS[agent].user if user else SERVERS[agent].project, user=user), agent)
        for agent in dict.fromkeys(agents or SERVERS)
    ]


def project_root() -> str:
    """The nearest folder that Git knows as a root, else the current one.

    A home folder that is kept in Git is nobody's project.
    """
    here = folder = os.getcwd()
    home = os.path.realpath(os.path.expanduser("~"))
    while True:
        if os.path.realpath(folder) == home:
            return here
        if os.path.exists(os.path.join(folder, ".git")):
            return folder
        above = os.path.dirname(folder)
        if above == folder:
            return here
        folder = above


def shown(path: str) -> str:
    """A path as it is told: relative where it lies below the current folder."""
    try:
        near = os.path.relpath(path)
    except ValueError:  # another drive
        return path
    return path if near.startswith("..") else near


def _resolve(pattern: str, *, user: bool) -> str:
    if not user:
        return os.path.join(project_root(), *pattern.split("/"))
    return os.path.normpath(pattern.format_map(_roots()))


def _roots() -> dict[str, str]:
    said = os.environ.get
    home = os.path.expanduser("~")
    claude = said("CLAUDE_CONFIG_DIR")
    if sys.platform == "win32":
        settings = said("APPDATA") or os.path.join(home, "AppData", "Roaming")
    elif sys.platform == "darwin":
        settings = os.path.join(home, "Library", "Application Support")
    else:
        settings = said("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    return {
        "home": home,
        "claude": claude or os.path.join(home, ".claude"),
        "claude_state": os.path.join(claude or home, ".claude.json"),
        "codex": said("CODEX_HOME") or os.path.join(home, ".codex"),
        "gemini": os.path.join(said("GEMINI_CLI_HOME") or home, ".gemini"),
        "code": os.path.join(settings, "Code", "User"),
    }
