"""The tools that an app registers itself, and the tree of groups that they stand in."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from tooli.core.call import Stage
    from tooli.core.tool import Tool

COMMAND_SETTINGS = frozenset(
    (
        *("cls", "context_settings", "help", "epilog", "short_help", "options_metavar"),
        *("add_help_option", "no_args_is_help", "hidden", "deprecated", "rich_help_panel"),
    )
)
"""What Typer's own `command(…)` takes, beside a name."""

APP_SETTINGS = frozenset(
    (
        *("cls", "invoke_without_command", "no_args_is_help", "subcommand_metavar", "chain"),
        *("result_callback", "context_settings", "callback", "help", "epilog", "short_help"),
        *("options_metavar", "add_help_option", "hidden", "deprecated", "add_completion"),
        *("rich_markup_mode", "rich_help_panel", "suggest_commands"),
        *("pretty_exceptions_enable", "pretty_exceptions_show_locals"),
        *("pretty_exceptions_short",),
    )
)
GROUP_SETTINGS = COMMAND_SETTINGS | frozenset(
    ("invoke_without_command", "subcommand_metavar", "chain", "result_callback")
)

OUTPUT_MODES = ("auto", "json", "jsonl", "text", "plain", "toon", "csv", "md")
"""How the command line may answer."""

BUILTIN_COMMANDS = frozenset(
    (
        *("mcp", "api", "search-tools", "generate-skill", "generate-agents-md", "docs", "export"),
        *("skills", "detect-context", "config", "approvals", "audit", "idempotency"),
    )
)
"""Words that are commands of every app, where the app has none of that name itself."""


class AppState:
    """What a Tooli knows about itself, apart from what Typer keeps."""

    __slots__ = (
        "callback",
        "change_listeners",
        "command_tree",
        "commands",
        "declared_policy",
        "default_output",
        "defer_loading",
        "description",
        "framework_help",
        "groups",
        "is_typer_initialized",
        "mcp_transport",
        "module_globals",
        "name",
        "parent",
        "permissions",
        "policy",
        "policy_resolved",
        "prepared_tools",
        "prompts",
        "python_surface",
        "resolved_settings",
        "resources",
        "revision",
        "sections",
        "security_settings",
        "settings",
        "skill_auto_generate",
        "version",
    )

    def __init__(self, name: str, settings: dict[str, Any]) -> None:
        self.name = name
        self.settings = settings
        self.parent: AppState | None = None
        self.is_typer_initialized = False
        self.commands: list[Registration] = []
        self.groups: list[tuple[Any, dict[str, Any]]] = []
        self.callback: tuple[Callable[..., Any], dict[str, Any]] | None = None
        self.command_tree: CommandGroup | None = None
        self.prepared_tools: dict[str, tuple[Tool, tuple[Stage, ...]]] = {}
        self.revision = 0  # counts the changes of the tree: a server looks whether it is current
        self.resources: list[Any] = []
        self.prompts: list[Any] = []
        self.change_listeners: list[
            Callable[[str, str | None], None]
        ] = []  # servers, told of changes
        self.python_surface: Any = None  # the Python door, once somebody went through it
        self.module_globals: dict[str, Any] = {}  # the names of the module that made it
        self.policy = self.declared_policy = "standard"  # in force, and as its author declared it
        self.policy_resolved = False  # whether configuration has had its say on that
        self.security_settings: dict[
            str, Any
        ] = {}  # security settings that somebody made, beside the policy
        self.permissions: tuple[str, ...] | None = None  # the ceiling of its commands' capabilities
        self.resolved_settings: Any = None  # the settings of the run, where something was set
        self.sections: Mapping[str, str] = {}  # what its author adds to its documents, by title

    @property
    def root(self) -> AppState:
        """The house of the app at the top, wherever this one was put meanwhile."""
        state = self
        while state.parent is not None:
            state = state.parent
        return state

    @property
    def app_permissions(self) -> tuple[tuple[str, ...], ...]:
        """What its commands may touch at most, by its own word and by those of the apps above."""
        above = self.parent.app_permissions if self.parent is not None else ()
        return above if self.permissions is None else (self.permissions, *above)

    @property
    def has_security_restrictions(self) -> bool:
        """Whether more than its own declaration stands around every command."""
        return (
            self.policy == "strict" or bool(self.security_settings) or self.permissions is not None
        )

    @property
    def has_one_command(self) -> bool:
        """Whether the app is its only command: then nobody types that command's name."""
        if len(self.commands) != 1 or self.groups or self.callback is not None:
            return False
        return self.settings.get("callback") is None

    def add_command(self, registration: Registration) -> None:
        """Put a command into the app; where it says so, as a resource, too."""
        self.commands.append(registration)
        self.invalidate()
        if "resource" in registration.settings:
            from tooli.providers.resources import expose_command

            expose_command(self, registration.settings["resource"], registration)

    def invalidate(self, kind: str = "tools") -> None:
        """The app has changed (tools, resources, prompts): what was made from it is not kept."""
        state: AppState | None = self
        has_listeners = False
        while state is not None:
            has_listeners = has_listeners or bool(state.change_listeners)
            state.command_tree = None
            state.revision += 1
            state.prepared_tools.clear()
            state = state.parent
        if has_listeners:
            self.notify_change(kind)

    def notify_change(self, kind: str, uri: str | None = None) -> None:
        """Tell the servers of this app, and of those above it, what has changed."""
        state: AppState | None = self
        while state is not None:
            for listener in tuple(state.change_listeners):  # a server may end meanwhile
                listener(kind, uri)
            state = state.parent


class Registration:
    """One command as its author registered it; it becomes a Tool when somebody needs it."""

    __slots__ = ("_fn", "_state", "_tools", "info", "name", "settings", "target")

    def __init__(
        self,
        state: AppState,
        name: str | None,
        fn: Callable[..., Any] | None,
        settings: Mapping[str, Any],
        target: str | None = None,
    ) -> None:
        self._state = state
        self._fn = fn
        self._tools: dict[tuple[str, bool, tuple[str, ...]], Tool] = {}
        self.name = name
        self.settings = settings
        self.target = target
        self.info: Any = None  # Typer's own record of it, where a plain Typer registered it

    @property
    def is_from_plain_typer(self) -> bool:
        """Whether a plain Typer registered it, below a Tooli."""
        return self.info is not None

    @property
    def command_name(self) -> str:
        """The command's name as it is typed."""
        if self.name:
            return self.name
        name: str = self._fn.__name__ if self._fn is not None else (self.target or "")
        return name.rpartition(":")[2].rpartition(".")[2].lower().replace("_", "-")

    @property
    def fn(self) -> Callable[..., Any]:
        """The function; a lazy command's module is imported now."""
        if self._fn is None:
            from tooli.providers.lazy import load_function

            self._fn = load_function(self.target or "")
        return self._fn

    def tool(self, path: tuple[str, ...], root_state: AppState | None = None) -> Tool:
        """The Tool at a place in the tree of the app that was asked."""
        root = root_state or self._state.root
        is_only_command = root.has_one_command
        found = self._tools.get((root.name, is_only_command, path))
        if found is None:
            from tooli.schema.tool_reader import read_tool

            found = read_tool(
                self.fn,
                app=root.name,
                path=path,
                kwargs=self.settings,
                version=root.version,
                cli_path=() if is_only_command else path,
            )
            ceilings = self._state.app_permissions
            if ceilings:
                from tooli.core.declared_capabilities import apply_app_permissions

                found = apply_app_permissions(found, ceilings)
            self._tools[root.name, is_only_command, path] = found
        return found

    def short_help(self, path: tuple[str, ...]) -> str:
        """What the command does, in a line; a lazy one that says so itself is not loaded for it."""
        text = self.settings.get("short_help") or self.settings.get("help")
        if isinstance(text, str) and text.strip():
            return text.strip().partition("\n")[0]
        return self.tool(path).doc.summary


class CommandGroup:
    """One level of an app's tree: its commands, the groups below it, and its callback."""

    __slots__ = (
        "_callback_flags",
        "app",
        "callback",
        "commands",
        "groups",
        "has_dynamic_commands",
        "only_command",
        "state",
        "typer_reason",
    )

    def __init__(self, app: Any, state: AppState) -> None:
        self.app = app
        self.state = state
        self.commands: dict[str, Registration] = {}
        self.groups: dict[str, CommandGroup] = {}
        self.callback: Callable[..., Any] | None = None
        self.typer_reason: str | None = None  # why the light engine leaves this level to Typer
        self.has_dynamic_commands = (
            False  # its commands may be others than those that are registered
        )
        self._callback_flags: dict[str, int] | None = None
        self.only_command: Registration | None = None

    def callback_flags(self) -> dict[str, int]:
        """The flags of the level's callback, and how many words each takes."""
        if self._callback_flags is None:
            self._callback_flags = {}
            if self.callback is not None:
                from tooli.schema.tool_reader import read_tool

                for p in read_tool(self.callback, app="", path=("",), kwargs={}).params:
                    for flag in (*p.flags, *p.negations):
                        self._callback_flags[flag] = 0 if p.is_flag else p.nargs
        return self._callback_flags

    def walk(self, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Registration]]:
        """Every command below, with its path, in order."""
        for name, registration in self.commands.items():
            yield (*path, name), registration
        for name, inner in self.groups.items():
            yield from inner.walk((*path, name))


# ------------------------------------------------------------------ the tree


def build_command_tree(app: Any) -> CommandGroup:
    """The tree of an app: from the log while it is light, from Typer's lists once it is real."""
    state: AppState = app._state
    if state.is_typer_initialized:
        return _tree_from_typer(app, state)
    if state.command_tree is None:
        state.command_tree = _tree_from_registrations(app, state)
    return state.command_tree


def _tree_from_registrations(app: Any, state: AppState) -> CommandGroup:
    group = CommandGroup(app, state)
    for registration in state.commands:
        group.commands[registration.command_name] = registration
    for inner_app, settings in state.groups:
        _attach_group(group, inner_app, settings.get("name"), settings)
    if state.callback is not None:
        group.callback = state.callback[0]
        group.typer_reason = "the app has a callback"
    if state.settings.keys() & {"cls", "context_settings", "callback", "result_callback"}:
        group.callback = group.callback or state.settings.get("callback")
        group.typer_reason = "the app is set up in a way that only Typer knows"
        group.has_dynamic_commands = "cls" in state.settings
    if state.callback is not None and state.callback[1].get("cls"):
        group.has_dynamic_commands = True
    if not group.typer_reason and not state.groups and len(state.commands) == 1:
        group.only_command = state.commands[0]
    return group


def _attach_group(
    group: CommandGroup, inner_app: Any, name: Any, settings: Mapping[str, Any]
) -> None:
    """Put an app's tree below a branch, or into it where the app has no name."""
    inner_state = inner_app.__dict__.get("_state")
    if inner_state is None:
        inner_state = AppState("", {})
        inner_state.parent = group.state
        inner = _tree_from_typer(inner_app, inner_state)
        name = name or _unwrap_default(inner_app.info.name)
    else:
        inner = build_command_tree(inner_app)
        name = name or inner_state.settings.get("name")
    if (
        settings.get("callback") is not None
        or settings.get("cls")
        or settings.get("context_settings")
    ):
        inner.typer_reason = "the group is set up in a way that only Typer knows"
        inner.has_dynamic_commands = bool(settings.get("cls"))
        inner.callback = inner.callback or settings.get("callback")
    if name:
        group.groups[name] = inner
    else:
        group.commands.update(inner.commands)
        group.groups.update(inner.groups)


def _tree_from_typer(app: Any, state: AppState) -> CommandGroup:
    """The tree as Typer's own lists have it."""
    group = CommandGroup(app, state)
    for info in app.registered_commands:
        registration = getattr(info, "tooli", None)
        if registration is None:
            settings = {k: v for k, v in _fields(info).items() if k in COMMAND_SETTINGS and v}
            if getattr(settings.get("cls"), "__name__", None) == "TyperCommand":
                del settings["cls"]
            registration = Registration(state, info.name, info.callback, settings)
            registration.info = info
            info.tooli = registration
        group.commands[registration.command_name] = registration
    for info in app.registered_groups:
        settings = {k: _unwrap_default(v) for k, v in _fields(info).items()}
        _attach_group(group, info.typer_instance, settings.get("name"), settings)
    callback_info = app.registered_callback
    group.callback = (
        callback_info.callback if callback_info is not None else _unwrap_default(app.info.callback)
    )
    if callback_info is not None or group.callback is not None:
        group.typer_reason = "the app has a callback"
    elif _unwrap_default(app.info.context_settings) or _unwrap_default(app.info.result_callback):
        group.typer_reason = "the app is set up in a way that only Typer knows"
    elif not app.registered_groups and len(app.registered_commands) == 1:
        group.only_command = next(iter(group.commands.values()))
    return group


def _fields(info: object) -> dict[str, Any]:
    return vars(info)


def _unwrap_default(setting: Any) -> Any:
    """A setting of Typer's, out of the placeholder for its default."""
    return setting.value if type(setting).__name__ == "DefaultPlaceholder" else setting


# ------------------------------------------------------------------ what an app is told


def check_choice(name: str, value: str, allowed: Sequence[str]) -> None:
    """Refuse a setting that is none of those there are."""
    if value not in allowed:
        from tooli.errors import DefinitionError

        raise DefinitionError(f"{name}={value!r}: say one of {', '.join(allowed)}")


def read_permissions(permissions: object) -> tuple[str, ...]:
    """What an author lets an app's commands touch at most."""
    from tooli.core.declared_capabilities import read_app_permissions

    return read_app_permissions(permissions)


def default_app_name(module_globals: Mapping[str, Any]) -> str:
    """A name for an app that has none: that of the file it is made in."""
    origin = module_globals.get("__file__") or module_globals.get("__name__", "app")
    parts = str(origin).replace("\\", "/").split("/")
    stem = parts[-1].partition(".")[0]
    if stem in ("__main__", "__init__") and len(parts) > 1:
        stem = parts[-2]
    return stem.replace("_", "-") or "app"
