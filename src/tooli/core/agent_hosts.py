"""The coding agents that an app can be installed for, in one table.

To add an agent, add a row. `skills`, `mcp add`, `export --target permissions`, their help, and the
tables in docs/installing.md derive from the table. A new file format needs code: formats of
settings files are in `install/server_formats.py`, formats of rules in `export/permissions.py`.

A path may start with one of the folders of `install/agent_install.py`, such as `{home}`.
"""

from __future__ import annotations

from tooli.core import Record

PROGRAM, ARGUMENTS, ARGV, NAME = "{program}", "{arguments}", "{argv}", "{name}"
"""Values in `ServerSettings.entry` that are replaced when the entry is written."""

_COMMAND = (("command", PROGRAM), ("args", ARGUMENTS))
_TYPED_COMMAND = (("type", "stdio"), *_COMMAND)
_SHARED_FOLDER = (".agents/skills", "{home}/.agents/skills")


class ServerSettings(Record):
    """The settings file of an agent that lists MCP servers."""

    project: str  # "" if the agent has no such file in a project
    user: str
    entry: tuple[tuple[str, object], ...] = _TYPED_COMMAND
    file_format: str = "json"  # or "toml", "yaml"
    container: str = "mcpServers"  # the object or table that holds the servers by name
    rule_keys: tuple[str, ...] = ()  # keys of an entry that are permission rules


class AgentHost(Record):
    """A coding agent."""

    title: str
    skills: tuple[str, str] | None = None  # the folder in a project, and the one of a user
    servers: ServerSettings | None = None
    rules: str = ""  # the name of a format in `export/permissions.py`
    rules_for: str = "project"  # "user": it reads rules from the user's folder only
    is_default: bool = False  # `mcp add` without --agent registers the server with it


AGENT_HOSTS: dict[str, AgentHost] = {
    "agents": AgentHost("any agent that reads the shared folder", _SHARED_FOLDER),
    "claude-code": AgentHost(
        "Claude Code",
        (".claude/skills", "{claude}/skills"),
        ServerSettings(".mcp.json", "{claude_state}/.claude.json"),
        "claude-code",
        is_default=True,
    ),
    "claude-desktop": AgentHost(
        "Claude Desktop",
        servers=ServerSettings("", "{settings}/Claude/claude_desktop_config.json", _COMMAND),
    ),
    "cline": AgentHost(
        "Cline",
        _SHARED_FOLDER,
        ServerSettings("", "{cline}/settings/cline_mcp_settings.json", _COMMAND),
    ),
    "codex": AgentHost(
        "Codex",
        _SHARED_FOLDER,
        ServerSettings(
            ".codex/config.toml",
            "{codex}/config.toml",
            _COMMAND,
            "toml",
            "mcp_servers",
            ("disabled_tools", "tools"),
        ),
        "codex",
        is_default=True,
    ),
    "copilot": AgentHost(
        "Copilot CLI",
        _SHARED_FOLDER,
        ServerSettings(
            ".github/mcp.json",
            "{copilot}/mcp-config.json",
            (("type", "local"), *_COMMAND, ("tools", ("*",))),
        ),
        "copilot",
    ),
    "cursor": AgentHost(
        "Cursor",
        _SHARED_FOLDER,
        ServerSettings(".cursor/mcp.json", "{home}/.cursor/mcp.json"),
        "cursor",
        is_default=True,
    ),
    "gemini": AgentHost(
        "Gemini CLI",
        _SHARED_FOLDER,
        ServerSettings(".gemini/settings.json", "{gemini}/settings.json", _COMMAND),
        "gemini",
        rules_for="user",
        is_default=True,
    ),
    "goose": AgentHost(
        "Goose",
        _SHARED_FOLDER,
        ServerSettings(
            "",
            "{goose}/config.yaml",
            (
                *(("type", "stdio"), ("name", NAME), ("enabled", True)),
                *(("cmd", PROGRAM), ("args", ARGUMENTS), ("timeout", 300)),
            ),
            "yaml",
            "extensions",
        ),
    ),
    "kimi-code": AgentHost(
        "Kimi Code",
        _SHARED_FOLDER,
        ServerSettings(".kimi-code/mcp.json", "{kimi}/mcp.json", _COMMAND),
    ),
    "opencode": AgentHost(
        "OpenCode",
        _SHARED_FOLDER,
        ServerSettings(
            "opencode.json",
            "{config}/opencode/opencode.json",
            (("type", "local"), ("command", ARGV), ("enabled", True)),
            container="mcp",
        ),
        "opencode",
    ),
    "pi": AgentHost("Pi", _SHARED_FOLDER),
    "qwen-code": AgentHost(
        "Qwen Code",
        _SHARED_FOLDER,
        ServerSettings(".qwen/settings.json", "{home}/.qwen/settings.json", _COMMAND),
        "qwen-code",
    ),
    "vscode": AgentHost(
        "VS Code",
        servers=ServerSettings(
            ".vscode/mcp.json", "{settings}/Code/User/mcp.json", container="servers"
        ),
        is_default=True,
    ),
    "windsurf": AgentHost(
        "Windsurf",
        (".windsurf/skills", "{home}/.codeium/windsurf/skills"),
        ServerSettings("", "{home}/.codeium/windsurf/mcp_config.json", _COMMAND),
    ),
}

SKILL_HOSTS = tuple([name for name, host in AGENT_HOSTS.items() if host.skills])
SERVER_HOSTS = tuple([name for name, host in AGENT_HOSTS.items() if host.servers])
RULE_HOSTS = tuple([name for name, host in AGENT_HOSTS.items() if host.rules])


def server_settings(agent: str) -> ServerSettings:
    """Return the settings file of an agent in SERVER_HOSTS."""
    settings = AGENT_HOSTS[agent].servers
    assert settings is not None
    return settings
