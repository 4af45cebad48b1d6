"""Find the source of `@NAME`: one that `tooli adopt` has kept, or an installed app.

Packages list their apps as entry points of the group `tooli.apps`:

    [project.entry-points."tooli.apps"]
    shop = "shop.cli:app"
"""

from __future__ import annotations

from importlib.metadata import entry_points

from tooli.errors import InputError, NotFoundError, Suggestion
from tooli.similar_names import did_you_mean
from tooli.sources.kept_sources import load_kept_sources
from tooli.sources.source_grammar import PYTHON_APP, SOURCE_OPTIONS, Source

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable
    from importlib.metadata import EntryPoint

ENTRY_POINT_GROUP = "tooli.apps"


def installed_apps() -> dict[str, EntryPoint]:
    """Return the installed apps by name. None of them is imported."""
    return {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}


def resolve(source: Source) -> Source:
    """Return the source of a name; raise NotFoundError if it is unknown.

    Of the options that are given, only those that select tools are allowed with a name. Another
    URL could get the credentials that are kept.
    """
    name = source.target
    kept = load_kept_sources()
    if name in kept:
        found = kept[name].source
    else:
        found = _find_installed(name, kept)
    for option in SOURCE_OPTIONS:
        if option.kinds and getattr(source.options, option.field):
            raise InputError(
                f"{option.flag} cannot be given with @{name}, which has its own options.",
                field=option.field,
                suggestion=Suggestion("fix", f"Change them: tooli adopt {name} SOURCE --force"),
            )
    return found


def _find_installed(name: str, kept: Iterable[str]) -> Source:
    apps = installed_apps()
    if name in apps:
        return Source(PYTHON_APP, apps[name].value.partition("[")[0].strip(), name=name)
    near = did_you_mean(name, [*kept, *apps])
    raise NotFoundError(
        f"No source is kept under the name {name!r}{near or '.'}",
        field="source",
        suggestion=Suggestion("fix", "List the names: tooli registry list"),
    )
