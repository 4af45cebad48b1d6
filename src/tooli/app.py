"""Tooli: the app. It registers commands, holds their tree, and starts every call.

`Tooli` is a subclass of `typer.Typer`. Importing Typer takes longer than an ordinary call, so the
class has an empty base class until something imports `typer` or reads an attribute that only Typer
has. An app keeps a log of its registrations. When it initializes its Typer base class, it passes
them on to Typer.
"""

from __future__ import annotations

import sys

from tooli.core import (
    TYPER_APP_KEYWORDS,
    TYPER_ATTRIBUTES,
    TYPER_COMMAND_KEYWORDS,
    TYPER_GROUP_KEYWORDS,
    AppState,
    default_app_name,
    may_replace_safety_option,
    read_choice,
    require_known_keywords,
    typer_lock,
    warn_about_name,
)
from tooli.providers import Registration, build_command_tree, forget_prepared, read_all_tools

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
    from typing import Any, TypeVar, overload

    import typer as real_typer
    from typing_extensions import Unpack

    from tooli.core.call import Call, Caller, Options, Stage
    from tooli.core.catalog import Catalog
    from tooli.core.enums import SecurityPolicy
    from tooli.core.protocols import (
        AppOptions,
        CallbackOptions,
        CommandOptions,
        GroupOptions,
        PromptOptions,
        ResourceOptions,
        ScriptOptions,
        SecurityPolicyName,
        SurfaceOptions,
        Transport,
        TyperKwargs,
    )
    from tooli.core.tool import Tool
    from tooli.http.asgi import Api, HttpSettingsDict
    from tooli.pipeline.lifespan import LifespanContext
    from tooli.pipeline.prepared_call import TooliResult
    from tooli.providers import CommandGroup
    from tooli.providers.provider import Provider
    from tooli.python_api import GroupAccessor, PythonSurface
    from tooli.storage.state_files import MemoryFailureHistory
    from tooli.transforms import Transform

    F = TypeVar("F", bound=Callable[..., object])
    S = TypeVar("S", bound=Stage)
    _TyperPlaceholder = real_typer.Typer
else:

    def overload(function):
        """Stand in for `typing.overload`, which would load typing at start-up."""
        return function

    class _TyperPlaceholder:
        """The base class of Tooli until `typer` is imported."""


_SECURITY_POLICIES = ("off", "standard", "strict")


class Tooli(_TyperPlaceholder):
    """An app: typed functions that become a command line, an MCP server and an HTTP API.

        app = Tooli("notes", version="1.0")

        @app.command(annotations=ReadOnly)
        def find(pattern: str) -> list[str]: …

        if __name__ == "__main__":
            app()

    Takes every keyword of `typer.Typer`, and:

    - `description`: what the app does; also its help.
    - `version`: shown by `--version` and in every envelope.
    - `default_output`: the output mode if the caller does not choose one.
    - `mcp_transport`: the transport of `mcp serve`.
    - `skill_auto_generate`: the build hooks of tooli add the agent skill to the wheel.
    - `permissions`: an upper limit for the capabilities that the app's commands declare.
    - `security_policy`: "off", "standard" or "strict", or a `SecurityPolicy`.
    - `framework_help`: show the framework options in `--help`.
    - `defer_loading`: MCP clients find tools by search instead of in one list.
    - `allow_python_eval`: callers may evaluate Python expressions about results, in a sandbox.
    - `title`: the name of the server that MCP clients show to people.
    - `icons`: icons of the server, as URLs or as dicts with `src`, `mimeType`, `sizes`, `theme`.
    - `meta`: entries for the `_meta` of every MCP tool of the app.
    - `sections`: more sections for the generated documents, by title.
    - `settings`: a dataclass or pydantic model that flags, variables and files fill.
    """

    if TYPE_CHECKING:
        _state: AppState
        dependency_overrides: dict[Callable[..., Any], Callable[..., Any]]
        settings: Any  # the object of `Tooli(settings=…)`

    def __init__(
        self,
        name: str | None = None,
        *,
        description: str | None = None,
        version: str | None = None,
        default_output: str = "auto",
        mcp_transport: Transport = "stdio",
        skill_auto_generate: bool = False,
        permissions: Mapping[str, str] | Sequence[str] | None = None,
        security_policy: SecurityPolicyName | SecurityPolicy = "standard",
        framework_help: bool = True,
        defer_loading: bool = False,
        allow_python_eval: bool = False,
        title: str | None = None,
        icons: Sequence[str | Mapping[str, object]] | None = None,
        meta: Mapping[str, object] | None = None,
        sections: Mapping[str, str] | None = None,
        settings: type | None = None,
        **kwargs: Unpack[AppOptions],
    ) -> None:
        if not kwargs.keys() <= TYPER_APP_KEYWORDS:
            own_keywords = {"name", *(Tooli.__init__.__kwdefaults__ or ())}
            require_known_keywords("Tooli", kwargs, TYPER_APP_KEYWORDS | own_keywords)
        policy = read_choice("security_policy", security_policy, _SECURITY_POLICIES)
        if default_output != "auto":
            from tooli.core.output_modes import OUTPUT_MODES

            default_output = read_choice("default_output", default_output, OUTPUT_MODES)
        transport = read_choice("mcp_transport", mcp_transport, ("stdio", "http", "sse"))
        typer_kwargs: TyperKwargs = {**kwargs}
        if description is not None:
            typer_kwargs.setdefault("help", description)
        if name is not None:
            typer_kwargs["name"] = name
        module_globals = sys._getframe(1).f_globals
        state = AppState(name or default_app_name(module_globals), typer_kwargs)
        state.app = self
        state.module_globals = module_globals
        state.sections = sections or {}
        state.declared_description = description if description is not None else kwargs.get("help")
        state.version = version
        state.default_output = default_output
        state.mcp_transport = transport
        state.skill_auto_generate = skill_auto_generate
        state.policy = state.declared_policy = policy
        state.framework_help = framework_help
        state.defer_loading, state.allow_python_eval = defer_loading, allow_python_eval
        if (permissions, title, icons, meta) != (None, None, None, None):
            from tooli.core.definitions import set_app_keywords

            set_app_keywords(state, permissions, title=title, icons=icons, meta=meta)
        if settings is not None:
            from tooli.config.app_settings import AppSettings

            state.app_settings = AppSettings(settings, state.name)
        self.__dict__["_state"] = state
        self.__dict__["dependency_overrides"] = state.dependency_overrides

    # -------------------------------------------------------------- registering

    def command(
        self, name: str | None = None, **options: Unpack[CommandOptions]
    ) -> Callable[[F], F]:
        """Register a function as a command. The function itself is returned unchanged.

            @app.command(annotations=ReadOnly, timeout=30)
            def find(pattern: str) -> list[str]: …

        Takes every keyword of Typer's `command`, and those of `CommandOptions`.
        """
        if options and not options.keys() <= TYPER_COMMAND_KEYWORDS:
            from tooli.core.definitions import check_command_options, with_end

            check_command_options("command", options)
            options = with_end(options)

        def register(fn: F) -> F:
            self._register(Registration(self._state, name, fn, options))
            return fn

        return register

    def lazy_command(
        self, target: str, name: str | None = None, **options: Unpack[CommandOptions]
    ) -> None:
        """Register `package.module:function` as a command. It is imported when it is needed."""
        from tooli.core.definitions import check_lazy_command, with_end

        location = check_lazy_command(target, options)
        self._register(Registration(self._state, name, None, with_end(options), target, location))

    def _register(self, registration: Registration) -> None:
        state, name = self._state, registration.command_name
        self._check_name(name, "command")
        if may_replace_safety_option(registration.known_fn, registration.kwargs):
            from tooli.providers.safety_options import check_safety_options

            check_safety_options(registration, state)
        if state.registered.setdefault(name, registration) is not registration:
            from tooli.providers.provider_mounts import add_version

            add_version(state, registration)
        state.commands.append(registration)
        state.invalidate()
        uri = registration.kwargs.get("resource")
        if uri is not None:
            from tooli.providers.resources import expose_command

            expose_command(state, uri, registration)
        if state.is_typer_initialized:
            from tooli.cli.typer_register import register_command

            register_command(self, registration)

    def _check_name(self, name: str, kind: str) -> None:
        """Warn if a command or group has the name of an attribute of the app."""
        attribute = name.replace("-", "_")
        if hasattr(type(self), attribute) or attribute in TYPER_ATTRIBUTES:
            warn_about_name(attribute, kind)

    def callback(self, **options: Unpack[CallbackOptions]) -> Callable[[F], F]:
        """Register a function that runs before the app's commands, as Typer's `callback` does."""
        require_known_keywords("callback", options, TYPER_GROUP_KEYWORDS)

        def register(fn: F) -> F:
            state = self._state
            state.invalidate()
            state.callback = (fn, options)
            if state.is_typer_initialized:
                from tooli.cli.typer_register import register_callback

                register_callback(self, fn, {**options})
            return fn

        return register

    def add_typer(self, typer_instance: real_typer.Typer, **options: Unpack[GroupOptions]) -> None:
        """Add another app, a Tooli or a Typer, as a group of commands."""
        require_known_keywords("add_typer", options, TYPER_GROUP_KEYWORDS | {"name", "callback"})
        state = self._state
        self._check_name(options.get("name") or "", "group")
        inner: AppState | None = typer_instance.__dict__.get("_state")
        if inner is not None and state not in inner.parents:
            inner.parents.append(state)
        state.groups.append((typer_instance, options))
        state.invalidate()
        forget_prepared(typer_instance)
        if state.is_typer_initialized:
            from tooli.cli.typer_register import register_group

            register_group(self, typer_instance, {**options})

    def add_provider(
        self,
        provider: Provider,
        namespace: str | None = None,
        *,
        transforms: Sequence[Transform] = (),
    ) -> None:
        """Add the tools of a provider, as a group of commands if there is a `namespace`."""
        from tooli.providers.provider_mounts import add_provider

        add_provider(self._state, provider, namespace, transforms)

    def add_transform(self, transform: Transform) -> Transform:
        """Change the tools of the app with a function or a class of `tooli.transforms`."""
        self.with_transforms(transform)
        return transform

    def with_transforms(self, *transforms: Transform) -> Tooli:
        """Change the tools of the app with several transforms; return the app."""
        from tooli.providers.provider_mounts import add_transforms

        add_transforms(self._state, transforms)
        return self

    def mount(self, app: real_typer.Typer, namespace: str | None = None) -> None:
        """Add the commands of another app in this process, as `add_typer` does."""
        self.add_typer(app, **({} if namespace is None else {"name": namespace}))

    def resource(self, uri: str | None = None, **kw: Unpack[ResourceOptions]) -> Callable[[F], F]:
        """Register a function as a resource; the URI may be a template: `notes://{id}`."""
        from tooli.providers.resources import resource_decorator

        return resource_decorator(self._state, uri, kw)

    def prompt(self, name: str | None = None, **options: Unpack[PromptOptions]) -> Callable[[F], F]:
        """Register a function as a prompt: messages that a client fills in."""
        from tooli.providers.resources import prompt_decorator

        return prompt_decorator(self._state, name, options)

    def lifespan(self, fn: F) -> F:
        """Register a function that opens what a process needs once, yields it, and closes it."""
        from tooli.pipeline.lifespan import set_lifespan

        set_lifespan(self, fn)
        forget_prepared(self)
        return fn

    def lifespan_context(self) -> LifespanContext:
        """Return a context manager, sync or async, in which the lifespan is open for all calls."""
        from tooli.pipeline.lifespan import LifespanContext

        return LifespanContext(self._state)

    def announce(self, uri: str) -> None:
        """Notify the subscribed clients that a resource has changed."""
        self._state.notify_change("resource", uri)

    @overload
    def use(self, stage: S, *, before: str | None = None, after: str | None = None) -> S: ...
    @overload
    def use(  # noqa: F811  ruff knows only typing's own overload
        self, *, before: str | None = None, after: str | None = None
    ) -> Callable[[S], S]: ...
    def use(  # noqa: F811
        self, stage: S | None = None, *, before: str | None = None, after: str | None = None
    ) -> S | Callable[[S], S]:
        """Add a stage of your own around every call of this app and of its groups.

        A stage is a generator function. It takes the call, yields it to the inner stages, and
        returns the outcome. `before` or `after` names a built-in stage; the default is
        `before="bind"`. Stages at the same place run in the order in which they are added.
        `@app.use(after="bind")` works too.
        """
        if stage is None:
            return lambda stage: self.use(stage, before=before, after=after)
        from tooli.pipeline.custom_stages import add_custom_stage

        state = self._state
        add_custom_stage(state, stage, before, after)
        for app, _ in state.groups:
            forget_prepared(app)
        return stage

    # -------------------------------------------------------------- Typer

    def _initialize_typer(self) -> None:
        """Initialize the Typer base class and pass every registration on to it, in order."""
        from tooli.providers.lazy_commands import load_lazy_commands

        state = self._state
        if not state.is_typer_initialized:
            load_lazy_commands(state)
        with typer_lock.current:  # a thread that sees half of the registrations misses callbacks
            if state.is_typer_initialized or state.is_typer_starting:
                return
            from tooli.cli.typer_register import initialize_typer

            state.is_typer_starting = True
            try:
                initialize_typer(self)
                state.is_typer_initialized = True
            finally:
                state.is_typer_starting = False

    def __getattr__(self, name: str) -> Any:
        state = self.__dict__.get("_state")
        if state is None or (name[:2] == "__" and name[-2:] == "__"):
            raise AttributeError(name)
        if name == "settings" and state.app_settings is not None:
            return state.app_settings.value()
        if name not in TYPER_ATTRIBUTES and name[:1] != "_":
            tree = build_command_tree(self)
            if name in tree.names or name.replace("_", "-") in tree.names:
                return getattr(self.commands, name)
        was_initialized = state.is_typer_initialized
        self._initialize_typer()
        if name not in vars(self) and (was_initialized or state.is_typer_starting):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self, name)

    def __setattr__(self, name: str, value: object) -> None:
        state = self.__dict__.get("_state")
        if state is not None and not state.is_typer_initialized and name in TYPER_ATTRIBUTES:
            self._initialize_typer()
        if name == "settings" and state is not None and state.app_settings is not None:
            return state.app_settings.replace(value)
        if state is not None and not state.is_typer_starting:
            state.invalidate()
        object.__setattr__(self, name, value)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command line."""
        return self._run_command_line(*args, **kwargs)

    def _run_command_line(self, *args: Any, **kwargs: Any) -> object:
        import gc

        gc_was_on = gc.isenabled()
        gc.disable()  # until `main` enables it: imports and parsing create no garbage
        from tooli.cli import main

        return main(self, *args, enable_gc=gc_was_on, **kwargs)

    # -------------------------------------------------------------- the tools

    def tree(self) -> CommandGroup:
        """Return the tree of the app's commands and groups."""
        return build_command_tree(self)

    @property
    def catalog(self) -> Catalog:
        """Every tool of the app. A command with an invalid definition is in `catalog.problems`."""
        from tooli.core.catalog import Catalog

        return Catalog(*read_all_tools(build_command_tree(self)))

    def builtins(self, name: str | None = None) -> Tooli:
        """Return an app with the built-in commands, or with those of one group, such as `mcp`."""
        from tooli.builtins import build_builtin_app

        return build_builtin_app(self, Tooli, name)

    def find(self, name: str) -> Tool | None:
        """Return the tool `find-files` or `find_files`, in a group `users.create`, or None."""
        tree = build_command_tree(self)
        found = tree.find(name)
        return None if found is None else self._resolve_handoffs(found[1].tool(found[0], tree))

    def _resolve_handoffs(self, tool: Tool) -> Tool:
        guidance = tool.guidance
        if not guidance.handoffs or guidance.handoffs_resolved:
            return tool
        from tooli.core.catalog import resolve_handoffs

        return resolve_handoffs(tool, [".".join(path) for path, _ in self.tree().walk()])

    def _find_line_problems(self, argv: Sequence[str]) -> list[str]:
        """Return what is wrong with a command line, which does not include the program."""
        from tooli.cli.line_check import find_line_problems

        return find_line_problems(self, argv)

    # -------------------------------------------------------------- calling

    def call(self, tool_name: str, /, **arguments: Any) -> TooliResult[Any]:
        """Run a tool from Python, with the same checks as on every interface.

            result = app.call("find", pattern="*.py")
            files = result.unwrap()

        Never raises and never exits: a failure is in the result.
        """
        return self._python_surface().call_with(tool_name, arguments)

    async def acall(self, tool_name: str, /, **arguments: Any) -> TooliResult[Any]:
        """Run a tool from async code. Coroutines run on this event loop, functions in a thread."""
        return await self._python_surface().acall(tool_name, **arguments)

    def stream(self, tool_name: str, /, **arguments: Any) -> Generator[Any, None, None]:
        """Iterate over a tool's items as it produces them. Raises the ToolError if it fails."""
        return self._python_surface().stream(tool_name, **arguments)

    def astream(self, tool_name: str, /, **arguments: Any) -> AsyncGenerator[Any, None]:
        """Iterate over a tool's items in async code. Raises the ToolError if it fails."""
        return self._python_surface().astream(tool_name, **arguments)

    def validate(self, tool_name: str, /, **arguments: Any) -> TooliResult[Any]:
        """Check a call and run nothing; the result is `{"valid": True}` or has the errors."""
        return self._python_surface().validate(tool_name, **arguments)

    def list_resources(self) -> list[dict[str, Any]]:
        """Return the descriptions of the resources: their URIs or URI templates."""
        return self._python_surface().list_resources()

    def list_prompts(self) -> list[dict[str, Any]]:
        """Return the descriptions of the prompts: their names and arguments."""
        return self._python_surface().list_prompts()

    def read_resource(self, uri: str) -> TooliResult[Any]:
        """Read a resource, with the checks of a call."""
        return self._python_surface().read_resource(uri)

    def get_prompt(self, name: str, /, **arguments: Any) -> TooliResult[Any]:
        """Fill in a prompt, with the checks of a call; the result has its messages."""
        return self._python_surface().get_prompt(name, **arguments)

    def orchestrate(self, code: str, /, **options: Unpack[ScriptOptions]) -> TooliResult[Any]:
        """Run a Python script that calls the app's tools as async functions, in a sandbox.

        app.orchestrate("sum([f['size'] for f in await find(pattern='*.py')])").unwrap()
        """
        return self._python_surface().orchestrate(code, **options)

    async def aorchestrate(
        self, code: str, /, **options: Unpack[ScriptOptions]
    ) -> TooliResult[Any]:
        """Run a script from async code."""
        return await self._python_surface().aorchestrate(code, **options)

    def options(self, **options: Unpack[SurfaceOptions]) -> PythonSurface:
        """Return an object that calls the app's tools with framework options set.

        app.options(yes=True, caller="langchain").call("delete", name="old")
        """
        from tooli.python_api import SURFACE_OPTIONS, PythonSurface

        require_known_keywords("options", options, SURFACE_OPTIONS)
        return PythonSurface(self, options)

    def asgi(
        self,
        *,
        mcp: bool = True,
        stateless: bool = False,
        json_response: bool = False,
        **kwargs: Unpack[HttpSettingsDict],
    ) -> Api:
        """Return an ASGI application: HTTP, and MCP at /mcp. `HttpSettings` has the keywords."""
        from tooli.builtins.asgi_app import build_asgi_app

        return build_asgi_app(
            self, kwargs, mcp=mcp, stateless=stateless, json_response=json_response
        )

    @property
    def commands(self) -> GroupAccessor:
        """The commands as attributes, whatever their names: `app.commands.find("*.py")`."""
        return self._python_surface().commands

    def _python_surface(self) -> PythonSurface:
        state = self._state
        if state.python_surface is None:
            from tooli.python_api import PythonSurface

            state.python_surface = PythonSurface(self, {})
        return state.python_surface

    def prepare(
        self, call: Call, failure_history: MemoryFailureHistory | None = None
    ) -> tuple[Call, tuple[Stage, ...]]:
        """Return a call with the app's state, and its stages; a server passes its failures."""
        from tooli.pipeline import prepare_call

        return prepare_call(self, call, failure_history)

    def stages_for(
        self, tool: Tool, options: Options, caller: Caller | None = None
    ) -> tuple[Stage, ...]:
        """Return the stages of a call, outermost first. The default caller is Python code."""
        from tooli.core.call import PYTHON_CALLER, Call

        return self.prepare(Call(tool, {}, caller or PYTHON_CALLER, [], options))[1]


# ------------------------------------------------------------------ Typer as the base class


def set_typer_base() -> None:
    """Make Typer the base class of Tooli. Existing instances become instances of Typer."""
    if Tooli.__bases__ == (_TyperPlaceholder,):
        from tooli.cli.typer_signature import show_keywords_of_typer

        Tooli.__bases__ = (sys.modules["typer"].Typer,)
        show_keywords_of_typer(Tooli)


class _TyperImportHook:
    """An import hook that makes Typer the base class of Tooli when `typer` is imported."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> object:
        if name != "typer":
            return None
        sys.meta_path.remove(_TyperImportHook)  # type: ignore[arg-type]
        from tooli.cli.typer_signature import find_typer

        return find_typer(set_typer_base)


if not TYPE_CHECKING:
    if hasattr(sys.modules.get("typer"), "Typer"):
        set_typer_base()
    else:
        sys.meta_path.insert(0, _TyperImportHook)
