"""Tooli: the app. It registers tools, holds their tree, and is where every call starts.

`Tooli` is a `typer.Typer`, but Typer is a base class in waiting: importing it costs
more than a whole call, so the class stands on an empty base until somebody imports
`typer`, or asks the app for something that only Typer has. Registrations are written
down and given to the real Typer then.
"""

from __future__ import annotations

import sys

from tooli.sources.local import (
    APP_SETTINGS,
    COMMAND_SETTINGS,
    GROUP_SETTINGS,
    OUTPUT_MODES,
    House,
    Registration,
    branch_of,
    ceiling,
    home_name,
    one_of,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
    from typing import Any, TypeVar

    import typer as real_typer
    from typing_extensions import Unpack

    from tooli.call.model import Call, Caller, Options, Stage
    from tooli.call.result import TooliResult
    from tooli.contract.catalog import Catalog
    from tooli.contract.tool import Tool
    from tooli.sources.local import Branch
    from tooli.sources.resources import PromptWords, ResourceWords
    from tooli.surfaces.http.asgi import Api
    from tooli.surfaces.http.settings import SettingWords
    from tooli.surfaces.python import PythonDoor

    F = TypeVar("F", bound=Callable[..., Any])
    _NotYet = real_typer.Typer
else:

    class _NotYet:
        """What stands in for `typer.Typer` until it is needed."""


_TYPER_STATE = frozenset(
    (
        *("info", "registered_commands", "registered_groups", "registered_callback"),
        *("rich_markup_mode", "rich_help_panel", "suggest_commands", "_add_completion"),
        *("pretty_exceptions_enable", "pretty_exceptions_show_locals"),
        *("pretty_exceptions_short",),
    )
)
_POLICIES = ("off", "standard", "strict")


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
        permissions: Mapping[str, str] | Sequence[str] | None = None,
        security_policy: str = "standard",
        framework_help: bool = True,
        defer_loading: bool = False,
        sections: Mapping[str, str] | None = None,
        **settings: Any,
    ) -> None:
        _known_keywords("Tooli", settings, APP_SETTINGS)
        one_of("security_policy", security_policy, _POLICIES)
        one_of("default_output", default_output, OUTPUT_MODES)
        one_of("mcp_transport", mcp_transport, ("stdio", "http", "sse"))
        if description is not None:
            settings.setdefault("help", description)
        if name is not None:
            settings["name"] = name
        made_in = sys._getframe(1).f_globals
        house = House(name or home_name(made_in), settings)
        house.made_in = made_in
        house.sections = sections or {}
        house.description = description if description is not None else settings.get("help")
        house.version = version
        house.default_output = default_output
        house.mcp_transport = mcp_transport
        house.skill_auto_generate = skill_auto_generate
        house.permissions = None if permissions is None else ceiling(permissions)
        house.policy = house.declared = security_policy
        house.framework_help = framework_help
        house.defer_loading = defer_loading
        self.__dict__["_house"] = house

    # -------------------------------------------------------------- registering

    def command(self, name: str | None = None, **said: Any) -> Callable[[F], F]:
        """Register a function as a tool; it stays what it was. Takes all that Typer's takes."""
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
        house.enter(registration)
        if house.real:
            from tooli.surfaces.cli.typer_register import give_command

            give_command(self, registration)

    def callback(self, **said: Any) -> Callable[[F], F]:
        """Register what runs before the app's commands. Takes what Typer's takes."""
        _known_keywords("callback", said, GROUP_SETTINGS)

        def register(fn: F) -> F:
            house = self._house
            house.forget()
            house.callback = (fn, said)
            if house.real:
                from tooli.surfaces.cli.typer_register import give_callback

                give_callback(self, fn, said)
            return fn

        return register

    def add_typer(self, typer_instance: Any, **said: Any) -> None:
        """Put another app, Tooli or Typer, below this one."""
        _known_keywords("add_typer", said, GROUP_SETTINGS | {"name", "callback"})
        house = self._house
        inner = typer_instance.__dict__.get("_house")
        if inner is not None:
            inner.parent = house
        house.groups.append((typer_instance, said))
        house.forget()
        if house.real:
            from tooli.surfaces.cli.typer_register import give_group

            give_group(self, typer_instance, said)

    def resource(self, uri: str, **said: Unpack[ResourceWords]) -> Callable[[F], F]:
        """Serve what a function returns as a document at a URI, or at many: `notes://{id}`."""
        from tooli.sources.resources import resource

        return resource(self._house, uri, said)

    def prompt(self, name: str | None = None, **said: Unpack[PromptWords]) -> Callable[[F], F]:
        """Serve what a function returns as a prompt that a client's person can pick."""
        from tooli.sources.resources import prompt

        return prompt(self._house, name, said)

    def announce(self, uri: str) -> None:
        """Tell the clients that watch a resource that the document at this URI has changed."""
        self._house.tell("resource", uri)

    # -------------------------------------------------------------- being a Typer

    def _realise(self) -> None:
        """Become a real Typer: everything that was registered is given to it, in order."""
        house = self._house
        if not house.real:
            house.real = True
            from tooli.surfaces.cli.typer_register import realise

            realise(self)

    def __getattr__(self, name: str) -> Any:
        house = self.__dict__.get("_house")
        if house is None or (name[:2] == "__" and name[-2:] == "__"):
            raise AttributeError(name)
        if name not in _TYPER_STATE and name[:1] != "_":
            from tooli.surfaces.python import accessor

            found = accessor(self, (), branch_of(self), name)
            if found is not None:
                return found
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
        return Catalog([found.tool(path, self._house) for path, found in tree.walk()])

    def builtins(self, word: str | None = None) -> Tooli:
        """The commands that every app has beside its own; only those of a word: `mcp`, `docs`."""
        from tooli.builtins import built_in

        return built_in(self, Tooli, word)

    def find(self, name: str) -> Tool | None:
        """The tool of a name: `find-files`, `find_files`, `users.create` or `users create`."""
        words = name.replace(".", " ").replace("/", " ").split() or [name]
        branch = branch_of(self)
        path: list[str] = []
        for i, word in enumerate(words):
            for candidate in (word, word.replace("_", "-"), word.replace("-", "_")):
                if i == len(words) - 1 and candidate in branch.commands:
                    return branch.commands[candidate].tool((*path, candidate), self._house)
                if candidate in branch.groups:
                    branch = branch.groups[candidate]
                    path.append(candidate)
                    break
            else:
                return None
        return None

    # -------------------------------------------------------------- calling

    def call(self, tool_name: str, /, **arguments: Any) -> TooliResult[Any]:
        """Run a tool from Python: the same checks as on every door; never raises, never exits."""
        return self._python().run(tool_name, arguments)

    async def acall(self, tool_name: str, /, **arguments: Any) -> TooliResult[Any]:
        """The same from async code: coroutines on this loop, other functions in a thread."""
        return await self._python().acall(tool_name, **arguments)

    def stream(self, tool_name: str, /, **arguments: Any) -> Generator[Any, None, None]:
        """A tool's items as it makes them; raises the ToolError where it fails."""
        return self._python().stream(tool_name, **arguments)

    def astream(self, tool_name: str, /, **arguments: Any) -> AsyncGenerator[Any, None]:
        """The same, in async code."""
        return self._python().astream(tool_name, **arguments)

    def options(self, *, caller: str | None = None, **options: Any) -> PythonDoor:
        """The same calls with framework options set, and in whose name they are made:

        `app.options(yes=True).call(…)`, `app.options(caller="langchain").call(…)`.
        """
        from tooli.surfaces.python import OPTIONS, PythonDoor

        _known_keywords("options", options, OPTIONS | {"caller"})
        return PythonDoor(self, options, caller)

    def asgi(self, *, mcp: bool = True, **said: Unpack[SettingWords]) -> Api:
        """The app over HTTP, as an ASGI application for any server; with MCP at /mcp."""
        from tooli.surfaces.http.asgi import make_api
        from tooli.surfaces.serving import is_installed

        if mcp and is_installed("mcp"):
            from tooli.surfaces.mcp.http import mcp_endpoint

            said["mounts"] = {"/mcp": mcp_endpoint(self), **said.get("mounts", {})}
        return make_api(self, said)

    def _python(self) -> PythonDoor:
        house = self._house
        if house.door is None:
            from tooli.surfaces.python import PythonDoor

            house.door = PythonDoor(self, {})
        return house.door

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
        from tooli.call.pipeline import ONLY_BIND, Call

        stages = self.stages_for(tool, options, caller.session)
        if stages is not ONLY_BIND:
            more |= {"meta": {}, "secrets": []}
        call = Call(tool, arguments, caller, warnings, options, self._house.policy, **more)
        return call, stages

    def stages_for(
        self, tool: Tool, options: Options, session: str | None = None
    ) -> tuple[Stage, ...]:
        """The stages that have something to do for a tool, outermost first."""
        from tooli.call.pipeline import ONLY_BIND

        house = self._house
        plain = not (tool.staged or house.guarded or options.asks)
        if plain and (session is None or options.detailed is not None):
            return ONLY_BIND
        from tooli.stages.order import choose

        return choose(tool, options, house, session, self.find)


# ------------------------------------------------------------------ keywords


def _command_keywords(said: Mapping[str, Any]) -> None:
    if said and not said.keys() <= COMMAND_SETTINGS:
        from tooli.contract.reading import COMMAND_KEYWORDS

        _known_keywords("command", said, COMMAND_SETTINGS | COMMAND_KEYWORDS)
        if said.get("agent_auto_confirm"):
            from tooli.call.asking import check_harmless

            check_harmless(said)


def _known_keywords(where: str, given: Mapping[str, Any], known: frozenset[str]) -> None:
    if not given.keys() <= known:
        from tooli.errors import check_keywords

        check_keywords(where, given, known)


# ------------------------------------------------------------------ Typer in waiting


def rebase() -> None:
    """Put Tooli on its real base; the class and its instances stay the same objects."""
    if Tooli.__bases__ == (_NotYet,):
        Tooli.__bases__ = (sys.modules["typer"].Typer,)


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
