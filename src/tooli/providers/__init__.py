"""Where tools come from. This file has the commands that an app registers itself, and their tree.

    @app.command() ──▶ Registration ──▶ Tool        (read when it is first needed)
    app.tree()     ──▶ CommandGroup ──▶ CommandGroup, Registration, …

`from tooli import Tooli` loads this file, so it imports only `tooli.core` at the top. A Tooli keeps
a log of its registrations. Once its Typer is initialized, the tree is read from Typer's own lists.
"""

from __future__ import annotations

from tooli.core import TYPER_COMMAND_KEYWORDS, AppState

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping, Sequence
    from typing import Any, TypeAlias, TypeVar

    from typer.models import CommandInfo

    from tooli.core.protocols import App, CommandOptions, ReadLine, TyperApp
    from tooli.core.tool import Param, Tool
    from tooli.errors import DefinitionError
    from tooli.pipeline.custom_stages import CustomStage
    from tooli.providers.provider_mounts import ProviderMount

    T = TypeVar("T")
    Problem: TypeAlias = tuple[str, DefinitionError]

    NameOnlyTool: TypeAlias = Callable[
        ["CommandGroup", Sequence[str], ReadLine], "list[str] | None"
    ]

    Levels: TypeAlias = tuple[AppState, ...]
    """The apps along the path of a command, outermost first."""


class Registration:
    """One command as its author registers it. Its Tool is read when it is first needed."""

    __slots__ = ("_fn", "_state", "_tools", "info", "kwargs", "location", "name", "target")

    def __init__(
        self,
        state: AppState,
        name: str | None,
        fn: Callable[..., object] | None,
        kwargs: CommandOptions,
        target: str | None = None,
        location: str | None = None,
    ) -> None:
        self._state = state
        self._fn = fn
        self._tools: dict[tuple[object, ...], Tool] = {}
        self.name = name
        self.kwargs = kwargs
        self.target = target  # "package.module:function" of a lazy command
        self.location = location  # "file:line" of the registration; None: use the function's
        self.info: CommandInfo | None = None  # Typer's record, if a plain Typer registered it

    is_derived = False  # True: the function does not have the parameters of the tool

    @property
    def is_from_plain_typer(self) -> bool:
        """True if a plain Typer below a Tooli registered it."""
        return self.info is not None

    @property
    def command_name(self) -> str:
        """The command's name on the command line."""
        if self.name:
            return self.name
        name: str = self._fn.__name__ if self._fn is not None else (self.target or "")
        return name.rpartition(":")[2].rpartition(".")[2].lower().replace("_", "-")

    @property
    def fn(self) -> Callable[..., object]:
        """The function. The module of a lazy command is imported on first access."""
        if self._fn is None:
            from tooli.providers.lazy_functions import load_function

            self._fn = load_function(self.target or "")
        return self._fn

    def tool(
        self,
        path: tuple[str, ...],
        tree: CommandGroup | None = None,
        *,
        after_callbacks: bool = False,
    ) -> Tool:
        """Return the Tool at a path in the tree of the app that is called.

        Its guard contains the rules of the apps along the path. If the tree has not this command at
        the path, or is not given, the rules of every app that contains the command apply.

        A call of the Tool runs the callbacks along the path, and their options are parameters of
        the Tool. `after_callbacks=True` is for a command line only: Typer runs the callbacks, so
        the Tool has neither them nor their parameters.
        """
        levels = None if tree is None else tree.levels(path, self)
        if levels is None:
            called = [] if tree is None else tree.state.self_and_ancestors()
            levels = tuple(dict.fromkeys([*self._state.self_and_ancestors(), *called]))[::-1]
        root = self._state.root if tree is None else tree.state
        is_only_command = root.has_one_command
        key = (root, is_only_command, after_callbacks, path, *[(s, s.lifespan) for s in levels])
        found = self._tools.get(key)
        if found is None:
            try:
                found = apply_rules_of_apps(self._read(path, root, is_only_command), levels)
                if not after_callbacks and tree is not None and tree.may_need_typer(path, found):
                    from tooli.providers.command_routes import add_route

                    found = add_route(found, self, tree)
            except TypeError as error:  # includes DefinitionError, which is not imported yet
                raise self._located(error) from error.__cause__
            self._tools[key] = found
        stages = custom_stages_of(levels)
        if stages != found.custom_stages:
            found = self._tools[key] = found.replace(custom_stages=stages)
        return found

    def read_signature(self) -> Tool:
        """Return a Tool that describes the parameters. It has no rules of apps: never run it."""
        try:
            return self._read((self.command_name,), self._state.root, False)
        except TypeError as error:
            raise self._located(error) from error.__cause__

    def _read(self, path: tuple[str, ...], root: AppState, is_only_command: bool) -> Tool:
        from tooli.schema.tool_reader import read_tool

        tool = read_tool(
            self.fn,
            app=root.name,
            path=path,
            kwargs=self.kwargs,
            version=root.version,
            cli_path=() if is_only_command else path,
        )
        if tool.limits.rate_limit is not None:
            limits = tool.limits.replace(rate_counters=self.rate_counters)
            tool = tool.replace(limits=limits)
        return tool

    @property
    def has_callback(self) -> bool:
        """True if its app, or an app that contains it, has a callback."""
        states = self._state.self_and_ancestors()
        return any([state.callback or state.typer_kwargs.get("callback") for state in states])

    @property
    def rate_counters(self) -> tuple[tuple[str, str], ...]:
        """The rate limit, with the key under which the calls of all its paths are counted."""
        rate = self.kwargs.get("rate_limit")
        return () if rate is None else ((rate, f"{self.command_name} {id(self)}"),)

    def is_for(self, fn: Callable[..., object]) -> bool:
        """True if this is a command of a function. A lazy command is not imported."""
        if self._fn is None:
            return self.target == f"{fn.__module__}:{getattr(fn, '__qualname__', '')}"
        return _unwrap_function(self._fn) == _unwrap_function(fn)

    def _located(self, error: TypeError) -> TypeError:
        """Return a DefinitionError with the file and line of this registration added."""
        from tooli.errors import DefinitionError, function_location

        location = self.location or function_location(self._fn)
        if not isinstance(error, DefinitionError) or location is None:
            return error
        return error.at(location)

    @property
    def known_fn(self) -> Callable[..., object] | None:
        """The function; None for a lazy command that is not imported yet."""
        return self._fn

    def short_help(self, path: tuple[str, ...]) -> str:
        """Return the text whose first paragraph is the command's one-line help.

        A lazy command with its own help is not imported.
        """
        keywords = ("short_help", "summary", "help")
        text = next(filter(None, map(self.kwargs.get, keywords)), None)
        if isinstance(text, str) and text.strip():
            return text
        return self.read_signature().doc.summary


class CommandGroup:
    """One level of an app's tree: its commands, the groups below it, and its callback."""

    def __init__(self, state: AppState) -> None:
        self.state = state
        self.commands: dict[str, Registration] = {}
        self.groups: dict[str, CommandGroup] = {}
        # Apps that were added without a name, by the names of the commands and groups they added.
        self.merged_commands: dict[str, Levels] = {}
        self.merged_groups: dict[str, Levels] = {}
        self.callback: Callable[..., object] | None = None
        self.help: str | None = None
        self.short_help: str | None = None
        self.epilog: str | None = None
        self.hidden = False
        self.typer_reason: str | None = None  # why Typer must handle this level; None: fast path
        self.has_dynamic_commands = False  # only Typer knows which command a line names
        self.typer_settings: dict[str, Any] = {}  # those of ROUTE_SETTINGS that are set
        self._callback_flags: dict[str, int] | None = None
        self.only_command: Registration | None = None
        self.mounts: tuple[ProviderMount, ...] = ()  # providers whose tools are at this level
        # Returns the problems of the providers here and below; None if there are no providers.
        self.find_problems: Callable[[CommandGroup], Iterator[Problem]] | None = None
        # Adds the name of the only tool to a line without it; None if no provider can have it.
        self.name_only_tool: NameOnlyTool | None = None

    @property
    def has_mounts(self) -> bool:
        """True if a level here or below has tools of providers, or tools that are transformed."""
        return self.find_problems is not None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the commands and groups at this level."""
        return (*self.commands, *self.groups)

    def split_key(self, word: str) -> list[str]:
        """Return the names in a key such as `payments.refund`; none if no command has this key.

        The key of a command may contain its only version: `add@1.0`.
        """
        name, at, version = word.rpartition("@")
        if at and name in self.commands:
            is_same = self.commands[name].kwargs.get("version") == version
            return [name] if is_same else []
        *path, name = word.split(".")
        group: CommandGroup | None = self
        for step in path:
            group = None if group is None else group.groups.get(step)
        return [*path, name] if path and group is not None and name in group.names else []

    @property
    def has_builtins(self) -> bool:
        """True if the built-in commands can be reached after the program's name.

        A custom group class decides itself what a word means. An only command that prints takes
        the words as its arguments, as in Typer.
        """
        if self.state.builtins_of is not None:
            return False
        if self.only_command is not None:
            return not self.only_command.read_signature().returns_printed_text
        return not self.has_dynamic_commands

    def copy(self) -> CommandGroup:
        """Return a copy that can be changed without changing this one."""
        copied = CommandGroup(self.state)
        vars(copied).update(vars(self))
        return copied

    @property
    def description(self) -> str:
        """The help of the level, or else the docstring of its callback, as in Typer."""
        if self.help is not None:
            return self.help
        return getattr(self.callback, "__doc__", None) or ""

    def params(self) -> tuple[Param, ...]:
        """Return the parameters of the level's callback."""
        if self.callback is None:
            return ()
        from tooli.schema.tool_reader import read_tool

        return read_tool(self.callback, app="", path=("",), kwargs={}).public_params

    def callback_flags(self) -> dict[str, int]:
        """Return the flags of the level's callback, with the number of values each takes.

        If the callback takes positional arguments, `has_dynamic_commands` is set: only Typer knows
        which word of a line is the command.
        """
        if self._callback_flags is None:
            self._callback_flags = {}
            for p in self.params():
                if p.kind == "argument":
                    self.has_dynamic_commands = True
                for flag in (*p.flags, *p.negations):
                    self._callback_flags[flag] = 0 if p.is_flag else p.nargs
        return self._callback_flags

    def may_need_typer(self, path: tuple[str, ...], tool: Tool) -> bool:
        """False if it is certain that a call of the tool does not need Typer's command tree."""
        return not tool.is_fast_path or any([group.typer_reason for group in self.along(path)])

    def along(self, path: tuple[str, ...]) -> list[CommandGroup]:
        """Return this group and the groups on the way to a command, outermost first."""
        found: list[CommandGroup] = [self]
        for name in path[:-1]:
            if name in found[-1].groups:
                found.append(found[-1].groups[name])
        return found

    def levels(self, path: tuple[str, ...], registration: Registration) -> Levels | None:
        """Return the apps whose rules apply to the command at a path, outermost first.

        They are the apps above this one, this one, and the apps on the way to the command. Returns
        None if the command at the path is another one.
        """
        found = self.state.self_and_ancestors()[::-1]
        group = self
        for name in path[:-1]:
            if name not in group.groups:
                return None
            found += group.merged_groups.get(name, ())
            group = group.groups[name]
            found.append(group.state)
        if not path or group.commands.get(path[-1]) is not registration:
            return None
        return (*found, *group.merged_commands.get(path[-1], ()))

    def walk(
        self, path: tuple[str, ...] = (), *, is_lazy: bool = False
    ) -> Iterator[tuple[tuple[str, ...], Registration]]:
        """Iterate over every command below, with its path, in order of registration.

        `is_lazy=True` leaves out the tools of providers that have not been asked for them.
        """
        commands, groups = self.commands, self.groups
        if is_lazy:
            commands, groups = known_names(commands), known_names(groups)
        for name, registration in commands.items():
            yield (*path, name), registration
        for name, inner in groups.items():
            yield from inner.walk((*path, name), is_lazy=is_lazy)

    def find(self, name: str) -> tuple[tuple[str, ...], Registration] | None:
        """Return the path and the command of a name such as `users.create` or `add@1.0`."""
        name, at, version = name.rpartition("@") if "@" in name else (name, "", "")
        *path, last = name.replace(".", " ").replace("/", " ").split() or [name]
        group: CommandGroup | None = self
        for i, word in enumerate(path):
            path[i] = _find_spelling(word, group.groups)
            group = group.groups.get(path[i])
            if group is None:
                return None
        word = _find_spelling(f"{last}{at}{version}", group.commands)
        if at and word not in group.commands:
            word = "".join(group.split_key(_find_spelling(last, group.commands) + at + version))
        return ((*path, word), group.commands[word]) if word in group.commands else None


def _find_spelling(word: str, known: Container[str]) -> str:
    """Return a name with `_` or `-` as it is in `known`; the word itself if it is not there."""
    spellings = (word, word.replace("_", "-"), word.replace("-", "_"))
    return next((spelling for spelling in spellings if spelling in known), word)


def known_names(names: dict[str, T]) -> dict[str, T]:
    """Return commands or groups by name, without asking a provider for its tools."""
    if type(names) is dict:
        return names
    items: Any = getattr(dict, "items")  # noqa: B009  of the base class
    return {**dict(items(names))}


ROUTE_SETTINGS = ("cls", "context_settings", "result_callback")
"""Settings of a Typer that may change how its commands run."""


def _unwrap_function(fn: Callable[..., object]) -> Callable[..., object]:
    """Return the function below its decorators, if they set `__wrapped__`."""
    for _ in range(100):  # a decorator may refer to itself
        fn = getattr(fn, "__wrapped__", fn)
    return fn


# ------------------------------------------------------------------ rules of the apps


def apply_rules_of_apps(tool: Tool, levels: Levels) -> Tool:
    """Return a tool with the rules of the apps along its path.

    Raises DefinitionError if the tool declares a capability that one of the apps does not allow.
    """
    if len(levels) > 1:  # the policy of the app that is called always applies
        policy = max([state.declared_policy for state in levels])
        names = tuple(dict.fromkeys([state.name for state in levels]))
        tool = tool.replace(guard=tool.guard.replace(policy=policy, apps=names))
    lifespans = tuple(filter(None, [state.lifespan for state in levels]))
    settings = tuple(filter(None, [state.app_settings for state in levels]))
    if (lifespans or settings) and any([param.kind == "injected" for param in tool.params]):
        has_secrets = tool.may_have_secrets or any([one.may_have_secrets for one in settings])
        tool = tool.replace(lifespans=lifespans, settings=settings, may_have_secrets=has_secrets)
    permissions = [state.permissions for state in levels[::-1] if state.permissions is not None]
    if permissions:
        from tooli.core.declared_capabilities import apply_app_permissions

        tool = apply_app_permissions(tool, tuple(permissions))
    return tool


def custom_stages_of(levels: Levels) -> tuple[CustomStage, ...]:
    """Return the stages of `app.use` of the apps along a path, those of the outermost app first."""
    return tuple([stage for state in levels for stage in state.own_stages])


def forget_prepared(app: TyperApp) -> None:
    """Clear what was derived from the rules of the apps above an app: in it and in apps below."""
    state: AppState | None = vars(app).get("_state")
    if state is not None:
        state.prepared_tools.clear()
        state.revision += 1
        inner_apps = [inner for inner, _ in state.groups]
    else:  # a plain Typer
        inner_apps = [info.typer_instance for info in app.registered_groups]
    for inner in filter(None, inner_apps):
        forget_prepared(inner)


# ------------------------------------------------------------------ the tree


def read_all_tools(tree: CommandGroup) -> tuple[list[Tool], dict[str, DefinitionError]]:
    """Return the tools of an app, and the error of each command that cannot be read, by key."""
    tools: list[Tool] = []
    problems: dict[str, DefinitionError] = {}
    for path, registration in tree.walk():
        try:
            tools.append(registration.tool(path, tree))
        except TypeError as error:
            from tooli.errors import DefinitionError

            if not isinstance(error, DefinitionError):
                raise
            problems[".".join(path)] = error
    if tree.find_problems is not None:
        problems.update(tree.find_problems(tree))
    return tools, problems


def build_command_tree(app: App) -> CommandGroup:
    """Return an app's tree: from its registrations, or from Typer once Typer is initialized."""
    state = app._state
    if state.served_typer is not None:
        return _extended(_tree_from_typer(state.served_typer, state))
    if state.is_typer_initialized:
        return _extended(_tree_from_typer(app, state))
    if state.command_tree is None:
        state.command_tree = _extended(_tree_from_registrations(state))
    return state.command_tree


def _extended(tree: CommandGroup) -> CommandGroup:
    """Return the tree of an app with the tools of its providers, and with its transforms."""
    extend = tree.state.extend_tree
    return tree if extend is None else extend(tree)


def _tree_from_registrations(state: AppState) -> CommandGroup:
    group = CommandGroup(state)
    for registration in state.commands:
        group.commands[registration.command_name] = registration
    for inner_app, kwargs in state.groups:
        _attach_group(group, inner_app, kwargs.get("name"), kwargs)
    _apply_help_keywords(group, {**state.typer_kwargs, "help": state.declared_description})
    _apply_typer_settings(group, state.typer_kwargs)
    if state.callback is not None:
        group.callback, callback_kwargs = state.callback
        _apply_typer_settings(group, callback_kwargs)
        _apply_help_keywords(group, callback_kwargs)
        group.typer_reason = "the app has a callback"
    if state.typer_kwargs.keys() & {"cls", "context_settings", "callback", "result_callback"}:
        group.callback = group.callback or state.typer_kwargs.get("callback")
        group.typer_reason = "the app has settings that only Typer supports"
    if group.callback is None and not state.groups and len(state.commands) == 1:
        group.only_command = state.commands[0]  # as in Typer: it replaces the group
    return group


def _attach_group(
    group: CommandGroup, inner_app: TyperApp, name: str | None, kwargs: Mapping[str, Any]
) -> None:
    """Add an app's tree to a group: as an inner group, or merged into it if there is no name."""
    inner_state: AppState | None = inner_app.__dict__.get("_state")
    if inner_state is None:
        inner_state = AppState("", {})
        inner_state.policy = inner_state.declared_policy = "off"  # a plain Typer declares none
        inner_state.parents.append(group.state)
        inner = _tree_from_typer(inner_app, inner_state)
        name = name or _unwrap_default(inner_app.info.name)
    else:
        if group.state.root not in inner_state.self_and_ancestors():
            inner_state.parents.append(group.state)  # a plain Typer between the two did not set it
        inner = build_command_tree(inner_app)  # pyright: ignore[reportArgumentType]  it is a Tooli
        name = name or inner_state.typer_kwargs.get("name")
    inner = inner.copy()  # the keywords apply to this place only; the app may be added elsewhere
    if kwargs.get("callback") is not None or kwargs.get("cls") or kwargs.get("context_settings"):
        inner.typer_reason = "the group has settings that only Typer supports"
        inner.callback = kwargs.get("callback") or inner.callback
        inner._callback_flags = None
    _apply_typer_settings(inner, kwargs)
    _apply_help_keywords(inner, kwargs)
    group.find_problems = group.find_problems or inner.find_problems
    if name:
        group.groups[name] = inner
        group.merged_groups.pop(name, None)
        return
    for command_name, registration in inner.commands.items():
        group.commands[command_name] = registration
        merged = inner.merged_commands.get(command_name, ())
        group.merged_commands[command_name] = (inner.state, *merged)
    for group_name, inner_group in inner.groups.items():
        group.groups[group_name] = inner_group
        merged = inner.merged_groups.get(group_name, ())
        group.merged_groups[group_name] = (inner.state, *merged)


def _apply_help_keywords(group: CommandGroup, kwargs: Mapping[str, Any]) -> None:
    """Set the help texts and the visibility of a level, if the keywords contain them."""
    group.help = _unwrap_default(kwargs.get("help")) or group.help
    group.short_help = _unwrap_default(kwargs.get("short_help")) or group.short_help
    group.epilog = _unwrap_default(kwargs.get("epilog")) or group.epilog
    group.hidden = bool(_unwrap_default(kwargs.get("hidden"))) or group.hidden


_PARSER_SETTINGS = frozenset(
    (
        *("token_normalize_func", "ignore_unknown_options"),
        *("allow_extra_args", "allow_interspersed_args"),
    )
)
"""Entries of `context_settings=` that change how Typer finds the command in a line."""


def _apply_typer_settings(group: CommandGroup, kwargs: Mapping[str, Any]) -> None:
    """Add the settings of a level that may change how its commands run, if they are set."""
    found = {name: _unwrap_default(kwargs.get(name)) for name in ROUTE_SETTINGS}
    found = {name: value for name, value in found.items() if value}
    if found:
        group.typer_settings = {**group.typer_settings, **found}
        settings = found.get("context_settings", {})
        if "cls" in found or not _PARSER_SETTINGS.isdisjoint(settings):
            group.has_dynamic_commands = True


def _tree_from_typer(app: TyperApp, state: AppState) -> CommandGroup:
    """Return the tree of a Typer, read from the commands and groups that it registered."""
    group = CommandGroup(state)
    for info in app.registered_commands:
        registration: Registration | None = getattr(info, "tooli", None)
        if registration is None:
            kwargs: Any = {k: v for k, v in vars(info).items() if k in TYPER_COMMAND_KEYWORDS and v}
            if getattr(kwargs.get("cls"), "__name__", None) == "TyperCommand":
                del kwargs["cls"]
            registration = Registration(state, info.name, info.callback, kwargs)
            registration.info = info
            info.tooli = registration  # pyright: ignore[reportAttributeAccessIssue]
        group.commands[registration.command_name] = registration
    for group_info in app.registered_groups:
        kwargs = {k: _unwrap_default(v) for k, v in vars(group_info).items()}
        assert group_info.typer_instance is not None
        _attach_group(group, group_info.typer_instance, kwargs.get("name"), kwargs)
    callback_info = app.registered_callback
    if "tooli_makes_group" in vars(callback_info or app):  # it is no callback of the author
        callback_info = None
    group.callback = (
        callback_info.callback if callback_info is not None else _unwrap_default(app.info.callback)
    )
    _apply_help_keywords(group, vars(app.info))
    # The class in the `info` of a Tooli is always one of tooli's own.
    is_tooli = "_state" in app.__dict__
    custom_class = state.typer_kwargs.get("cls") if is_tooli else _unwrap_default(app.info.cls)
    _apply_typer_settings(group, {**vars(app.info), "cls": custom_class})
    if callback_info is not None:
        _apply_typer_settings(group, vars(callback_info))
        _apply_help_keywords(group, vars(callback_info))
    if callback_info is not None or group.callback is not None:
        group.typer_reason = "the app has a callback"
    elif (
        custom_class
        or _unwrap_default(app.info.context_settings)
        or _unwrap_default(app.info.result_callback)
    ):
        group.typer_reason = "the app has settings that only Typer supports"
    if group.callback is None and not app.registered_groups and len(app.registered_commands) == 1:
        group.only_command = next(iter(group.commands.values()))
    return group


def _unwrap_default(setting: Any) -> Any:
    """Return the value of a Typer setting, which may be wrapped in a `DefaultPlaceholder`."""
    return setting.value if type(setting).__name__ == "DefaultPlaceholder" else setting


def __getattr__(name: str) -> Any:
    """Return a public name of the package, which a start without providers does not load."""
    from tooli.providers.public_names import load

    return load(name)
