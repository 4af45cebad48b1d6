"""Tooli: the app. It registers tools, holds their tree, and is where every call starts.

`Tooli` is a `typer.Typer`, but Typer is a base class in waiting: importing it costs
more than a whole call, so the class stands on an empty base until somebody imports
`typer`, or asks the app for something that only Typer has. Registrations are written
down and given to the real Typer then.
"""

from __future__ import annotations

import sys
from time import perf_counter

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping, Sequence
    from typing import Any, TypeVar

    import typer as real_typer

    from tooli.call.model import Call, Caller, Options, Outcome, Stage
    from tooli.call.result import TooliResult
    from tooli.contract.catalog import Catalog
    from tooli.contract.tool import Tool

    F = TypeVar("F", bound=Callable[..., Any])
    _NotYet = real_typer.Typer
else:

    class _NotYet:
        """What stands in for `typer.Typer` until it is needed."""


_APP_SETTINGS = frozenset(
    (
        *("cls", "invoke_without_command", "no_args_is_help", "subcommand_metavar", "chain"),
        *("result_callback", "context_settings", "callback", "help", "epilog", "short_help"),
        *("options_metavar", "add_help_option", "hidden", "deprecated", "add_completion"),
        *("rich_markup_mode", "rich_help_panel", "suggest_commands"),
        *("pretty_exceptions_enable", "pretty_exceptions_show_locals"),
        *("pretty_exceptions_short",),
    )
)
_COMMAND_SETTINGS = frozenset(
    (
        *("cls", "context_settings", "help", "epilog", "short_help", "options_metavar"),
        *("add_help_option", "no_args_is_help", "hidden", "deprecated", "rich_help_panel"),
    )
)
_TYPER_STATE = frozenset(
    (
        *("info", "registered_commands", "registered_groups", "registered_callback"),
        *("rich_markup_mode", "rich_help_panel", "suggest_commands", "_add_completion"),
        *("pretty_exceptions_enable", "pretty_exceptions_show_locals"),
        *("pretty_exceptions_short",),
    )
)
_POLICIES = ("off", "standard", "strict")
_OPTIONS = frozenset(("dry_run", "yes", "no_input", "quiet", "verbose", "detailed"))


class Registration:
    """One command as its author registered it; it becomes a Tool when somebody needs it."""

    __slots__ = ("_fn", "_house", "_tools", "name", "said", "target")

    def __init__(
        self,
        house: _House,
        name: str | None,
        fn: Callable[..., Any] | None,
        said: Mapping[str, Any],
        target: str | None = None,
    ) -> None:
        self._house = house
        self._fn = fn
        self._tools: dict[tuple[str, ...], Tool] = {}
        self.name = name
        self.said = said
        self.target = target

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
            self._fn = _load(self.target or "")
        return self._fn

    def tool(self, path: tuple[str, ...], house: _House | None = None) -> Tool:
        """The Tool at a place in the tree."""
        found = self._tools.get(path)
        if found is None:
            from tooli.contract.reading import read_tool

            root = house or self._house.root
            found = self._tools[path] = read_tool(
                self.fn, app=root.name, path=path, said=self.said, version=root.version
            )
        return found


def _load(target: str) -> Callable[..., Any]:
    """The function that `package.module:function` names."""
    from importlib import import_module

    from tooli.errors import DefinitionError

    module, _, name = target.partition(":")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as failure:
        raise DefinitionError(f"lazy_command({target!r}) cannot be loaded: {failure}") from failure


class Branch:
    """One level of an app's tree: its commands, the groups below it, and its callback."""

    __slots__ = ("_own", "app", "aside", "callback", "commands", "groups", "house", "single")

    def __init__(self, app: Any, house: _House) -> None:
        self.app = app
        self.house = house
        self.commands: dict[str, Registration] = {}
        self.groups: dict[str, Branch] = {}
        self.callback: Callable[..., Any] | None = None
        self.aside: str | None = None
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


class _House:
    """What a Tooli knows about itself, apart from what Typer keeps."""

    __slots__ = (
        "branch",
        "callback",
        "commands",
        "default_output",
        "description",
        "framework_help",
        "groups",
        "known",
        "mcp_transport",
        "name",
        "permissions",
        "policy",
        "prepared",
        "real",
        "root",
        "settings",
        "skill_auto_generate",
        "version",
    )

    def __init__(self, name: str, settings: dict[str, Any]) -> None:
        self.name = name
        self.settings = settings
        self.root: _House = self
        self.real = False
        self.commands: list[Registration] = []
        self.groups: list[tuple[Any, dict[str, Any]]] = []
        self.callback: tuple[Callable[..., Any], dict[str, Any]] | None = None
        self.branch: Branch | None = None
        self.prepared: dict[str, tuple[Tool, tuple[Stage, ...]]] = {}
        self.known: dict[int, Registration] = {}

    def forget(self) -> None:
        """The tree has changed: whatever was made from it is made again."""
        house: _House = self
        while True:
            house.branch = None
            house.prepared.clear()
            if house.root is house:
                return
            house = house.root


class Tooli(_NotYet):
    """An app: typed functions that become a CLI, a JSON contract and a Python call.

    Takes everything `typer.Typer` takes, and what is named here.
    """

    def __init__(
        self,
        name: str | None = None,
        *,
        description: str | None = None,
        version: str | None = None,
        default_output: str = "auto",
        mcp_transport: str = "stdio",
        skill_auto_generate: bool = False,
        permissions: Mapping[str, Any] | None = None,
        security_policy: str = "standard",
        framework_help: bool = True,
        **settings: Any,
    ) -> None:
        _known_keywords("Tooli", settings, _APP_SETTINGS)
        _one_of("security_policy", security_policy, _POLICIES)
        _one_of("default_output", default_output, ("auto", "json", "jsonl", "text", "plain"))
        _one_of("mcp_transport", mcp_transport, ("stdio", "http", "sse"))
        if description is not None:
            settings.setdefault("help", description)
        if name is not None:
            settings["name"] = name
        house = _House(name or _home_name(sys._getframe(1)), settings)
        house.description = description if description is not None else settings.get("help")
        house.version = version
        house.default_output = default_output
        house.mcp_transport = mcp_transport
        house.skill_auto_generate = skill_auto_generate
        house.permissions = permissions
        house.policy = security_policy
        house.framework_help = framework_help
        self.__dict__["_house"] = house

    # -------------------------------------------------------------- registering

    def command(self, name: str | None = None, **said: Any) -> Callable[[F], F]:
        """Register a function as a tool; it stays what it was. Takes what Typer's takes, and more."""
        _command_keywords(said)

        def register(fn: F) -> F:
            self._register(Registration(self._house, name, fn, said))
            return fn

        return register

    def lazy_command(self, target: str, name: str | None = None, **said: Any) -> None:
        """Register `package.module:function` without importing it until it is called."""
        _command_keywords(said)
        if ":" not in target:
            from tooli.errors import DefinitionError

            raise DefinitionError(f"lazy_command({target!r}): say 'package.module:function'")
        self._register(Registration(self._house, name, None, said, target))

    def _register(self, registration: Registration) -> None:
        house = self._house
        house.forget()
        house.commands.append(registration)
        if house.real:
            from tooli.surfaces.cli.typer_lane import give_command

            give_command(self, registration)

    def callback(self, **said: Any) -> Callable[[F], F]:
        """Register what runs before the app's commands. Takes what Typer's takes."""

        def register(fn: F) -> F:
            house = self._house
            house.forget()
            house.callback = (fn, said)
            if house.real:
                from tooli.surfaces.cli.typer_lane import give_callback

                give_callback(self, fn, said)
            return fn

        return register

    def add_typer(self, typer_instance: Any, **said: Any) -> None:
        """Put another app, Tooli or Typer, below this one."""
        house = self._house
        house.forget()
        inner = typer_instance.__dict__.get("_house")
        if inner is not None:
            inner.root = house.root
        house.groups.append((typer_instance, said))
        if house.real:
            _NotYet.add_typer(self, typer_instance, **said) if TYPE_CHECKING else super().add_typer(
                typer_instance, **said
            )

    # -------------------------------------------------------------- being a Typer

    def _realise(self) -> None:
        """Become a real Typer: everything that was registered is given to it, in order."""
        house = self._house
        if not house.real:
            house.real = True
            from tooli.surfaces.cli.typer_lane import realise

            realise(self)

    def __getattr__(self, name: str) -> Any:
        house = self.__dict__.get("_house")
        if house is None or (name[:2] == "__" and name[-2:] == "__"):
            raise AttributeError(name)
        if name not in _TYPER_STATE:
            tree = branch_of(self)
            word = name.replace("_", "-")
            for candidate in (name, word):
                if candidate in tree.commands:
                    return _Accessor(self, candidate)
                if candidate in tree.groups:
                    return _GroupAccessor(self, (candidate,), tree.groups[candidate])
        if house.real:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self._realise()
        return getattr(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        house = self.__dict__.get("_house")
        if house is not None and not house.real and name in _TYPER_STATE:
            self._realise()
        if house is not None:
            house.forget()
        object.__setattr__(self, name, value)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command line."""
        from tooli.surfaces.cli.main import main

        return main(self, *args, **kwargs)

    # -------------------------------------------------------------- the tools

    def tree(self) -> Branch:
        """The app's commands and groups, as the doors walk them."""
        return branch_of(self)

    @property
    def catalog(self) -> Catalog:
        """Every tool of the app, read."""
        from tooli.contract.catalog import Catalog

        tree = branch_of(self)
        return Catalog([registration.tool(path) for path, registration in tree.walk()])

    def find(self, name: str) -> Tool | None:
        """The tool of a name: `find-files`, `find_files`, `users.create` or `users create`."""
        words = name.replace(".", " ").replace("/", " ").split() or [name]
        branch = branch_of(self)
        path: tuple[str, ...] = ()
        for i, word in enumerate(words):
            for candidate in (word, word.replace("_", "-"), word.replace("-", "_")):
                if i == len(words) - 1 and candidate in branch.commands:
                    return branch.commands[candidate].tool((*path, candidate))
                if candidate in branch.groups:
                    branch, path = branch.groups[candidate], (*path, candidate)
                    break
            else:
                return None
        return None

    # -------------------------------------------------------------- calling

    def call(self, tool_name: str, /, **arguments: Any) -> TooliResult[Any]:
        """Run a tool from Python: the same checks as on every door; never raises, never exits."""
        started = perf_counter()
        call, stages = self._prepare(tool_name, arguments)
        from tooli.call.pipeline import run

        return _result(run(call, stages), call, started)

    async def acall(self, tool_name: str, /, **arguments: Any) -> TooliResult[Any]:
        """The same from async code: coroutines on this loop, other functions in a thread."""
        started = perf_counter()
        call, stages = self._prepare(tool_name, arguments)
        from tooli.call.aio import run

        return _result(await run(call, stages), call, started)

    def stream(self, tool_name: str, /, **arguments: Any) -> Generator[Any, None, None]:
        """A tool's items as it makes them; raises the ToolError where it fails."""
        from tooli.call.pipeline import stream

        call, stages = self._prepare(tool_name, arguments)
        yield from _items((yield from stream(call, stages)))

    async def astream(self, tool_name: str, /, **arguments: Any) -> AsyncGenerator[Any, None]:
        """The same, in async code."""
        from tooli.call.aio import stream

        call, stages = self._prepare(tool_name, arguments)
        ended: list[Outcome] = []
        async for item in stream(call, stages, ended):
            yield item
        for item in _items(ended[0]):
            yield item

    def options(self, **options: Any) -> _WithOptions:
        """The same app with framework options set: `app.options(yes=True).call(…)`."""
        _known_keywords("options", options, _OPTIONS)
        return _WithOptions(self, options)

    def _prepare(
        self, name: str, arguments: dict[str, Any], options: Mapping[str, Any] | None = None
    ) -> tuple[Call, tuple[Stage, ...]]:
        from tooli.call.model import PLAIN_OPTIONS, PYTHON, Call, Options

        house = self._house
        ready = house.prepared.get(name)
        if ready is None:
            tool = self.find(name)
            if tool is None:
                return _unknown_tool(self, name)
            ready = house.prepared[name] = (tool, stages_for(tool, PLAIN_OPTIONS, house.policy))
        tool, stages = ready
        chosen = PLAIN_OPTIONS
        if options or not arguments.keys() <= tool.names:
            asked = dict(options or {})
            for key in list(arguments):
                if key in _OPTIONS and key not in tool.names:
                    asked[key] = arguments.pop(key)
            if asked:
                chosen = Options(**asked)
                stages = stages_for(tool, chosen, house.policy)
        meta: dict[str, Any] | None = {} if chosen.detailed else None
        return Call(tool, arguments, PYTHON, [], chosen, house.policy, meta=meta), stages

    def prepare(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        caller: Caller,
        options: Options,
        warnings: list[str],
        **more: Any,
    ) -> tuple[Call, tuple[Stage, ...]]:
        """A door's call to a tool, and the stages that stand around it."""
        from tooli.call.model import Call

        policy = self._house.policy
        if options.detailed:
            more["meta"] = {}
        call = Call(tool, arguments, caller, warnings, options, policy, **more)
        return call, stages_for(tool, options, policy)


def stages_for(tool: Tool, options: Options, policy: str) -> tuple[Stage, ...]:
    """The stages that have something to do for a tool, outermost first."""
    from tooli.call.bind import bind

    stages: list[Stage] = [bind]
    if policy != "off" and (policy == "strict" or tool.guard.scopes is not None):
        from tooli.stages.authorization import authorize

        stages.append(authorize)
    if tool.behavior.destructive or tool.guard.approval:
        from tooli.stages.approval import require_approval

        stages.append(require_approval)
    if options.dry_run:
        from tooli.stages.dry_run import only_plan

        stages.append(only_plan)
    if options.detailed:
        from tooli.stages.detail import add_output_schema

        stages.append(add_output_schema)
    return tuple(stages)


# ------------------------------------------------------------------ the tree


def branch_of(app: Any) -> Branch:
    """The tree of an app: from the log while it is light, from Typer's lists once it is real."""
    house: _House = app._house
    if house.real:
        house.known.update({id(r.fn): r for r in house.commands if r.target is None})
        return _real_branch(app, house)
    if house.branch is None:
        house.branch = _light_branch(app, house)
    return house.branch


def _light_branch(app: Any, house: _House) -> Branch:
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
    if not branch.aside and not house.groups and len(house.commands) == 1:
        branch.single = house.commands[0]
    return branch


def _graft(branch: Branch, inner_app: Any, name: Any, said: Mapping[str, Any]) -> None:
    """Put an app's tree below a branch, or into it where the app has no name."""
    inner_house = inner_app.__dict__.get("_house")
    if inner_house is None:
        inner_house = _House("", {})
        inner_house.root = branch.house.root
        inner = _real_branch(inner_app, inner_house)
        name = name or _value(inner_app.info.name)
    else:
        inner = branch_of(inner_app)
        name = name or inner_house.settings.get("name")
    if said.get("callback") is not None or said.get("cls") or said.get("context_settings"):
        inner.aside = "the group is set up in a way that only Typer knows"
        inner.callback = inner.callback or said.get("callback")
    if name:
        branch.groups[name] = inner
    else:
        branch.commands.update(inner.commands)
        branch.groups.update(inner.groups)


def _real_branch(app: Any, house: _House) -> Branch:
    """The tree as Typer's own lists have it."""
    branch = Branch(app, house)
    for info in app.registered_commands:
        registration = house.known.get(id(info))
        if registration is None:
            said = {k: v for k, v in vars(info).items() if k in _COMMAND_SETTINGS and v}
            if getattr(said.get("cls"), "__name__", None) == "TyperCommand":
                del said["cls"]
            registration = Registration(house, info.name, info.callback, said)
            house.known[id(info)] = registration
        branch.commands[registration.word] = registration
    for info in app.registered_groups:
        said = {k: _value(v) for k, v in vars(info).items()}
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


def _value(setting: Any) -> Any:
    """A setting of Typer's, out of the placeholder for its default."""
    return setting.value if type(setting).__name__ == "DefaultPlaceholder" else setting


# ------------------------------------------------------------------ from Python


def _result(outcome: Outcome, call: Call, started: float) -> TooliResult[Any]:
    from tooli.call.envelope import meta_of
    from tooli.call.model import Ok
    from tooli.call.result import TooliResult, error_value

    meta = meta_of(call, int((perf_counter() - started) * 1000))
    if type(outcome) is Ok:
        return TooliResult(True, outcome.value, None, meta)
    return TooliResult(False, None, error_value(outcome.error), meta)  # type: ignore[union-attr]


def _items(outcome: Outcome) -> Iterator[Any]:
    """What is left to give after a stream: a list's items, any other value, or its error."""
    from tooli.call.model import Failed

    if isinstance(outcome, Failed):
        raise outcome.error
    if isinstance(outcome.value, (list, tuple)):
        yield from outcome.value
    elif outcome.value is not None:
        yield outcome.value


def _unknown_tool(app: Tooli, name: str) -> tuple[Call, tuple[Stage, ...]]:
    """A call that is refused because no tool has that name."""
    from tooli.call.model import PYTHON, Call
    from tooli.contract.tool import Tool

    house = app._house

    def refuse(call: Call) -> Generator[Call, Outcome, Outcome]:
        from tooli.call.repair import no_such_command

        raise no_such_command(branch_of(app), name, (house.name,))
        yield call

    nobody = Tool(house.name, (), refuse, (), frozenset(), version=house.version)
    return Call(nobody, {}, PYTHON, []), (refuse,)


class _WithOptions:
    """An app, and options for the calls made through it."""

    __slots__ = ("_app", "_options")

    def __init__(self, app: Tooli, options: Mapping[str, Any]) -> None:
        self._app = app
        self._options = options

    def call(self, tool_name: str, /, **arguments: Any) -> TooliResult[Any]:
        """Run a tool with these options."""
        from tooli.call.pipeline import run

        started = perf_counter()
        call, stages = self._app._prepare(tool_name, arguments, self._options)
        return _result(run(call, stages), call, started)

    async def acall(self, tool_name: str, /, **arguments: Any) -> TooliResult[Any]:
        """Run a tool with these options, from async code."""
        from tooli.call.aio import run

        started = perf_counter()
        call, stages = self._app._prepare(tool_name, arguments, self._options)
        return _result(await run(call, stages), call, started)

    def stream(self, tool_name: str, /, **arguments: Any) -> Generator[Any, None, None]:
        """A tool's items, with these options."""
        from tooli.call.pipeline import stream

        call, stages = self._app._prepare(tool_name, arguments, self._options)
        yield from _items((yield from stream(call, stages)))


class _Accessor:
    """`app.find_files`: the tool as a function that returns a TooliResult."""

    def __init__(self, app: Tooli, key: str) -> None:
        tool = app.find(key)
        self._app, self._key = app, key
        if tool is not None:
            self.__doc__ = tool.fn.__doc__
            self.__wrapped__ = tool.fn
            self.__name__ = getattr(tool.fn, "__name__", key)

    def __call__(self, *args: Any, **arguments: Any) -> TooliResult[Any]:
        tool = self._app.find(self._key)
        public = [p.name for p in tool.public] if tool is not None else []
        for name, value in zip(public, args, strict=False):
            if name in arguments:
                raise TypeError(f"{self._key}() got {name!r} twice")
            arguments[name] = value
        if len(args) > len(public):
            raise TypeError(f"{self._key}() takes {len(public)} arguments, {len(args)} given")
        return self._app.call(self._key, **arguments)


class _GroupAccessor:
    """`app.users`: the tools of a group, as attributes."""

    def __init__(self, app: Tooli, path: tuple[str, ...], branch: Branch) -> None:
        self._app, self._path, self._branch = app, path, branch

    def __getattr__(self, name: str) -> Any:
        for word in (name, name.replace("_", "-")):
            if word in self._branch.commands:
                return _Accessor(self._app, ".".join((*self._path, word)))
            if word in self._branch.groups:
                path = (*self._path, word)
                return _GroupAccessor(self._app, path, self._branch.groups[word])
        raise AttributeError(f"{'.'.join(self._path)} has no command {name!r}")


# ------------------------------------------------------------------ keywords


def _command_keywords(said: Mapping[str, Any]) -> None:
    if said and not said.keys() <= _COMMAND_SETTINGS:
        from tooli.contract.reading import COMMAND_KEYWORDS

        _known_keywords("command", said, _COMMAND_SETTINGS | COMMAND_KEYWORDS)


def _known_keywords(where: str, given: Mapping[str, Any], known: frozenset[str]) -> None:
    for name in given:
        if name not in known:
            from tooli.errors import DefinitionError, nearest

            close = nearest(name, known)
            hint = f"; did you mean {close!r}?" if close else ""
            raise DefinitionError(f"{where}() has no keyword {name!r}{hint}")


def _one_of(name: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        from tooli.errors import DefinitionError

        raise DefinitionError(f"{name}={value!r}: say one of {', '.join(allowed)}")


def _home_name(frame: Any) -> str:
    """A name for an app that has none: that of the file it is made in."""
    home = frame.f_globals.get("__file__") or frame.f_globals.get("__name__", "app")
    parts = str(home).replace("\\", "/").split("/")
    stem = parts[-1].partition(".")[0]
    if stem in ("__main__", "__init__") and len(parts) > 1:
        stem = parts[-2]
    return stem.replace("_", "-") or "app"


# ------------------------------------------------------------------ Typer in waiting


def rebase() -> None:
    """Put Tooli on its real base; the class and its instances stay the same objects."""
    typer = sys.modules["typer"]
    if Tooli.__bases__ != (typer.Typer,):
        Tooli.__bases__ = (typer.Typer,)


class _Watch:
    """Stands on `sys.meta_path` until somebody imports typer, then puts Tooli on it."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        if name != "typer":
            return None
        sys.meta_path.remove(_Watch)  # type: ignore[arg-type]
        from importlib.util import find_spec

        spec = find_spec("typer")
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            load = loader.exec_module

            def then_rebase(module: Any) -> None:
                load(module)
                rebase()

            loader.exec_module = then_rebase
        return spec


if not TYPE_CHECKING:
    if hasattr(sys.modules.get("typer"), "Typer"):
        rebase()
    else:
        sys.meta_path.insert(0, _Watch)
