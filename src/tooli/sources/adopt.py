"""tooli adopt: keep a source under a name, and write a program that runs it."""

from __future__ import annotations

import os
import re

from tooli.core import Record
from tooli.errors import ConflictError, InputError, NotFoundError, Suggestion
from tooli.similar_names import did_you_mean
from tooli.sources.credentials import check_options, check_target
from tooli.sources.kept_sources import KeptSource, change_kept_sources, sources_path
from tooli.sources.loader import check_has_tools, load_source
from tooli.sources.program_files import (
    check_replaceable,
    delete_program,
    program_path,
    write_program,
)
from tooli.sources.source_grammar import NAMED, join_words, parse_source, with_absolute_paths

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core.protocols import JsonObject
    from tooli.sources.source_grammar import SourceOptions

MAX_STORED_NAMES = 500
"""Maximum number of names of tools that are stored for the search."""
_NAME_PATTERN = r"[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?"


class Adoption(Record):
    """What `tooli adopt` has done, or would do."""

    kept: KeptSource
    action: str  # "created", "updated" or "current"
    tool_count: int

    def to_dict(self) -> JsonObject:
        """Return the result of the command."""
        kept = self.kept
        name = kept.program or f"tooli run @{kept.name}"
        start = kept.name if kept.program and is_on_path(kept.program) else name
        return {
            "name": kept.name,
            "action": self.action,
            "source": join_words(kept.source.words),
            "tools": self.tool_count,
            "stored_in": sources_path(),
            **({"program": kept.program} if kept.program else {}),
            "try": f"{start} --help",
        }

    def path_warnings(self) -> list[str]:
        """Return what keeps the program from being started by its name."""
        program = self.kept.program
        if not program or is_on_path(program):
            return []
        return [f"{os.path.dirname(program)} is not on the PATH. Add it, or start {program}."]


def adopt(
    name: str,
    text: str,
    options: SourceOptions,
    *,
    install: bool,
    bin_dir: str | None,
    force: bool,
    dry: bool = False,
) -> Adoption:
    """Keep a source under a name. It is opened first: a source that does not work is an error."""
    check_name(name)
    source = parse_source(text, options)
    if source.kind == NAMED:
        raise InputError(
            f"{text} is a name already.",
            field="source",
            suggestion=Suggestion("fix", f"Pass its source: tooli registry show {source.target}"),
        )
    check_options(source)
    check_target(source)
    source = with_absolute_paths(source).replace(name=name)
    app = load_source(source)
    count = check_has_tools(app, source)
    names = sorted([tool.key for tool in app.catalog if not tool.hidden])
    description = (app._state.description or "").strip().partition("\n")[0][:300]
    path = program_path(name, bin_dir) if install else ""
    kept = KeptSource(name, source, description, tuple(names[:MAX_STORED_NAMES]), path)
    return _keep(Adoption(kept, "created", count), force=force, dry=dry)


def check_name(name: str) -> None:
    """Raise InputError if a name cannot be the name of a program."""
    if not re.fullmatch(_NAME_PATTERN, name):
        raise InputError(
            f"{name!r} cannot be a name: it must consist of a-z, 0-9, '-', '_' and '.', "
            "and begin and end with a letter or digit.",
            field="name",
        )


def _keep(adoption: Adoption, *, force: bool, dry: bool) -> Adoption:
    """Store the source and write its program: both, or none of them."""
    result = adoption
    name = adoption.kept.name

    def change(kept: dict[str, KeptSource]) -> dict[str, KeptSource] | None:
        nonlocal result
        before, new = kept.get(name), adoption.kept
        if before is not None and not new.program:
            new = new.replace(program=before.program)
        action = "created" if before is None else "updated"
        if before == new and (not new.program or os.path.exists(new.program)):
            action = "current"
        result = adoption.replace(kept=new, action=action)
        if before is not None and before.source != new.source and not force:
            raise _name_conflict(before)
        if new.program:
            check_replaceable(new.program, name)
        if dry or action == "current":
            return None
        if adoption.kept.program:
            write_program(new.program, name)
        return {**kept, name: new}

    is_new_program = bool(adoption.kept.program) and not os.path.lexists(adoption.kept.program)
    try:
        change_kept_sources(change)
    except BaseException:
        if is_new_program:
            delete_program(adoption.kept.program, name)
        raise
    return result


def _name_conflict(before: KeptSource) -> ConflictError:
    return ConflictError(
        f"{before.name!r} is the name of another source: {join_words(before.source.words)}. "
        "Nothing was changed.",
        field="name",
        suggestion=Suggestion(
            "retry_with_modified_input", "Choose another name, or replace the source with --force."
        ),
    )


def forget(name: str, *, dry: bool = False) -> JsonObject:
    """Delete a kept source and its program; return what was deleted."""
    found: JsonObject = {}

    def change(kept: dict[str, KeptSource]) -> dict[str, KeptSource] | None:
        one = kept.get(name)
        if one is None:
            raise NotFoundError(
                f"No source is kept under the name {name!r}{did_you_mean(name, kept) or '.'}",
                field="name",
                suggestion=Suggestion("fix", "List the names: tooli registry list"),
            )
        found.update(name=name, source=join_words(one.source.words))
        if one.program:
            is_deleted = os.path.lexists(one.program) if dry else delete_program(one.program, name)
            if is_deleted:
                found["program"] = one.program
        return None if dry else {other: kept[other] for other in kept if other != name}

    change_kept_sources(change)
    return found


def is_on_path(program: str) -> bool:
    """True if the folder of a program is on the PATH."""
    folder = os.path.realpath(os.path.dirname(program))
    entries = os.environ.get("PATH", "").split(os.pathsep)
    return folder in [os.path.realpath(entry) for entry in entries if entry]
