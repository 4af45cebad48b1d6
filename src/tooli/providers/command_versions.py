"""Several versions of one command: `add` is the highest stable one, `add@1.0` a certain one.

    @app.command("add", version="1.0")   ─┐
    @app.command("add", version="2.0")   ─┴▶ add@1.0 (hidden), add@2.0 (hidden), add

Both names of a version lead to the same registration. `VersionFilter` leaves versions out before
the default is chosen.
"""

from __future__ import annotations

from tooli.core.versions import highest_version, sort_versions, split_version
from tooli.errors import DefinitionError, function_location
from tooli.pipeline.unknown_names import unknown_version_error
from tooli.providers import CommandGroup, Registration, known_names

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tooli.core import AppState
    from tooli.core.protocols import App, CommandOptions
    from tooli.core.tool import Tool


class VersionedRegistration(Registration):
    """A command at one of the names of its version."""

    __slots__ = ("_inner", "is_default", "versions")
    is_derived = True

    def __init__(self, inner: Registration, versions: tuple[str, ...], is_default: bool) -> None:
        kwargs: CommandOptions = {**inner.kwargs}
        if not is_default:
            kwargs["hidden"] = True
        super().__init__(
            inner._state, inner.command_name, inner.known_fn, kwargs, inner.target, inner.location
        )
        self._inner = inner
        self.versions = versions
        self.is_default = is_default

    def _read(self, path: tuple[str, ...], root: AppState, is_only_command: bool) -> Tool:
        base = (*path[:-1], split_version(path[-1])[0])
        tool = self._inner._read(base, root, False)
        return tool.replace(
            path=path,
            cli_path=path,
            hidden=tool.hidden or not self.is_default,
            guidance=tool.guidance.replace(versions=self.versions),
        )

    def is_for(self, fn: Callable[..., object]) -> bool:
        """True if this is a command of a function."""
        return self._inner.is_for(fn)

    @property
    def rate_counters(self) -> tuple[tuple[str, str], ...]:
        """The rate limit: the calls under all names are counted together."""
        return self._inner.rate_counters


def version_of(registration: Registration) -> str | None:
    """Return the `version=` of a command."""
    return registration.kwargs.get("version")


def check_duplicate(first: Registration, second: Registration) -> None:
    """Raise a DefinitionError if two commands of one name are not versions of it."""
    versions = [version_of(first), version_of(second)]
    name = second.command_name
    places = [r.location or function_location(r.known_fn) for r in (first, second)]
    where = f"{places[0]} and {places[1]}"
    if None in versions:
        raise DefinitionError(
            f"the command {name!r} is registered twice, at {where}: give each its version="
        )
    if versions[0] == versions[1]:
        raise DefinitionError(
            f"version {versions[0]} of the command {name!r} is registered twice, at {where}"
        )
    sort_versions([version for version in versions if version is not None])


def split_versions(group: CommandGroup, registrations: Iterable[Registration]) -> None:
    """Replace commands with several versions by one entry for each version."""
    found: dict[str, list[Registration]] = {}
    for registration in registrations:
        found.setdefault(registration.command_name, []).append(registration)
    for name, variants in found.items():
        if len(variants) > 1 and name in known_names(group.commands):
            del group.commands[name]
            for variant in variants:
                group.commands[f"{name}@{version_of(variant)}"] = variant


def choose_defaults(group: CommandGroup) -> None:
    """Give the highest stable version of each command the name without a version."""
    found: dict[str, dict[str, Registration]] = {}
    for name, registration in known_names(group.commands).items():
        base, version = split_version(name)
        if version is not None:
            found.setdefault(base, {})[version] = registration
    commands = dict(known_names(group.commands))
    for base, variants in found.items():
        if base in commands:
            continue
        versions = tuple(sort_versions([*variants]))
        for version, registration in variants.items():
            commands[f"{base}@{version}"] = VersionedRegistration(registration, versions, False)
        default = variants[highest_version(versions)]
        commands[base] = VersionedRegistration(default, versions, True)
    if found:
        group.commands = commands
    for inner in known_names(group.groups).values():
        choose_defaults(inner)


def select_version(app: App, tool: Tool, version: str) -> Tool:
    """Return a version of a tool; raise an InputError that lists those there are."""
    key = split_version(tool.key)[0]
    found = app.find(f"{key}@{version}")
    if found is not None:
        return found
    if not tool.guidance.versions and version == tool.version:
        return tool  # it has no `version=`, so it has the version of the app
    versions = tool.guidance.versions or ((tool.version,) if tool.version else ())
    raise unknown_version_error(split_version(tool.name)[0], version, versions)
