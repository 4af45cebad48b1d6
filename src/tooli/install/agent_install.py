"""Implement the commands `skills` and `mcp add/remove/list`.

Each function plans the steps, applies them and returns result rows. The variables HOME,
CLAUDE_CONFIG_DIR, CODEX_HOME, GEMINI_CLI_HOME, COPILOT_HOME, KIMI_CODE_HOME, CLINE_DATA_DIR and
XDG_CONFIG_HOME change the paths of agents, as they do in the agents themselves.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from shutil import which

from tooli.config.file_trust import is_own_project
from tooli.core.agent_hosts import AGENT_HOSTS, SERVER_HOSTS, SKILL_HOSTS, server_settings
from tooli.core.declared_capabilities import is_under_any
from tooli.describe.agent_documents import (
    render_agents_md_block,
    render_claude_md_block,
)
from tooli.describe.front_matter import skill_slug
from tooli.describe.sections import collect_app_info
from tooli.errors import InputError, Suggestion, ToolError, shell_quote
from tooli.install.file_changes import (
    display_path,
    plan_and_apply,
)
from tooli.install.managed_files import (
    app_skill_files,
    command_of_block,
    has_block,
    installed_command,
    plan_block,
    plan_block_removal,
    plan_skill,
    plan_skill_removal,
)
from tooli.install.server_registration import (
    SERVE_ARGV,
    AgentPath,
    ServerPlan,
    ServerRecords,
    plan_server,
    plan_server_removal,
    program_argv,
    server_argv,
    split_command,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from tooli.core.protocols import ToolSource
    from tooli.install.file_changes import InstallStep

    Rows = list[dict[str, str]]

DEFAULT_AGENTS = ("agents", "claude-code")
"""Agents that a skill is installed for by default. Every agent reads one of their folders."""

DEFAULT_SERVER_AGENTS = tuple([name for name in SERVER_HOSTS if AGENT_HOSTS[name].is_default])
"""Agents that a server is registered with by default."""

DOCUMENT_AGENTS = {"AGENTS.md": "agents", "CLAUDE.md": "claude-code"}


def add_skill(
    app: ToolSource,
    agent: Sequence[str],
    user: bool,
    agents_md: bool,
    claude_md: bool,
    force: bool,
    command: str | None = None,
    *,
    dry: bool = False,
) -> Rows:
    """Write the skill, and optionally blocks in AGENTS.md and CLAUDE.md.

    The command lines in them start with `command` if the name does not start the program.
    """
    if user and (agents_md or claude_md):
        raise InputError(
            "AGENTS.md and CLAUDE.md belong to a project; --user has no such files.",
            field="agents_md" if agents_md else "claude_md",
            suggestion=Suggestion("retry_with_modified_input", "Leave out --user."),
        )
    words = split_command(command) if command is not None else ()
    name, files = app._state.name, app_skill_files(app, words)

    def plan() -> list[InstallStep]:
        steps = [
            plan_skill(agent_path.path, agent_path.agent, name, files, agent_path.root)
            for agent_path in skill_paths(name, agent, user=user)
        ]
        blocks = {"AGENTS.md": agents_md, "CLAUDE.md": claude_md}
        selected = [file for file, is_selected in blocks.items() if is_selected]
        return steps + _plan_blocks(app, selected, words)

    return plan_and_apply(plan, force=force, dry_run=dry)


def remove_skill(
    app: ToolSource, agent: Sequence[str], user: bool, force: bool, *, dry: bool = False
) -> Rows:
    """Remove the files that `add_skill` wrote. If `agent` is empty, remove those of all agents."""

    def plan() -> list[InstallStep]:
        steps = [
            plan_skill_removal(
                at.path, _display_agent(at, agent), _installed_files(app, at), at.root
            )
            for at in skill_paths(app._state.name, agent or SKILL_HOSTS, user=user)
        ]
        if agent or user:
            return steps
        return steps + _plan_blocks(app, DOCUMENT_AGENTS, removal=True)

    return plan_and_apply(plan, force=force, dry_run=dry)


def list_skills(app: ToolSource) -> Rows:
    """Return every path where the skill may be, and its state there."""
    name = app._state.name

    def plan(at: AgentPath) -> InstallStep:
        return plan_skill(at.path, at.agent, name, _installed_files(app, at), at.root)

    def plan_document(file: str) -> InstallStep:
        command = command_of_block(app, os.path.join(project_root(), file))
        return _plan_blocks(app, (file,), command)[0]

    found = [
        _status_row(at, scope, partial(plan, at))
        for scope in ("project", "user")
        for at in skill_paths(name, (), user=scope == "user")
    ]
    for file, agent in DOCUMENT_AGENTS.items():
        document = AgentPath(os.path.join(project_root(), file), agent, project_root())
        found.append(_status_row(document, "project", partial(plan_document, file)))
    return found


def _change_server(
    app: ToolSource,
    agent: Sequence[str],
    user: bool,
    command: str | None,
    force: bool,
    *,
    remove: bool,
    dry: bool = False,
) -> Rows:
    """Register the app's MCP server with agents, or remove it from their settings."""
    _check_scope(agent, user=user)
    argv = _known_server_argv(app, command) if remove else _server_argv(app, command)
    plan = plan_server_removal if remove else plan_server
    name, server_plans, records = skill_slug(app._state.name), list[ServerPlan](), ServerRecords()

    def plan_steps() -> list[InstallStep]:
        nonlocal records
        records = ServerRecords()  # read while the lock is held
        agents = agent or (SERVER_HOSTS if remove else DEFAULT_SERVER_AGENTS)
        server_plans[:] = [
            plan(agent_path, name, argv, records)
            for agent_path in server_config_paths(agents, user=user)
        ]
        return [server_plan.step for server_plan in server_plans]

    def save_records() -> None:
        for server_plan in server_plans:
            records.set(server_plan.file, name, server_plan.written_entry)
        records.save()  # may fail; entries are then recognized by their content

    return plan_and_apply(plan_steps, force=force, dry_run=dry, on_applied=save_records)


add_server = partial(_change_server, remove=False)
remove_server = partial(_change_server, remove=True)


def list_servers(app: ToolSource) -> Rows:
    """Return every file in which the server may be registered, and its state there."""
    argv, records = _known_server_argv(app, None), ServerRecords()
    name = skill_slug(app._state.name)
    return [
        _status_row(
            agent_path,
            scope,
            lambda agent_path=agent_path: plan_server(agent_path, name, argv, records).step,
        )
        for scope in ("project", "user")
        for agent_path in server_config_paths(SERVER_HOSTS, user=scope == "user")
    ]


# ------------------------------------------------------------------ helpers


def _installed_files(app: ToolSource, at: AgentPath) -> dict[str, str]:
    """Return the files of the skill as they should be in a folder, with the command there."""
    return app_skill_files(app, installed_command(app, at.path))


def _plan_blocks(
    app: ToolSource, names: Collection[str], command: Sequence[str] = (), *, removal: bool = False
) -> list[InstallStep]:
    """Plan the managed blocks. If one document is a link to the other, plan only one block."""
    root, app_name = project_root(), app._state.name
    app_info = collect_app_info(app).with_command(command)
    shared = os.path.join(root, "AGENTS.md")
    has_agents_md = "AGENTS.md" in names or has_block(shared, app_name, root)
    bodies = {
        "AGENTS.md": render_agents_md_block(app_info),
        "CLAUDE.md": render_claude_md_block(app_info, refer_to_agents_md=has_agents_md),
    }
    plan = plan_block_removal if removal else plan_block
    seen: set[str] = set()
    steps: list[InstallStep] = []
    for name in names:
        path = os.path.join(root, name)
        if os.path.realpath(path) not in seen:
            seen.add(os.path.realpath(path))
            steps.append(plan(path, DOCUMENT_AGENTS[name], app_name, bodies[name], root))
    return steps


def _status_row(
    agent_path: AgentPath, scope: str, plan: Callable[[], InstallStep]
) -> dict[str, str]:
    """Return a row with a path and its state. The state is "damaged" if planning fails."""
    try:
        state = plan().state
    except (ToolError, OSError):
        state = "damaged"
    return {
        "path": display_path(agent_path.path),
        "agent": agent_path.agent,
        "scope": scope,
        "state": state,
    }


def _display_agent(agent_path: AgentPath, agent: Sequence[str]) -> str:
    """Return the agents to show for a path: those requested, or the first that reads it."""
    return agent_path.agent if agent else agent_path.agent.partition(",")[0]


def _server_argv(app: ToolSource, command: str | None) -> Sequence[str]:
    """Return the argv of the app's MCP server; `command` overrides how the app is started."""
    state = app._state
    if state.reference and command is None:
        return server_argv("tooli", None, ("serve", *state.reference, *SERVE_ARGV[2:]))
    program, *arguments = collect_app_info(app).builtin_argv(*SERVE_ARGV)
    if program != state.name:
        line = " ".join([program, "mcp", "add", *arguments[2:3]])
        raise InputError(f"{state.name} takes the words 'mcp serve' itself. Run: {line}")
    return server_argv(state.name, command, arguments)


def _known_server_argv(app: ToolSource, command: str | None) -> Sequence[str]:
    """Return the argv of the server. If it is unknown, return one that matches no entry."""
    try:
        return _server_argv(app, command)
    except InputError:
        if command is not None:
            raise
        return ("",)


def skill_warnings(app: ToolSource, command: str | None) -> list[str]:
    """Return what is wrong with the skill of an app: broken examples, a program not on the PATH."""
    warnings = list(collect_app_info(app).problems)
    name = app._state.name
    if command is None and which(name) is None:
        known = " ".join(map(shell_quote, _running_program(name)))
        example = f", such as --command {shell_quote(known)}" if known else ""
        warnings.append(
            f"{name} is not on the PATH, so the command lines of the skill do not work. "
            f"Install the program, or pass --command with a command that starts it{example}."
        )
    return warnings


def _running_program(name: str) -> Sequence[str]:
    try:
        return program_argv(name)
    except ToolError:
        return ()


# ------------------------------------------------------------------ paths


def skill_paths(app: str, agents: Iterable[str], *, user: bool) -> list[AgentPath]:
    """Return the folders for the skill of an app, each with the agents that read it."""
    agents_by_folder: dict[tuple[str, str], list[str]] = {}
    for agent in dict.fromkeys(agents or DEFAULT_AGENTS):
        folders = AGENT_HOSTS[agent].skills
        assert folders is not None
        folder, root = _resolve(folders[user], user=user)
        path = os.path.join(folder, skill_slug(app))
        agents_by_folder.setdefault((path, root), []).append(agent)
    return [
        AgentPath(path, ", ".join(names), root) for (path, root), names in agents_by_folder.items()
    ]


def server_config_paths(agents: Iterable[str], *, user: bool) -> list[AgentPath]:
    """Return the files in which servers are registered. Agents that have none are left out."""
    found: list[AgentPath] = []
    for agent in dict.fromkeys(agents):
        settings = server_settings(agent)
        pattern = settings.user if user else settings.project
        if pattern:
            path, root = _resolve(pattern, user=user)
            found.append(AgentPath(path, agent, root))
    return found


def _check_scope(agents: Iterable[str], *, user: bool) -> None:
    """Raise an error for an agent that has no settings file in a project."""
    titles = [AGENT_HOSTS[agent].title for agent in agents if not server_settings(agent).project]
    if titles and not user:
        raise InputError(
            f"{', '.join(titles)}: MCP servers are registered for the user, not in a project.",
            field="user",
            suggestion=Suggestion("retry_with_modified_input", "Add --user."),
        )


def project_root() -> str:
    """Return the root of the Git repository, or else the current folder.

    A home folder that is a Git repository does not count as a project, nor does a repository that
    another user made in a folder above, such as /tmp.
    """
    here = folder = os.getcwd()
    home = os.path.realpath(os.path.expanduser("~"))
    while True:
        if os.path.realpath(folder) == home:
            return here
        repository = os.path.join(folder, ".git")
        if os.path.lexists(repository) and (folder == here or is_own_project(repository)):
            return folder
        above = os.path.dirname(folder)
        if above == folder:
            return here
        folder = above


def _resolve(pattern: str, *, user: bool) -> tuple[str, str]:
    """Return a path, and the folder of the project or user that no link on it may leave."""
    if not user:
        root = project_root()
        return os.path.join(root, *pattern.split("/")), root
    base_dirs = _base_dirs()
    path, home = os.path.normpath(pattern.format_map(base_dirs)), base_dirs["home"]
    is_in_home = is_under_any(path, (os.path.normpath(home),))
    return path, home if is_in_home else base_dirs[pattern[1:].partition("}")[0]]


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
    config = getenv("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    goose = (settings, "Block", "goose", "config") if sys.platform == "win32" else (config, "goose")
    return {
        "home": home,
        "claude": claude or os.path.join(home, ".claude"),
        "claude_state": claude or home,
        "cline": getenv("CLINE_DATA_DIR") or os.path.join(home, ".cline", "data"),
        "codex": getenv("CODEX_HOME") or os.path.join(home, ".codex"),
        "config": config,
        "copilot": getenv("COPILOT_HOME") or os.path.join(home, ".copilot"),
        "gemini": os.path.join(getenv("GEMINI_CLI_HOME") or home, ".gemini"),
        "goose": os.path.join(*goose),
        "kimi": getenv("KIMI_CODE_HOME") or os.path.join(home, ".kimi-code"),
        "settings": settings,
    }
