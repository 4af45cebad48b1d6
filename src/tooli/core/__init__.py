"""Core types: tools, calls, callers, outcomes, options, and the state of an app.

Every call needs `AppState` and `Record`. They are in this file because each additional file adds
0.1 ms to the start.
"""

from __future__ import annotations

import os
import sys
from _thread import RLock  # `threading` takes a millisecond to load
from _warnings import warn  # built into the interpreter, unlike `warnings`

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeAlias, TypedDict

    from typing_extensions import Self, dataclass_transform

    from tooli.config.app_settings import AppSettings
    from tooli.config.layers import SettingFault, Settings
    from tooli.core.call import Stage
    from tooli.core.protocols import App, CallbackOptions, GroupOptions, TyperApp, TyperKwargs
    from tooli.core.tool import Tool
    from tooli.pipeline.custom_stages import CustomStage
    from tooli.pipeline.lifespan import Lifespan
    from tooli.providers import CommandGroup, Registration
    from tooli.providers.provider_mounts import ProviderMount
    from tooli.providers.resources import Prompt, Resource
    from tooli.python_api import PythonSurface
    from tooli.transforms import Transform

    ChangeListener: TypeAlias = Callable[[str, str | None], None]
    """Called with the kind of change ("tools", "resources", "prompts" or "resource") and a URI.

    The URI is None unless one resource has changed.
    """

    class SecuritySettings(TypedDict, total=False):
        """Security settings that come from configuration, except `security_policy`."""

        human_in_the_loop: bool
        isolation: str
        # One tuple for each layer of configuration. A path must be allowed by every tuple.
        allow_paths: tuple[tuple[str, ...], ...]
        deny_paths: tuple[str, ...]
        work_dir: str
        token_key: str
        token_issuer: str
        token_audience: str
        token_jwks_url: str
        token_scopes: str
        resource_url: str
        introspection_url: str
        introspection_client: str
        introspection_secret: str
        tokens: str
        rate_limit: str
        audit_log: str
        store: str
        record_capabilities: str  # output file; from TOOLI_RECORD_CAPABILITIES
        timeout: float
        faults: list[SettingFault]  # invalid settings; while there are any, every call is rejected
        ignored: list[SettingFault]  # settings of a project that it cannot set, and unsafe files
        apps: dict[str, dict[str, Any]]  # what `apps: NAME` says of apps that others contain


_ISOLATION_LEVELS = (None, "off", "wanted", "required")

TYPER_COMMAND_KEYWORDS = frozenset(
    (
        *("cls", "context_settings", "help", "epilog", "short_help", "options_metavar"),
        *("add_help_option", "no_args_is_help", "hidden", "deprecated", "rich_help_panel"),
    )
)
"""The keywords of Typer's own `command(…)`, apart from `name`."""

TYPER_APP_KEYWORDS = frozenset(
    (
        *("cls", "invoke_without_command", "no_args_is_help", "subcommand_metavar", "chain"),
        *("result_callback", "context_settings", "callback", "help", "epilog", "short_help"),
        *("options_metavar", "add_help_option", "hidden", "deprecated", "add_completion"),
        *("rich_markup_mode", "rich_help_panel", "suggest_commands"),
        *("pretty_exceptions_enable", "pretty_exceptions_show_locals"),
        *("pretty_exceptions_short",),
    )
)
"""The keywords of `typer.Typer(…)`, apart from `name`."""

TYPER_GROUP_KEYWORDS = TYPER_COMMAND_KEYWORDS | frozenset(
    ("invoke_without_command", "subcommand_metavar", "chain", "result_callback")
)
"""The keywords of Typer's `callback(…)`; `add_typer(…)` takes `name` and `callback` as well."""

TYPER_ATTRIBUTES = frozenset(
    (
        *("info", "registered_commands", "registered_groups", "registered_callback"),
        *("rich_markup_mode", "rich_help_panel", "suggest_commands", "_add_completion"),
        *("pretty_exceptions_enable", "pretty_exceptions_show_locals", "pretty_exceptions_short"),
    )
)
"""The attributes of a `typer.Typer` that are not those of its class."""

BUILTIN_COMMANDS = frozenset(
    (
        *("mcp", "api", "search-tools", "generate-skill", "generate-agents-md", "docs", "export"),
        *("skills", "detect-context", "doctor", "config", "approvals", "audit", "idempotency"),
        *("resources", "prompts", "orchestrate", "python-eval", "tooli"),
    )
)
"""Names of the built-in commands. An app's own command of the same name takes precedence.

`tooli` before a name, as in `mytool tooli docs`, always means the built-in command.
"""


def plain_text(text: str | None) -> str | None:
    """Return a help text without rich markup."""
    if not text:
        return text
    from tooli.text.markup import remove_markup

    return remove_markup(text)


CONTRACT_VERSION = "1.0"
"""The version of the contract: envelope, error codes, exit codes and the formats of `--schema`.

The first number changes if a program that relies on the contract has to change.
"""


class ProcessLock:
    """A re-entrant lock for the threads of a process.

    A forked process gets a new lock, because no thread is left there that could release the old
    one. Use `with lock.current:`.
    """

    def __init__(self) -> None:
        self.current = RLock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._replace)

    def _replace(self) -> None:
        self.current = RLock()


typer_lock = ProcessLock()
"""Held while Typer gets the registrations of an app, and while it builds its commands."""


class AppState:
    """The state of one app: its settings, registrations, policy and caches.

    Typer's own state is not part of it.
    """

    replaces_commands = False  # True: a second command of one name replaces the first one

    def __init__(self, name: str, typer_kwargs: TyperKwargs) -> None:
        self.name = name
        self.typer_kwargs = typer_kwargs  # the keywords of `typer.Typer(…)`
        self.declared_description: str | None = None  # as declared, with rich markup
        self.version: str | None = None
        self.sections: Mapping[str, str] = {}  # added to generated documents, by title
        self.default_output = "auto"
        self.framework_help = True
        self.builtins_of: AppState | None = None  # the app whose built-in commands these are
        self.mcp_transport = "stdio"
        self.defer_loading = False
        self.allow_python_eval = False
        self.code_mode = False  # MCP clients see a search tool and a tool that runs scripts
        self.mcp: Mapping[str, Any] = {}  # `title`, `icons` and `meta` for MCP clients
        self.skill_auto_generate = False
        self.module_globals: dict[str, Any] = {}  # of the module that creates the app
        self.reference: tuple[str, ...] = ()  # the words with which `tooli` loads the app
        self.needs_launcher = False  # only the program `tooli` starts it

        self.parents: list[AppState] = []  # the apps that it was added to, in order
        self.commands: list[Registration] = []
        self.groups: list[tuple[TyperApp, GroupOptions]] = []
        self.mounts: list[ProviderMount] = []  # added with `app.add_provider`
        self.transforms: list[Transform] = []  # added with `app.add_transform`
        self.left_out: frozenset[Registration] = frozenset()  # commands that they leave out
        self.registered: dict[str, Registration] = {}  # the first command of each name
        self.has_versions = False  # a command has several versions
        # Adds the tools of providers to a tree, and applies the transforms; None: there are none.
        self.extend_tree: Callable[[CommandGroup], CommandGroup] | None = None
        self.callback: tuple[Callable[..., object], CallbackOptions] | None = None
        self.resources: list[Resource] = []
        self.prompts: list[Prompt] = []
        self.lifespan: Lifespan | None = None
        self.app_settings: AppSettings | None = None  # of `Tooli(settings=…)`
        self.session_data: dict[str, Any] = {}  # `ctx.state` of calls from Python
        self.dependency_overrides: dict[Callable[..., Any], Callable[..., Any]] = {}
        self.own_stages: list[CustomStage] = []  # added with `app.use`
        self.is_typer_initialized = False  # True once Typer has all registrations
        self.is_typer_starting = False  # True while `typer_lock` is held to pass them on
        self.app: App | None = None  # the app that this is the state of
        self.served_typer: TyperApp | None = None  # a plain Typer whose commands this app serves

        # `policy` applies to calls. It is `declared_policy` unless configuration changes it.
        self.policy = self.declared_policy = "standard"
        # True once all of `policy` and `security_settings` is set. Until then, nothing is called.
        self.security_settings_loaded = False
        self.has_cli_settings = False  # True once a command line has applied its settings
        self.security_settings: SecuritySettings = {}
        self.permissions: tuple[str, ...] | None = None  # allowed capabilities; None: all
        self.resolved_settings: Settings | None = None  # None: the command line has not read it

        self.command_tree: CommandGroup | None = None
        self.prepared_tools: dict[str, tuple[Tool, tuple[Stage, ...], bool]] = {}
        self.python_surface: PythonSurface | None = None
        self.revision = 0  # counts changes, so that a server sees that its list is out of date
        self.change_listeners: list[ChangeListener] = []

    @property
    def launcher_words(self) -> tuple[str, ...]:
        """The words that start the app, if only the program `tooli` starts it; or none."""
        return ("tooli", "run", *self.reference) if self.needs_launcher and self.reference else ()

    @property
    def shows_framework_help(self) -> bool:
        """True if help and completion show the framework options."""
        return self.framework_help and os.environ.get("TOOLI_FRAMEWORK_HELP") != "0"

    @property
    def description(self) -> str | None:
        """The description of the app, without rich markup."""
        return plain_text(self.declared_description)

    @property
    def parent(self) -> AppState | None:
        """The state of the app that this one was last added to."""
        return self.parents[-1] if self.parents else None

    @property
    def root(self) -> AppState:
        """The state of the outermost app that this one has been added to."""
        state = self
        while state.parents:
            state = state.parents[-1]
        return state

    @property
    def path_settings(self) -> SecuritySettings:
        """The settings with the paths that callers may name: for built-in commands, of their app.

        A command line applies its settings to the app itself.
        """
        return (self.builtins_of or self).security_settings

    def self_and_ancestors(self) -> list[AppState]:
        """Return this app and every app that contains it, each once."""
        found: list[AppState] = [self]
        for state in found:
            found.extend([parent for parent in state.parents if parent not in found])
        return found

    def effective_policy(self, tool: Tool) -> str:
        """Return the policy of a call of a tool through this app: the strictest along its path."""
        if "apps" in self.security_settings:
            tool = self.restrict(tool)
        return max(self.policy, tool.guard.policy)  # the names are ordered: off, standard, strict

    def restrict(self, tool: Tool) -> Tool:
        """Return a tool with the settings of the apps along its path: `apps: NAME` in a file.

        Each of these settings can only make the rules of the tool stricter.
        """
        sections = self.security_settings.get("apps", {})
        found = [sections[name] for name in tool.guard.apps if name in sections]
        if not found:
            return tool
        guard = tool.guard
        isolation = [guard.isolation, self.security_settings.get("isolation")]
        isolation += [section.get("isolation") for section in found]
        is_human_required = any([section.get("human_in_the_loop") for section in found])
        guard = guard.replace(
            policy=max([guard.policy, *[s.get("security_policy", "off") for s in found]]),
            isolation=max(isolation, key=_ISOLATION_LEVELS.index),
            human_in_the_loop=guard.human_in_the_loop
            or (is_human_required and tool.behavior.destructive),
        )
        return tool.replace(guard=guard)

    @property
    def has_lifespan(self) -> bool:
        """True if this app, or one that was added to it, has a lifespan."""
        if self.lifespan is not None:
            return True
        inner = [vars(app).get("_state") for app, _ in self.groups]
        return any([state is not None and state.has_lifespan for state in inner])

    @property
    def has_one_command(self) -> bool:
        """True if the app is a single command, which is called without its name."""
        served = self.served_typer
        if served is not None and self.extend_tree is None:
            commands, groups = served.registered_commands, served.registered_groups
            has_callback = served.registered_callback is not None
            return len(commands) == 1 and not groups and not has_callback
        if len(self.commands) != 1 or self.groups or self.extend_tree or self.callback:
            return False
        return self.typer_kwargs.get("callback") is None

    def invalidate(self, kind: str = "tools") -> None:
        """Drop everything derived from the registrations, and notify servers.

        `kind` is what has changed: "tools", "resources" or "prompts".
        """
        self.drop_derived()
        self.notify_change(kind)

    def drop_derived(self) -> None:
        """Drop everything derived from the registrations. What clients see has not changed."""
        for state in self.self_and_ancestors():
            state.command_tree = None
            state.revision += 1
            state.prepared_tools.clear()

    def notify_change(self, kind: str, uri: str | None = None) -> None:
        """Call the change listeners of this app and of every app above it."""
        for state in self.self_and_ancestors():
            for listener in tuple(state.change_listeners):  # a listener may remove itself
                listener(kind, uri)


def find_loaded(module: str, name: str) -> Any:
    """Return an attribute of a module if it is loaded, and None otherwise. Never import.

    Another thread may be importing the module, so that it does not have the attribute yet.
    """
    return getattr(sys.modules.get(module), name, None)


_PROCESS_LINKS = frozenset(
    ("cwd", "root", "fd", "exe", "map_files", "stdin", "stdout", "stderr", "..")
)


def is_fixed_path(path: str) -> bool:
    """True if a path names the same file for every process, wherever it is started.

    A relative path depends on the current folder, and so does `/proc/self/cwd`. The user's home
    folder `~` is allowed.
    """
    path = os.path.expanduser(path)
    if not os.path.isabs(path):
        return False
    parts = os.path.normpath(path).strip(os.sep).split(os.sep)
    links = _PROCESS_LINKS.intersection(path.split(os.sep))  # normpath removes the link of link/..
    return parts[0] not in ("proc", "dev") or not links


def may_exist(path: str) -> bool:
    """False only if it is certain that a file does not exist.

    True if a folder cannot be searched, and for a broken link. Makes one system call if the folder
    of the file does not exist.
    """
    folder = os.path.dirname(path)
    try:
        os.lstat(folder)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    try:
        os.lstat(path)
    except FileNotFoundError:
        return not os.path.isdir(folder)  # the folder is a broken link
    except NotADirectoryError:
        return False
    except OSError:
        return True
    return True


def read_choice(name: str, value: object, allowed: Sequence[str]) -> str:
    """Return a keyword of `Tooli(…)` that is one of the allowed values, in any case, or an enum.

    Raises DefinitionError if it is not one of them.
    """
    if type(value) is str and value in allowed:
        return value
    text = str(getattr(value, "value", value)).lower()
    if text in allowed:
        return text
    from tooli.errors import DefinitionError
    from tooli.similar_names import did_you_mean

    hint = did_you_mean(text, allowed)
    raise DefinitionError(f"{name}={value!r}: must be one of {', '.join(allowed)}{hint}")


SAFETY_OPTIONS = frozenset(("dry_run", "yes", "timeout"))
"""Framework options that protect a call. A parameter of the same name replaces the option."""


def may_replace_safety_option(fn: Any, options: Mapping[str, object]) -> bool:
    """False if a command certainly has no parameter with the name of a safety option.

    Every registration calls it, so it looks at the names in the code of the function only.
    """
    while not hasattr(fn, "__signature__") and hasattr(fn, "__wrapped__"):
        fn = fn.__wrapped__
    code = getattr(fn, "__code__", None)
    return (
        "own_options" in options
        or "input_model" in options
        or code is None
        or hasattr(fn, "__signature__")
        or not SAFETY_OPTIONS.isdisjoint(code.co_varnames)
    )


class SafetyOptionWarning(ImportWarning):
    """A parameter of a command replaces a safety option, such as `--dry-run`.

    Python shows it in tests and in development mode (`-X dev`) only, as `CommandNameWarning`.
    """


def require_known_keywords(
    function_name: str, kwargs: Mapping[str, object], allowed: frozenset[str]
) -> None:
    """Raise a DefinitionError if a function gets a keyword that it does not have."""
    if not kwargs.keys() <= allowed:
        from tooli.errors import check_keywords

        check_keywords(function_name, kwargs, allowed)


class CommandNameWarning(ImportWarning):
    """A command has the name of an attribute of the app.

    Python shows it in tests and in development mode (`-X dev`) only, because it is of no use to the
    people who run the app.
    """


def warn_about_name(name: str, kind: str) -> None:
    """Warn that `app.NAME` is not the command or group with this name."""
    message = f"app.{name} is an attribute of Tooli; the {kind} {name!r} is app.commands.{name}"
    try:
        warn(message, CommandNameWarning, stacklevel=5)
    except CommandNameWarning:  # warnings are errors: the app must run as with Typer
        pass


def default_app_name(module_globals: Mapping[str, object]) -> str:
    """Return the default name of an app: the name of the file or package that creates it.

    A file such as `cli.py` in a package is not what the program is called, so its package is used.
    """
    origin = module_globals.get("__file__") or module_globals.get("__name__", "app")
    parts = str(origin).replace("\\", "/").split("/")
    stem = parts[-1].partition(".")[0]
    if stem in ("__main__", "__init__") and len(parts) > 1:
        stem = parts[-2]
    package = str(module_globals.get("__package__") or "")
    if package and (stem in ("cli", "main", "app", "commands") or stem[0] == "_"):
        stem = package.partition(".")[0]
    return stem.replace("_", "-").strip("-") or "app"


# ------------------------------------------------------------------ records

# `Record` is a frozen dataclass that does not import `dataclasses`, because that imports `inspect`,
# which takes longer than starting the interpreter. A subclass lists its fields as annotations. It
# gets slots, keyword and positional arguments, equality, a hash and `replace`. Its fields are
# read-only.
#
# A class that is instantiated often gets a compiled `__init__`. Compiling takes longer than a few
# generic calls, so it is done after 20 instances.

if TYPE_CHECKING:

    @dataclass_transform(frozen_default=True)
    class Record:
        """A frozen value with named fields."""

        def replace(self, **changes: Any) -> Self:
            """Return a copy with some fields changed."""
            ...

else:

    class _RecordMeta(type):
        def __new__(mcls, name, bases, namespace):
            fields = tuple(namespace.get("__annotations__", ()))
            defaults = {field: namespace.pop(field) for field in fields if field in namespace}
            namespace["__slots__"] = fields
            namespace.setdefault("__init__", _init_fields)
            for base in bases:
                if isinstance(base, _RecordMeta):
                    fields = base.__match_args__ + fields
                    defaults = {**base._defaults, **defaults}
            namespace["__match_args__"] = fields
            namespace["_defaults"] = defaults
            namespace["_instance_count"] = 0
            return type.__new__(mcls, name, bases, namespace)

    def _init_fields(self, *args, **kwargs):
        """Set the fields of a new record."""
        cls = type(self)
        cls._instance_count += 1
        if cls._instance_count > 20:
            cls.__init__ = _compile_init(cls)
            return cls.__init__(self, *args, **kwargs)
        fields, defaults = cls.__match_args__, cls._defaults
        set_field = object.__setattr__
        if len(args) > len(fields):
            raise TypeError(f"{cls.__name__}() takes {len(fields)} fields, {len(args)} given")
        positional_count = len(args)
        for i in range(positional_count):
            set_field(self, fields[i], args[i])
        for field in fields[positional_count:]:
            if field in kwargs:
                set_field(self, field, kwargs.pop(field))
            elif field in defaults:
                set_field(self, field, defaults[field])
            else:
                raise TypeError(f"{cls.__name__}() needs {field!r}")
        if kwargs:
            raise TypeError(f"{cls.__name__}() has no field {next(iter(kwargs))!r}")

    def _compile_init(cls):
        """Compile an `__init__` for one class."""
        signature: list[str] = []
        names: dict[str, object] = {}
        for field in cls.__match_args__:
            names[f"_set_{field}"] = getattr(cls, field).__set__
            if field in cls._defaults:
                names[f"_{field}"] = cls._defaults[field]
                signature.append(f"{field}=_{field}")
            else:
                signature.append(field)
        body = "\n ".join(f"_set_{f}(self, {f})" for f in cls.__match_args__) or "pass"
        exec(f"def __init__(self, {', '.join(signature)}):\n {body}", names)
        return names["__init__"]

    class Record(metaclass=_RecordMeta):
        """A frozen value with named fields."""

        def __setattr__(self, name, value):
            raise AttributeError(f"{type(self).__name__} is frozen; use replace({name}=…)")

        def __delattr__(self, name):
            raise AttributeError(f"{type(self).__name__} is frozen")

        def _values(self):
            return tuple([getattr(self, field) for field in self.__match_args__])

        def replace(self, **changes):
            """Return a copy with some fields changed."""
            values = {field: getattr(self, field) for field in self.__match_args__}
            return type(self)(**(values | changes))

        def __eq__(self, other):
            if type(other) is not type(self):
                return NotImplemented
            return self._values() == other._values()

        def __hash__(self):
            return hash((type(self), self._values()))

        def __repr__(self):
            fields = ", ".join(f"{f}={getattr(self, f)!r}" for f in self.__match_args__)
            return f"{type(self).__name__}({fields})"

        def __reduce__(self):
            return type(self), self._values()
