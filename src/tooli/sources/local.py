"""The tools that an app registers itself, and the tree of groups that they stand in."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from tooli.call.model import Stage
    from tooli.contract.tool import Tool

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

BUILT_IN = frozenset(
    (
        *("mcp", "api", "search-tools", "generate-skill", "generate-agents-md", "docs", "export"),
        *("skills", "detect-context", "config", "approvals", "audit", "idempotency"),
    )
)
"""Words that are commands of every app, where the app has none of that name itself."""


class House:
    """What a Tooli knows about itself, apart from what Typer keeps."""

    __slots__ = (
        "branch",
        "callback",
        "commands",
        "declared",
        "default_output",
        "defer_loading",
        "description",
        "door",
        "edition",
        "framework_help",
        "governed",
        "groups",
        "made_in",
        "mcp_transport",
        "name",
        "parent",
        "permissions",
        "policy",
        "prepared",
        "prompts",
        "real",
        "resources",
        "rules",
        "sections",
        "settings",
        "settled",
        "skill_auto_generate",
        "version",
        "watchers",
    )

    def __init__(self, name: str, settings: dict[str, Any]) -> None:
        self.name = name
        self.settings = settings
        self.parent: House | None = None
        self.real = False
        self.commands: list[Registration] = []
        self.groups: list[tuple[Any, dict[str, Any]]] = []
        self.callback: tuple[Callable[..., Any], dict[str, Any]] | None = None
        self.branch: Branch | None = None
        self.prepared: dict[str, tuple[Tool, tuple[Stage, ...]]] = {}
        self.edition = 0  # counts the changes of the tree: a server looks whether it is current
        self.resources: list[Any] = []
        self.prompts: list[Any] = []
        self.watchers: list[Callable[[str, str | None], None]] = []  # servers, told of changes
        self.door: Any = None  # the Python door, once somebody went through it
        self.made_in: dict[str, Any] = {}  # the names of the module that made it
        self.policy = self.declared = "standard"  # in force, and as its author declared it
        self.governed = False  # whether configuration has had its say on that
        self.rules: dict[str, Any] = {}  # security settings that somebody made, beside the policy
        self.permissions: tuple[str, ...] | None = None  # the ceiling of its commands' capabilities
        self.settled: Any = None  # the settings of the run, where something was set
        self.sections: Mapping[str, str] = {}  # what its author adds to its documents, by title

    @property
    def root(self) -> House:
        """The house of the app at the top, wherever this one was put meanwhile."""
        house = self
        while house.parent is not None:
            house = house.parent
        return house

    @property
    def ceilings(self) -> tuple[tuple[str, ...], ...]:
        """What its commands may touch at most, by its own word and by those of the apps above."""
        above = self.parent.ceilings if self.parent is not None else ()
        return above if self.permissions is None else (self.permissions, *above)

    @property
    def guarded(self) -> bool:
        """Whether more than its own declaration stands around every command."""
        return self.policy == "strict" or bool(self.rules) or self.permissions is not None

    @property
    def has_one_command(self) -> bool:
        """Whether the app is its only command: then nobody types that command's name."""
        if len(self.commands) != 1 or self.groups or self.callback is not None:
            return False
        return self.settings.get("callback") is None

    def enter(self, registration: Registration) -> None:
        """Put a command into the app; where it says so, as a resource, too."""
        self.commands.append(registration)
        self.forget()
        if "resource" in registration.said:
            from tooli.sources.resources import expose

            expose(self, registration.said["resource"], registration)

    def forget(self, what: str = "tools") -> None:
        """The app has changed (tools, resources, prompts): what was made from it is not kept."""
        house: House | None = self
        heard = False
        while house is not None:
            heard = heard or bool(house.watchers)
            house.branch = None
            house.edition += 1
            house.prepared.clear()
            house = house.parent
        if heard:
            self.tell(what)

    def tell(self, what: str, uri: str | None = None) -> None:
        """Tell the servers of this app, and of those above it, what has changed."""
        house: House | None = self
        while house is not None:
            for watch in tuple(house.watchers):  # a server may end meanwhile
                watch(what, uri)
            house = house.parent


class Registration:
    """One command as its author registered it; it becomes a Tool when somebody needs it."""

    __slots__ = ("_fn", "_house", "_tools", "info", "name", "said", "target")

    def __init__(
        self,
        house: House,
        name: str | None,
        fn: Callable[..., Any] | None,
        said: Mapping[str, Any],
        target: str | None = None,
    ) -> None:
        self._house = house
        self._fn = fn
        self._tools: dict[tuple[str, bool, tuple[str, ...]], Tool] = {}
        self.name = name
        self.said = said
        self.target = target
        self.info: Any = None  # Typer's own record of it, where a plain Typer registered it

    @property
    def foreign(self) -> bool:
        """Whether a plain Typer registered it, below a Tooli."""
        return self.info is not None

    @property
    def word(self) -> str:
        """The command's name as it is typed."""
        if self.name:
            return self.name
        name: str = self._fn.__name__ if self._fn is not None else (self.target or "")
        return name.rpartition(":")[2].rpartition(".")[2].lower().replace("_", "-")

    @property
    def fn(self) -> Callable[..., Any]:
        """The function; a lazy command's module is imported now."""
        if self._fn is None:
            from tooli.sources.lazy import load

            self._fn = load(self.target or "")
        return self._fn

    def tool(self, path: tuple[str, ...], top: House | None = None) -> Tool:
        """The Tool at a place in the tree of the app that was asked."""
        root = top or self._house.root
        alone = root.has_one_command
        found = self._tools.get((root.name, alone, path))
        if found is None:
            from tooli.contract.reading import read_tool

            found = read_tool(
                self.fn,
                app=root.name,
                path=path,
                said=self.said,
                version=root.version,
                words=() if alone else path,
            )
            ceilings = self._house.ceilings
            if ceilings:
                from tooli.contract.capabilities import hold_to

                found = hold_to(found, ceilings)
            self._tools[root.name, alone, path] = found
        return found

    def about(self, path: tuple[str, ...]) -> str:
        """What the command does, in a line; a lazy one that says so itself is not loaded for it."""
        said = self.said.get("short_help") or self.said.get("help")
        if isinstance(said, str) and said.strip():
            return said.strip().partition("\n")[0]
        return self.tool(path).doc.summary


class Branch:
    """One level of an app's tree: its commands, the groups below it, and its callback."""

    __slots__ = (
        "_own",
        "app",
        "aside",
        "callback",
        "commands",
        "groups",
        "house",
        "opaque",
        "single",
    )

    def __init__(self, app: Any, house: House) -> None:
        self.app = app
        self.house = house
        self.commands: dict[str, Registration] = {}
        self.groups: dict[str, Branch] = {}
        self.callback: Callable[..., Any] | None = None
        self.aside: str | None = None  # why the light engine leaves this level to Typer
        self.opaque = False  # its commands may be others than those that are registered
        self._own: dict[str, int] | None = None
        self.single: Registration | None = None

    def own_flags(self) -> dict[str, int]:
        """The flags of the level's callback, and how many words each takes."""
        if self._own is None:
            self._own = {}
            if self.callback is not None:
                from tooli.contract.reading import read_tool

                for p in read_tool(self.callback, app="", path=("",), said={}).params:
                    for flag in (*p.flags, *p.negations):
                        self._own[flag] = 0 if p.is_flag else p.width
        return self._own

    def walk(self, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Registration]]:
        """Every command below, with its path, in order."""
        for word, registration in self.commands.items():
            yield (*path, word), registration
        for word, inner in self.groups.items():
            yield from inner.walk((*path, word))


# ------------------------------------------------------------------ the tree


def branch_of(app: Any) -> Branch:
    """The tree of an app: from the log while it is light, from Typer's lists once it is real."""
    house: House = app._house
    if house.real:
        return _real_branch(app, house)
    if house.branch is None:
        house.branch = _light_branch(app, house)
    return house.branch


def _light_branch(app: Any, house: House) -> Branch:
    branch = Branch(app, house)
    for registration in house.commands:
        branch.commands[registration.word] = registration
    for inner_app, said in house.groups:
        _graft(branch, inner_app, said.get("name"), said)
    if house.callback is not None:
        branch.callback = house.callback[0]
        branch.aside = "the app has a callback"
    if house.settings.keys() & {"cls", "context_settings", "callback", "result_callback"}:
        branch.callback = branch.callback or house.settings.get("callback")
        branch.aside = "the app is set up in a way that only Typer knows"
        branch.opaque = "cls" in house.settings
    if house.callback is not None and house.callback[1].get("cls"):
        branch.opaque = True
    if not branch.aside and not house.groups and len(house.commands) == 1:
        branch.single = house.commands[0]
    return branch


def _graft(branch: Branch, inner_app: Any, name: Any, said: Mapping[str, Any]) -> None:
    """Put an app's tree below a branch, or into it where the app has no name."""
    inner_house = inner_app.__dict__.get("_house")
    if inner_house is None:
        inner_house = House("", {})
        inner_house.parent = branch.house
        inner = _real_branch(inner_app, inner_house)
        name = name or _value(inner_app.info.name)
    else:
        inner = branch_of(inner_app)
        name = name or inner_house.settings.get("name")
    if said.get("callback") is not None or said.get("cls") or said.get("context_settings"):
        inner.aside = "the group is set up in a way that only Typer knows"
        inner.opaque = bool(said.get("cls"))
        inner.callback = inner.callback or said.get("callback")
    if name:
        branch.groups[name] = inner
    else:
        branch.commands.update(inner.commands)
        branch.groups.update(inner.groups)


def _real_branch(app: Any, house: House) -> Branch:
    """The tree as Typer's own lists have it."""
    branch = Branch(app, house)
    for info in app.registered_commands:
        registration = getattr(info, "tooli", None)
        if registration is None:
            said = {k: v for k, v in _fields(info).items() if k in COMMAND_SETTINGS and v}
            if getattr(said.get("cls"), "__name__", None) == "TyperCommand":
                del said["cls"]
            registration = Registration(house, info.name, info.callback, said)
            registration.info = info
            info.tooli = registration
        branch.commands[registration.word] = registration
    for info in app.registered_groups:
        said = {k: _value(v) for k, v in _fields(info).items()}
        _graft(branch, info.typer_instance, said.get("name"), said)
    called = app.registered_callback
    branch.callback = called.callback if called is not None else _value(app.info.callback)
    if called is not None or branch.callback is not None:
        branch.aside = "the app has a callback"
    elif _value(app.info.context_settings) or _value(app.info.result_callback):
        branch.aside = "the app is set up in a way that only Typer knows"
    elif not app.registered_groups and len(app.registered_commands) == 1:
        branch.single = next(iter(branch.commands.values()))
    return branch


def _fields(info: object) -> dict[str, Any]:
    return vars(info)


def _value(setting: Any) -> Any:
    """A setting of Typer's, out of the placeholder for its default."""
    return setting.value if type(setting).__name__ == "DefaultPlaceholder" else setting


# ------------------------------------------------------------------ what an app is told


def one_of(name: str, value: str, allowed: Sequence[str]) -> None:
    """Refuse a setting that is none of those there are."""
    if value not in allowed:
        from tooli.errors import DefinitionError

        raise DefinitionError(f"{name}={value!r}: say one of {', '.join(allowed)}")


def ceiling(said: object) -> tuple[str, ...]:
    """What an author lets an app's commands touch at most."""
    from tooli.contract.capabilities import read_ceiling

    return read_ceiling(said)


def home_name(made_in: Mapping[str, Any]) -> str:
    """A name for an app that has none: that of the file it is made in."""
    home = made_in.get("__file__") or made_in.get("__name__", "app")
    parts = str(home).replace("\\", "/").split("/")
    stem = parts[-1].partition(".")[0]
    if stem in ("__main__", "__init__") and len(parts) > 1:
        stem = parts[-2]
    return stem.replace("_", "-") or "app"
