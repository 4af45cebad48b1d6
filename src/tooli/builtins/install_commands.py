"""skills add/remove/list, mcp add/remove/list: install the app for agents."""

from __future__ import annotations

from typing import Annotated, Literal, Optional

from tooli.builtins import with_plan
from tooli.schema.param_info import Option

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable

    from tooli.core.protocols import App, F

# `mcp serve` loads this module, so it does not import tooli.install. The names of agents are
# written out here; a test compares them with the tables of tooli.install.
SkillAgents = Annotated[
    list[
        Literal[
            "agents",
            "claude-code",
            "codex",
            "copilot",
            "cursor",
            "gemini",
            "kimi-code",
            "opencode",
            "pi",
            "qwen-code",
        ]
    ],
    Option(
        metavar="AGENT",
        help="Agent to install for (repeatable): claude-code, codex, copilot, cursor, gemini, "
        "kimi-code, opencode, pi, qwen-code, or agents for all that read .agents. Default: all.",
    ),
]
ServerAgents = Annotated[
    list[Literal["claude-code", "codex", "cursor", "gemini", "vscode"]],
    Option(
        metavar="AGENT",
        help="Agent whose settings to change (repeatable): claude-code, codex, cursor, gemini, "
        "vscode. Default: all.",
    ),
]
ForUser = Annotated[
    bool,
    Option("--user/--project", help="For your user account, or for this project (the default)."),
]
Command = Annotated[
    Optional[str],  # noqa: UP045  evaluated at run time, on Python 3.10 as well
    Option(help="Command that starts the app, such as 'uvx mytool'. Default: the current command."),
]
Force = Annotated[bool, Option("--force", help="Overwrite edited files; a copy is kept as .bak.")]
AgentsMd = Annotated[bool, Option("--agents-md", help="Also write a marked block in AGENTS.md.")]
ClaudeMd = Annotated[bool, Option("--claude-md", help="Also write a marked block in CLAUDE.md.")]
Rows = list[dict[str, str]]


def add_skills(group: App, app: App) -> None:
    """Add `skills add`, `skills remove` and `skills list`."""

    def add(
        agent: SkillAgents = [],  # noqa: B006  never modified
        user: ForUser = False,
        agents_md: AgentsMd = False,
        claude_md: ClaudeMd = False,
        force: Force = False,
    ) -> Rows:
        """Install the skill of the app where agents look for it; --dry-run shows the diff."""
        return _operation("add_skill")(app, agent, user, agents_md, claude_md, force)

    def remove(
        agent: SkillAgents = [],  # noqa: B006
        user: ForUser = False,
        force: Force = False,
    ) -> Rows:
        """Remove what `skills add` has installed."""
        return _operation("remove_skill")(app, agent, user, force)

    def listed() -> Rows:
        """List where the skill can be installed, and whether it is current, stale or edited."""
        return _operation("list_skills")(app)

    group.command("add")(_with_plan(add, "add_skill", app))
    group.command("remove")(_with_plan(remove, "remove_skill", app))
    group.command("list")(listed)


def add_servers(group: App, app: App) -> None:
    """Add `mcp add`, `mcp remove` and `mcp list`."""

    def add(
        agent: ServerAgents = [],  # noqa: B006
        user: ForUser = False,
        command: Command = None,
        force: Force = False,
    ) -> Rows:
        """Add the MCP server of the app to the settings of agents; --dry-run shows the diff."""
        return _operation("add_server")(app, agent, user, command, force)

    def remove(
        agent: ServerAgents = [],  # noqa: B006
        user: ForUser = False,
        command: Command = None,
        force: Force = False,
    ) -> Rows:
        """Remove the MCP server of the app from the settings of agents."""
        return _operation("remove_server")(app, agent, user, command, force)

    def listed() -> Rows:
        """List the agents whose settings can contain the MCP server, and its state there."""
        return _operation("list_servers")(app)

    group.command("add")(_with_plan(add, "add_server", app))
    group.command("remove")(_with_plan(remove, "remove_server", app))
    group.command("list")(listed)


def _operation(name: str) -> Callable[..., Rows]:
    from tooli.install import agent_install

    return getattr(agent_install, name)


def _with_plan(fn: F, name: str, app: App) -> F:
    """Return the command with a dry run that plans the same operation."""

    def plan(**arguments: object) -> Rows:
        return _operation(name)(app, **arguments, dry=True)

    return with_plan(fn, plan)
