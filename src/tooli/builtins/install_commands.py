"""skills add, skills remove, skills list, mcp add, mcp remove, mcp list: the app, for agents."""

from __future__ import annotations

from typing import Annotated, Literal, Optional

from tooli.schema.param_info import Option

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# Written out, not taken from the tables of tooli.install: they are read for help and completion
# whenever a server starts, and a test holds them to the tables.
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
        help="For whom, once or more: claude-code, codex, copilot, cursor, gemini, kimi-code, "
        "opencode, pi, qwen-code; agents is whoever reads .agents. Without it: all."
    ),
]
ServerAgents = Annotated[
    list[Literal["claude-code", "codex", "cursor", "gemini", "vscode"]],
    Option(
        help="Whose settings, once or more: claude-code, codex, cursor, gemini, vscode. "
        "Without it: all."
    ),
]
ForUser = Annotated[
    bool,
    Option("--user/--project", help="For you, everywhere, or for this project alone."),
]
Command = Annotated[
    Optional[str],  # noqa: UP045  evaluated where it stands, on Python 3.10 as well
    Option(help="How the app is started, if not as it was now: 'uvx mytool'."),
]
Force = Annotated[
    bool, Option("--force", help="Write over edits, too; the edited text is kept as .bak.")
]
AgentsMd = Annotated[bool, Option("--agents-md", help="A marked block in AGENTS.md as well.")]
ClaudeMd = Annotated[bool, Option("--claude-md", help="A marked block in CLAUDE.md as well.")]
Rows = list[dict[str, str]]


def add_skills(group: Any, app: Any) -> None:
    """`skills add`, `skills remove`, `skills list`."""

    def add(
        agent: SkillAgents = [],  # noqa: B006  nobody changes it
        user: ForUser = False,
        agents_md: AgentsMd = False,
        claude_md: ClaudeMd = False,
        force: Force = False,
    ) -> Rows:
        """Write the app's skill where agents look for it; --dry-run shows the diff."""
        return _operation("add_skill")(app, agent, user, agents_md, claude_md, force)

    def remove(
        agent: SkillAgents = [],  # noqa: B006
        user: ForUser = False,
        force: Force = False,
    ) -> Rows:
        """Take away what `skills add` has written, and nothing else."""
        return _operation("remove_skill")(app, agent, user, force)

    def listed() -> Rows:
        """Show every place where the skill may be: current, stale, edited or absent."""
        return _operation("list_skills")(app)

    group.command("add")(_with_plan(add, "add_skill", app))
    group.command("remove")(_with_plan(remove, "remove_skill", app))
    group.command("list")(listed)


def add_servers(group: Any, app: Any) -> None:
    """`mcp add`, `mcp remove`, `mcp list`."""

    def add(
        agent: ServerAgents = [],  # noqa: B006
        user: ForUser = False,
        command: Command = None,
        force: Force = False,
    ) -> Rows:
        """Register the app's MCP server in the settings of agents; --dry-run shows the diff."""
        return _operation("add_server")(app, agent, user, command, force)

    def remove(
        agent: ServerAgents = [],  # noqa: B006
        user: ForUser = False,
        command: Command = None,
        force: Force = False,
    ) -> Rows:
        """Take the app's MCP server out of the settings of agents again."""
        return _operation("remove_server")(app, agent, user, command, force)

    def listed() -> Rows:
        """Show whose settings know the app's MCP server: current, stale, edited or absent."""
        return _operation("list_servers")(app)

    group.command("add")(_with_plan(add, "add_server", app))
    group.command("remove")(_with_plan(remove, "remove_server", app))
    group.command("list")(listed)


def _operation(name: str) -> Callable[..., Rows]:
    from tooli.install import agent_install

    return getattr(agent_install, name)


def _with_plan(fn: Any, name: str, app: Any) -> Any:
    """A command that tells in a dry run itself what it would do."""

    def plan(**arguments: Any) -> Rows:
        return _operation(name)(app, **arguments, dry=True)

    fn.tooli_plan = plan
    return fn
