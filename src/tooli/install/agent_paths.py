"""Paths at which agents look for skills and MCP servers, in a project and for a user.

The variables HOME, CLAUDE_CONFIG_DIR, CODEX_HOME, GEMINI_CLI_HOME and XDG_CONFIG_HOME change these
paths, as they do in the agents.
"""

from __future__ import annotations

import os
import sys

from tooli.core.record import Record

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable

_SHARED_PATHS = (".agents/skills", "{home}/.agents/skills")

SKILL_PATHS: dict[str, tuple[str, str]] = {
    # agent: (in a project, for a user)
    "agents": _SHARED_PATHS,  # any agent that reads the shared folder
    "claude-code": (".claude/skills", "{claude}/skills"),
    "codex": _SHARED_PATHS,
    "copilot": _SHARED_PATHS,
    "cursor": _SHARED_PATHS,
    "gemini": _SHARED_PATHS,
    "kimi-code": _SHARED_PATHS,
    "opencode": _SHARED_PATHS,
    "pi": _SHARED_PATHS,
    "qwen-code": _SHARED_PATHS,
}
DEFAULT_AGENTS = ("agents", "claude-code")
"""Agents that a skill is installed for by default. Every agent reads one of their folders."""

DOCUMENT_AGENTS = {"AGENTS.md": "agents", "CLAUDE.md": "claude-code"}


class ServerConfigFile(Record):
    """The settings file of an agent that lists MCP servers."""

    project: str
    user: str
    file_format: str = "json"  # or toml
    container: str = "mcpServers"  # the object or table that holds the servers by name
    has_type_key: bool = True  # entries have "type": "stdio"


SERVER_CONFIGS: dict[str, ServerConfigFile] = {
    "claude-code": ServerConfigFile(".mcp.json", "{claude_state}"),
    "codex": ServerConfigFile(
        ".codex/config.toml", "{codex}/config.toml", "toml", "mcp_servers", False
    ),
    "cursor": ServerConfigFile(".cursor/mcp.json", "{home}/.cursor/mcp.json"),
    "gemini": ServerConfigFile(
        ".gemini/settings.json", "{gemini}/settings.json", has_type_key=False
    ),
    "vscode": ServerConfigFile(".vscode/mcp.json", "{code}/mcp.json", container="servers"),
}


class AgentPath(Record):
    """A path and the agents that read it."""

    path: str
    agent: str


def skill_paths(agents: Iterable[str], *, user: bool) -> list[AgentPath]:
    """Return the folders for skills, each with the agents that read it."""
    agents_by_path: dict[str, list[str]] = {}
    for agent in agents or DEFAULT_AGENTS:
        path_key = _resolve(SKILL_PATHS[agent][user], user=user)
        if agent not in agents_by_path.setdefault(path_key, []):
            agents_by_path[path_key].append(agent)
    return [AgentPath(path, ", ".join(names)) for path, names in agents_by_path.items()]


def server_config_paths(agents: Iterable[str], *, user: bool) -> list[AgentPath]:
    """Return the files in which servers are registered."""
    return [
        AgentPath(
            _resolve(
                SERVER_CONFIGS[agent].user if user else SERVER_CONFIGS[agent].project, user=user
            ),
            agent,
        )
        for agent in dict.fromkeys(agents or SERVER_CONFIGS)
    ]


def project_root() -> str:
    """Return the root of the Git repository, or else the current folder.

    A home folder that is a Git repository does not count as a project.
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


def display_path(path: str) -> str:
    """Return a path for display: relative if it is below the current folder."""
    try:
        relative = os.path.relpath(path)
    except ValueError:  # another drive
        return path
    return path if relative.startswith("..") else relative


def _resolve(pattern: str, *, user: bool) -> str:
    if not user:
        return os.path.join(project_root(), *pattern.split("/"))
    return os.path.normpath(pattern.format_map(_base_dirs()))


def _base_dirs() -> dict[str, str]:
    getenv = os.environ.get
    home = os.path.expanduser("~")
    claude = getenv("CLAUDE_CONFIG_DIR")
    if sys.platform == "win32":
        settings = getenv("APPDATA") or os.path.join(home, "AppData", "Roaming")
    elif sys.platform == "darwin":
        settings = os.path.join(home, "Library", "Application Support")
    else:
        settings = getenv("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    return {
        "home": home,
        "claude": claude or os.path.join(home, ".claude"),
        "claude_state": os.path.join(claude or home, ".claude.json"),
        "codex": getenv("CODEX_HOME") or os.path.join(home, ".codex"),
        "gemini": os.path.join(getenv("GEMINI_CLI_HOME") or home, ".gemini"),
        "code": os.path.join(settings, "Code", "User"),
    }
