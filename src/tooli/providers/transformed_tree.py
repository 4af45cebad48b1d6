"""Apply the transforms of an app to its tree of commands.

Each command is read and passed through the transforms. A command that they change is replaced by a
`TransformedRegistration`, and placed at its new path. Groups keep their help and their callbacks.
"""

from __future__ import annotations

from tooli.core import AppState
from tooli.errors import DefinitionError
from tooli.providers import CommandGroup, Registration
from tooli.providers.registration_origins import origin_of
from tooli.transforms import Namespace

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tooli.core.tool import Tool
    from tooli.transforms import Transform


class TransformedRegistration(Registration):
    """A command that transforms have changed."""

    __slots__ = ("_inner", "_origin", "_transforms")
    is_derived = True
    is_transformed = True

    def __init__(
        self,
        inner: Registration,
        origin: tuple[str, ...],
        transforms: Sequence[Transform],
        tool: Tool,
    ) -> None:
        kwargs = {**inner.kwargs, "hidden": tool.hidden}
        if tool.help is not None:
            kwargs["help"] = tool.help
            kwargs.pop("short_help", None)
            kwargs.pop("summary", None)
        super().__init__(inner._state, tool.name, tool.fn, kwargs, None, inner.location)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        self._inner = inner
        self._origin = origin
        self._transforms = tuple(transforms)

    def _read(self, path: tuple[str, ...], root: AppState, is_only_command: bool) -> Tool:
        tool = apply_transforms(self._inner._read(self._origin, root, False), self._transforms)
        if tool is None:
            raise DefinitionError(f"{'.'.join(self._origin)}: a transform leaves it out now")
        return tool.replace(path=path, id=".".join((root.name, *path)), cli_path=path)

    def is_for(self, fn: Callable[..., object]) -> bool:
        """True if this is a command of a function, before the transforms."""
        return self._inner.is_for(fn)

    @property
    def rate_counters(self) -> tuple[tuple[str, str], ...]:
        """The rate limit: the calls are counted with those of the command before the transforms."""
        return self._inner.rate_counters


def apply_transforms(tool: Tool, transforms: Sequence[Transform]) -> Tool | None:
    """Return a tool after all transforms, or None if one of them leaves it out."""
    changed: Tool | None = tool
    for transform in transforms:
        if changed is not None:
            changed = transform(changed)
    if changed is not None and not changed.path:
        raise DefinitionError(f"{tool.key}: a transform removes its name")
    return changed


def namespace_of(transforms: Sequence[Transform]) -> tuple[str, ...]:
    """Return the groups that the Namespaces among the transforms put all tools into."""
    words: tuple[str, ...] = ()
    for transform in transforms:
        if isinstance(transform, Namespace):
            words = (*transform.words, *words)
    return words


def plain_state(name: str) -> AppState:
    """Return the state of a group without rules of its own."""
    state = AppState(name, {})
    state.policy = state.declared_policy = "off"
    return state


def transform_tree(tree: CommandGroup, transforms: Sequence[Transform]) -> CommandGroup:
    """Return the tree of an app with its commands transformed.

    A command that a transform cannot change is refused: unchanged, it could do what the transform
    has to prevent.
    """
    root = _empty_copy(tree)
    left_out: list[Registration] = []
    for origin, registration in tree.walk():
        groups = tree.along(origin)
        path, found = (*namespace_of(transforms), *origin), registration
        tool = None
        try:
            tool = registration._read(origin, tree.state.root, False)
            changed = apply_transforms(tool, transforms)
        except TypeError as error:  # includes DefinitionError: a call of the command reports it
            if not isinstance(error, DefinitionError):
                raise
            if tool is not None:  # reading it applies the transforms again, and raises the error
                found = TransformedRegistration(registration, origin, transforms, tool)
        else:
            if changed is None:
                left_out.append(origin_of(registration))
                continue
            path = changed.path
            if changed is not tool:
                found = TransformedRegistration(registration, origin, transforms, changed)
        _place(root, path, found, origin, groups)
    tree.state.left_out = frozenset(left_out)
    return root


def _empty_copy(group: CommandGroup) -> CommandGroup:
    copied = group.copy()
    copied.commands, copied.groups, copied.only_command = {}, {}, None
    copied.merged_commands, copied.merged_groups = {}, {}
    return copied


def _place(
    root: CommandGroup,
    path: tuple[str, ...],
    registration: Registration,
    origin: tuple[str, ...],
    groups: Sequence[CommandGroup],
) -> None:
    """Put a command at its path. `groups` are those along its path before the transforms."""
    group = root
    offset = len(path) - len(origin)
    for depth, name in enumerate(path[:-1]):
        old = depth - offset  # the group at this depth before the transforms
        if name not in group.groups:
            has_old = 0 <= old < len(groups) - 1
            group.groups[name] = (
                _empty_copy(groups[old + 1]) if has_old else CommandGroup(plain_state(name))
            )
            if has_old and origin[old] in groups[old].merged_groups:
                group.merged_groups[name] = groups[old].merged_groups[origin[old]]
        group = group.groups[name]
    name = path[-1]
    if name in group.commands:
        raise DefinitionError(f"transforms give two commands the name {'.'.join(path)!r}")
    group.commands[name] = registration
    merged = groups[-1].merged_commands.get(origin[-1]) if groups else None
    if merged is not None:
        group.merged_commands[name] = merged
