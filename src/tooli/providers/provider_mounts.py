"""The providers of an app, in its tree of commands.

    app.add_provider(provider) ──▶ ProviderMount ──▶ LazyGroup or LazyNames in the tree
                                     │
                                     └─ first access ─▶ provider.tools() ─▶ ProvidedRegistration, …

A provider is asked for its tools when a name is looked up that no command of the app has, or when
all tools are listed. After `changed`, it is asked again, and the new tools replace the old ones in
one assignment. A call that is running keeps its tool.
"""

from __future__ import annotations

import atexit
import os
from threading import RLock, get_ident
from typing import Any

from tooli.core import AppState
from tooli.errors import DefinitionError, ToolError, calling_location
from tooli.providers import CommandGroup, Registration, known_names
from tooli.providers.app_levels import iter_levels
from tooli.providers.command_versions import (
    check_duplicate,
    choose_defaults,
    split_versions,
    version_of,
)
from tooli.providers.only_tool import make_group, name_only_tool
from tooli.providers.provider import Provider, tool_path
from tooli.providers.transformed_tree import (
    apply_transforms,
    namespace_of,
    plain_state,
    transform_tree,
)
from tooli.schema.described import clean_text

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tooli.core.protocols import CommandOptions
    from tooli.core.tool import Tool
    from tooli.transforms import Transform

MAX_TOOLS = 20_000
"""Maximum number of tools of one provider."""

RESERVED_NAMES = frozenset(("approvals", "audit", "idempotency", "tooli"))
"""Built-in commands that external tools cannot replace. A command of the author can."""


class ProvidedRegistration(Registration):
    """One tool of a provider, in place of a command that an author registers."""

    __slots__ = ("provided",)
    is_derived = True

    def __init__(self, state: AppState, tool: Tool) -> None:
        super().__init__(state, tool.name, tool.fn, _command_options(tool))
        self.provided = tool

    def _read(self, path: tuple[str, ...], root: AppState, is_only_command: bool) -> Tool:
        tool = self.provided
        limits = tool.limits
        if limits.rate_limit is not None:
            limits = limits.replace(rate_counters=self.rate_counters)
        return tool.replace(
            app=root.name,
            path=path,
            id=".".join((root.name, *path)),
            cli_path=() if is_only_command else path,
            version=tool.version or root.version,
            limits=limits,
            is_provided=True,
        )

    def short_help(self, path: tuple[str, ...]) -> str:
        """Return the text whose first paragraph is the one-line help."""
        return self.provided.doc.summary


def _command_options(tool: Tool) -> CommandOptions:
    """Return the keywords that a tool would have as a command of an author."""
    guard, limits = tool.guard, tool.limits
    found: dict[str, Any] = {
        "annotations": tool.behavior,
        "auth": guard.scopes,
        "capabilities": guard.capabilities,
        "requires_approval": guard.approval,
        "human_in_the_loop": guard.human_in_the_loop,
        "danger_level": guard.danger,
        "isolation": guard.isolation,
        "timeout": limits.timeout,
        "version": tool.version,
        "rate_limit": limits.rate_limit,
        "tags": tool.guidance.tags,
        "hidden": tool.hidden,
        "deprecated": tool.deprecated,
    }
    options: Any = {k: v for k, v in found.items() if v or (k == "auth" and v is not None)}
    return options


# ------------------------------------------------------------------ mounts


class ProviderMount:
    """A provider at its place in an app."""

    def __init__(
        self,
        owner: AppState,
        provider: Provider,
        namespace: str | None,
        transforms: Sequence[Transform] = (),
    ) -> None:
        self.provider = provider
        self.namespace = tuple(namespace.split(".")) if namespace else ()
        self._transforms = tuple(transforms)
        self._tools: list[Tool] | None = None
        self.name = clean_text(provider.name or type(provider).__name__, 80)
        # A provider has no rules of its own: those of the apps above apply.
        self.state = AppState(namespace or "", {})
        self.state.policy = self.state.declared_policy = "off"
        self.state.parents.append(owner)
        # By the key of the tool; "" stands for the whole provider.
        self.problems: dict[str, DefinitionError] = {}
        self.location = calling_location()  # where the provider was added, or its source
        self._owner = owner
        self._content: CommandGroup | None = None
        self._lock = RLock()  # `tools` may use the app
        self._is_observed = False
        self._on_problem: Callable[[], object] | None = None
        self._pid: int | None = None  # the process that used the provider

    @property
    def content(self) -> CommandGroup:
        """The tools of the provider as a tree. The provider is asked on first access."""
        with self._lock:
            if self._content is None:
                if self._tools is None:
                    self._tools = self._load() or []
                self._content = self._make_content(self._tools)
            return self._content

    def forget_content(self) -> None:
        """Apply the transforms of the app again. The provider is not asked again."""
        with self._lock:
            self._content = None

    @property
    def is_loaded(self) -> bool:
        """True once the provider was asked for its tools."""
        return self._content is not None

    def _load(self) -> list[Tool] | None:
        """Ask the provider; return None, and record the problem, if it fails."""
        self._close_at_exit()
        try:
            tools = list(self._read_tools())
        except (Exception, SystemExit) as failure:
            self.problems = {"": self._describe(failure)}
            return None
        self.problems = {}
        for name, text in self.provider.problems.items():
            key = clean_text(name, 200) or "?"  # "" stands for the whole provider
            text = clean_text(text, 500).removeprefix(f"{key}: ")
            self.problems[key] = self.make_problem(f"{key}: {text}")
        return tools

    def _make_content(self, tools: Sequence[Tool]) -> CommandGroup:
        """Return the tree of tools, after the transforms of the provider and of the app."""
        group = CommandGroup(self.state)
        for tool in tools:
            key = ".".join(tool.path)
            try:
                placed = self._transform(tool)
                problem = None
                if placed is not None:
                    self._check_name(placed)
                    problem = _place(group, placed.path, ProvidedRegistration(self.state, placed))
            except Exception as failure:  # the transform of an author may raise any error
                problem = getattr(failure, "message", None) or str(failure)
            if problem is not None:
                self.problems[key] = self.make_problem(problem)
        choose_defaults(group)
        return group

    def _transform(self, tool: Tool) -> Tool | None:
        """Return a tool with its path in the provider's place, or None if it is left out."""
        changed = apply_transforms(tool, self._transforms)
        if changed is None:
            return None
        changed = changed.replace(path=(*self.namespace, *changed.path))
        changed = apply_transforms(changed, self._owner.transforms)
        if changed is None:
            return None
        place = self.place
        if changed.path[: len(place)] != place:
            raise DefinitionError(f"a transform moves {tool.key} out of {'.'.join(place)!r}")
        return changed.replace(path=changed.path[len(place) :])

    def _check_name(self, tool: Tool) -> None:
        """Raise a DefinitionError if an external tool has the name of a reserved command."""
        path = (*self.place, *tool.path)
        if path[0] in RESERVED_NAMES and tool.schema is not None:  # the schema is read last
            raise DefinitionError(
                f"{path[0]!r} is a built-in command with which people check and approve calls; "
                "add the provider with a namespace="
            )

    @property
    def place(self) -> tuple[str, ...]:
        """The path of the group that has the tools: its namespace, in those of the app."""
        return (*namespace_of(self._owner.transforms), *self.namespace)

    def _read_tools(self) -> Iterator[Tool]:
        for count, tool in enumerate(self.provider.tools()):
            if count == MAX_TOOLS:
                raise DefinitionError(f"it has more than {MAX_TOOLS:,} tools")
            yield tool

    def load(self) -> None:
        """Ask the provider for its tools now, unless it was asked before. See `failure`."""
        assert self.content is not None

    def check(self) -> DefinitionError | None:
        """Ask the provider for its tools; return why its source does not work now, or None.

        If it cannot list its tools, that is in `problems`.
        """
        self.load()
        if self.failure is not None:
            return None
        self._close_at_exit()
        try:
            self.provider.check()
        except (Exception, SystemExit) as failure:
            return self._describe(failure, "it does not work now")
        return None

    @property
    def failure(self) -> DefinitionError | None:
        """Why the provider could not list its tools, or None."""
        return self.problems.get("")

    def causes_of_absence(self, name: str) -> Iterator[DefinitionError]:
        """Yield why the provider has no tool of a name: it failed, or has left the tool out."""
        for key, problem in self.problems.items():
            if not key or key == name or key.endswith(f".{name}"):
                yield problem

    def make_problem(self, text: str) -> DefinitionError:
        """Return an error about the provider, with the place where it was added."""
        return DefinitionError(f"the provider {self.name!r}: {text}", self.location)

    def _describe(
        self, failure: BaseException, what: str = "it cannot list its tools"
    ) -> DefinitionError:
        known = isinstance(failure, (ToolError, DefinitionError))
        reason = failure.message if known else str(failure)
        kind = "" if known else type(failure).__name__
        text = ": ".join(filter(None, (kind, clean_text(reason, 500))))
        problem = self.make_problem(f"{what}: {text}")
        problem.__cause__ = failure
        return problem

    # -------------------------------------------------------------- changes

    def watch(self, on_problem: Callable[[], object] | None = None) -> None:
        """Ask the provider to report changes, once. Servers call this.

        `on_problem` is called if only the problems of the provider have changed.
        """
        with self._lock:
            if self._is_observed:
                return
            self._is_observed = True
            self._on_problem = on_problem
        self._close_at_exit()
        try:
            self.provider.watch(self.reload)
        except Exception as failure:
            self.problems[""] = self._describe(failure)

    def reload(self) -> None:
        """Ask the provider again, and replace its tools. If it fails, the old ones stay."""
        with self._lock:
            if self._content is None:
                self._owner.invalidate()
                return
            tools, problems = _tools_by_path(self._content), _texts(self.problems)
            loaded = self._load()
            if loaded is not None:
                self._tools = loaded
                self._content = self._make_content(loaded)
            has_changed = _tools_by_path(self._content) != tools
            if not has_changed and _texts(self.problems) == problems:
                return
        if has_changed:
            self._owner.invalidate()
            return
        self._owner.drop_derived()  # the list of tools is the same for clients
        if self._on_problem is not None:
            self._on_problem()

    def close(self) -> None:
        """Close the provider, if this process has used it."""
        with self._lock:
            is_own, self._pid = self._pid == os.getpid(), None
        if is_own:
            self.provider.close()

    def _close_at_exit(self) -> None:
        if self._pid != os.getpid():
            self._pid = os.getpid()
            atexit.register(self._close_quietly)

    def _close_quietly(self) -> None:
        try:
            self.close()
        except Exception:  # the process ends anyway
            return


def _texts(problems: Mapping[str, DefinitionError]) -> dict[str, str]:
    return {key: problem.message for key, problem in problems.items()}


def _tools_by_path(group: CommandGroup) -> dict[tuple[str, ...], Tool]:
    return {path: registration.tool(path) for path, registration in group.walk()}


def _place(group: CommandGroup, path: tuple[str, ...], command: Registration) -> str | None:
    """Put a command into the tree of a provider; return what is wrong, or None."""
    for name in path[:-1]:
        if name in group.commands:
            return f"{'.'.join(path)!r} is in a group that has the name of a tool"
        group = group.groups.setdefault(name, CommandGroup(group.state))
    name, version = path[-1], command.kwargs.get("version")
    earlier = group.commands.get(name)
    if earlier is not None and version and earlier.kwargs.get("version") not in (None, version):
        group.commands[f"{name}@{earlier.kwargs.get('version')}"] = group.commands.pop(name)
    if version and f"{name}@{version}" not in group.commands and _has_versions(group, name):
        group.commands[f"{name}@{version}"] = command
        return None
    if name in group.commands or name in group.groups or _has_versions(group, name):
        return f"there are two tools with the name {'.'.join(path)!r}; the first one is used"
    group.commands[name] = command
    return None


def _has_versions(group: CommandGroup, name: str) -> bool:
    return any([other.startswith(f"{name}@") for other in group.commands])


# ------------------------------------------------------------------ the tree of an app


def add_provider(
    owner: AppState, provider: object, namespace: str | None, transforms: Sequence[Transform] = ()
) -> None:
    """Add a provider to an app. It is not asked for its tools yet."""
    if namespace is not None:
        namespace = ".".join(tool_path(namespace))
    if not isinstance(provider, Provider):
        raise DefinitionError(f"add_provider({provider!r}): must be a tooli.providers.Provider")
    check_transforms("add_provider", transforms)
    owner.mounts.append(ProviderMount(owner, provider, namespace, transforms))
    owner.extend_tree = extend_tree
    owner.invalidate()
    if owner.is_typer_initialized and owner.app is not None:
        make_group(owner.app)


def add_transforms(owner: AppState, transforms: Sequence[Transform]) -> None:
    """Add transforms to an app. The last one sees the tools as those before have changed them."""
    check_transforms("add_transform", transforms)
    owner.transforms.extend(transforms)
    owner.extend_tree = extend_tree
    for mount in owner.mounts:
        mount.forget_content()
    owner.invalidate()


def add_version(owner: AppState, registration: Registration) -> None:
    """Note that an app has several versions of a command; raise DefinitionError if it has not."""
    if owner.replaces_commands and version_of(registration) is None:
        return
    for other in owner.commands:
        if other.command_name == registration.command_name:
            check_duplicate(other, registration)
    owner.has_versions = True
    owner.extend_tree = extend_tree


def check_transforms(function_name: str, transforms: Sequence[object]) -> None:
    """Raise a DefinitionError if one of the transforms is no function."""
    for transform in transforms:
        if not callable(transform) or isinstance(transform, type):
            raise DefinitionError(
                f"{function_name}({transform!r}): a transform is a function that takes a Tool, "
                "such as tooli.transforms.Namespace('x')"
            )


def extend_tree(tree: CommandGroup) -> CommandGroup:
    """Return the tree of an app with its transforms and the tools of its providers.

    No provider of the app is asked yet.
    """
    state = tree.state
    tree = tree.copy()
    if state.has_versions:
        tree.commands = dict(tree.commands)
        split_versions(tree, state.commands)
    if state.transforms:
        tree = transform_tree(tree, state.transforms)
    if state.has_versions:
        choose_defaults(tree)
    tree.only_command = None  # the app has other commands as well
    tree.find_problems = find_problems
    for mount in state.mounts:
        place, words = tree, mount.place
        for depth, name in enumerate(words, 1):
            inner = known_names(place.groups).get(name)
            if inner is None:
                inner = CommandGroup(mount.state if depth == len(words) else plain_state(name))
                help_text = clean_text(mount.provider.description)
                inner.help = help_text if depth == len(words) else None
            inner = inner.copy()
            place.groups = {**known_names(place.groups), name: inner}
            place.find_problems = find_problems
            place = inner
        place.mounts = (*place.mounts, mount)
        place.find_problems = find_problems
    tree.name_only_tool = name_only_tool if tree.mounts else None
    for group in _groups_with_mounts(tree):
        _make_lazy(group)
    return tree


def _groups_with_mounts(group: CommandGroup) -> Iterator[CommandGroup]:
    for inner in known_names(group.groups).values():
        if inner.has_mounts:
            yield from _groups_with_mounts(inner)
    if group.mounts and type(group.commands) is not LazyNames:
        yield group


def _make_lazy(group: CommandGroup) -> None:
    commands, groups = group.commands, group.groups
    own_names = {_fold(name): name for name in (*known_names(commands), *known_names(groups))}

    def provided(kind: str) -> Iterator[tuple[str, Any]]:
        owners = _claim_names(group.mounts)
        for mount in group.mounts:
            for name, found in getattr(mount.content, kind).items():
                key = _fold(name)
                own_name = own_names.get(key)
                if own_name is None and owners[key] is mount:
                    yield name, found
                    continue
                has_it = f"the provider {owners[key].name!r} has a tool {name!r} as well"
                if own_name is not None:
                    has_it = f"the app itself has a command {own_name!r}"
                problem = mount.make_problem(f"{has_it}; add it with another namespace=")
                mount.problems.setdefault(name, problem)

    group.commands = LazyNames(commands, lambda: provided("commands"))
    group.groups = LazyNames(groups, lambda: provided("groups"))


def _fold(name: str) -> str:
    """Return what a name has in common with its other spellings and with its versions."""
    return name.partition("@")[0].replace("_", "-")


def _claim_names(mounts: Sequence[ProviderMount]) -> dict[str, ProviderMount]:
    """Return the provider of each name: of several, the one that was added first."""
    owners: dict[str, ProviderMount] = {}
    for mount in mounts:
        for name in (*mount.content.commands, *mount.content.groups):
            owners.setdefault(_fold(name), mount)
    return owners


def find_problems(
    tree: CommandGroup, path: tuple[str, ...] = ()
) -> Iterator[tuple[str, DefinitionError]]:
    """Yield the problems of all providers that have been asked, by the key of the tool."""
    for mount in tree.mounts:
        for key, problem in mount.problems.items():
            yield ".".join(filter(None, (*path, key))) or mount.name, problem
    for name, inner in known_names(tree.groups).items():
        if inner.has_mounts:
            yield from find_problems(inner, (*path, name))


def iter_mounts(state: AppState) -> Iterator[ProviderMount]:
    """Iterate over the providers of an app and of the apps below it."""
    seen: set[int] = set()
    for levels in iter_levels(state):
        if id(levels[-1]) not in seen:
            seen.add(id(levels[-1]))
            yield from levels[-1].mounts


# ------------------------------------------------------------------ lazy parts of a tree


class LazyNames(dict[str, Any]):
    """Commands or groups by name. Those of providers are added when a name is not found."""

    def __init__(self, own: Mapping[str, Any], load: Callable[[], Iterable[tuple[str, Any]]]):
        super().__init__(own)
        self._load: Callable[[], Iterable[tuple[str, Any]]] | None = load
        self._loading_threads: set[int] = set()

    def _complete(self) -> None:
        """Add the names of the providers. Threads that need them at once may all add them."""
        load, thread = self._load, get_ident()
        if load is None or thread in self._loading_threads:  # a provider may use the app
            return
        self._loading_threads.add(thread)
        try:
            for name, value in load():
                super().setdefault(name, value)
        finally:
            self._loading_threads.discard(thread)
        self._load = None

    def __contains__(self, name: object) -> bool:
        if super().__contains__(name):
            return True
        self._complete()
        return super().__contains__(name)

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of a name, or the default."""
        return self[name] if name in self else default  # noqa: SIM401  it would call itself

    def __missing__(self, name: str) -> Any:
        if self._load is None or name not in self:
            raise KeyError(name)
        return self[name]

    def __iter__(self) -> Iterator[str]:
        self._complete()
        return super().__iter__()

    def __len__(self) -> int:
        self._complete()
        return super().__len__()

    def keys(self) -> Any:
        """Return the names."""
        self._complete()
        return super().keys()

    def values(self) -> Any:
        """Return the values."""
        self._complete()
        return super().values()

    def items(self) -> Any:
        """Return the names with their values."""
        self._complete()
        return super().items()
