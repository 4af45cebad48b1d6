"""The sources that `tooli adopt` keeps under a name: sources.json in the user's settings folder.

    {"version": 1, "sources": {"shop": {"source": "openapi:/home/ada/shop.json", "options": {…}}}}

The file contains references to credentials, such as `env:SHOP_KEY`, and never credentials. It is
replaced atomically, while a lock is held. It is not read if another user can write it, because it
has commands that are started.
"""

from __future__ import annotations

import json
import os

from tooli.config.config_files import user_config_path
from tooli.config.file_trust import UntrustedFile, open_settings_file
from tooli.core import Record
from tooli.errors import InputError, StateError, Suggestion, TemporaryError
from tooli.install.file_changes import write_atomically
from tooli.sources.source_grammar import SOURCE_OPTIONS, Source, SourceOptions, parse_source
from tooli.storage.state_files import FileLock, get_state_dir, make_private_folder
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tooli.core.protocols import JsonObject

FORMAT_VERSION = 1
MAX_FILE_BYTES = 4 << 20


class KeptSource(Record):
    """A source under a name, and what was known about it when it was kept."""

    name: str
    source: Source
    description: str = ""
    tools: tuple[str, ...] = ()  # names of its tools, for the search
    program: str = ""  # path of the program that `--install` wrote

    def to_dict(self) -> JsonObject:
        """Return the entry of the file."""
        source = self.source
        options: JsonObject = {}
        for option in SOURCE_OPTIONS:
            value: Any = getattr(source.options, option.field)
            if value:  # tuples become lists in JSON
                options[option.field] = value
        fields: JsonObject = {
            "source": source.text,
            "options": options,
            "description": self.description,
            "tools": list(self.tools),
            "program": self.program,
        }
        return {name: value for name, value in fields.items() if value}


def sources_path() -> str:
    """Return the path of the file; raise InputError if the folder of the user is unknown."""
    config = user_config_path(os.environ)
    if config is None:
        raise InputError(
            "The settings folder of the user is unknown: HOME is not an absolute path.",
            code="E1011",
            suggestion=Suggestion("ask_human", "Set HOME or XDG_CONFIG_HOME to a folder."),
        )
    return os.path.join(os.path.dirname(config), "sources.json")


def load_kept_sources() -> dict[str, KeptSource]:
    """Return the kept sources by name; raise an error if the file cannot be used."""
    path = sources_path()
    if not os.path.lexists(path):
        return {}
    data = _read(path)
    entries = data.get("sources")
    if not is_object(entries):
        raise _invalid_file(path, "it has no object `sources`")
    return {name: _parse_entry(path, name, entry) for name, entry in entries.items()}


def _read(path: str) -> JsonObject:
    try:
        with open(open_settings_file(path, "user", (), os.environ), "rb") as file:
            text = file.read(MAX_FILE_BYTES + 1)
    except UntrustedFile as reason:
        raise _invalid_file(path, f"another user may have written it: {reason}") from None
    except OSError as failure:
        raise _invalid_file(path, failure.strerror or str(failure)) from None
    if len(text) > MAX_FILE_BYTES:
        raise _invalid_file(path, "it is too large")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as failure:
        raise _invalid_file(path, f"it is not JSON: {failure}") from None
    if not is_object(data):
        raise _invalid_file(path, "it is not a JSON object")
    if data.get("version") != FORMAT_VERSION:
        raise _invalid_file(path, f"its version is {data.get('version')!r}, not {FORMAT_VERSION}")
    return data


def _parse_entry(path: str, name: str, entry: object) -> KeptSource:
    if not is_object(entry) or not isinstance(entry.get("source"), str):
        raise _invalid_file(path, f"the entry {name!r} has no source")
    try:
        source = parse_source(entry["source"], _parse_options(entry.get("options", {})))
    except (InputError, ValueError) as failure:
        raise _invalid_file(path, f"the entry {name!r}: {failure}") from None
    tools = entry.get("tools")
    return KeptSource(
        name,
        source.replace(name=name),
        str(entry.get("description") or ""),
        tuple([str(tool) for tool in tools]) if is_list(tools) else (),
        str(entry.get("program") or ""),
    )


def _parse_options(data: object) -> SourceOptions:
    """Return the options of an entry; raise ValueError if one is not valid."""
    if not is_object(data):
        raise ValueError("`options` must be an object")
    known = {option.field: option for option in SOURCE_OPTIONS}
    found: dict[str, Any] = {}
    for field, value in data.items():
        if field not in known:
            raise ValueError(f"there is no option {field!r}")
        form = known[field].form
        if form == "flag":
            is_valid = isinstance(value, bool)
        elif form == "text":
            is_valid = isinstance(value, str)
        elif form == "pairs":
            is_valid = is_list(value) and all([_is_pair(item) for item in value])
            value = tuple([tuple(item) for item in value]) if is_valid else value
        else:
            is_valid = is_list(value) and all([isinstance(item, str) for item in value])
            value = tuple(value) if is_valid else value
        if not is_valid:
            raise ValueError(f"the option {field!r} has an invalid value")
        found[field] = value
    return SourceOptions(**found)


def _is_pair(item: object) -> bool:
    return is_list(item) and len(item) == 2 and all([isinstance(part, str) for part in item])


def change_kept_sources(
    change: Callable[[dict[str, KeptSource]], dict[str, KeptSource] | None],
) -> None:
    """Change the kept sources while the lock is held. The file stays as it is for None.

    Raises TemporaryError if the file cannot be written. Nothing is changed then.
    """
    path = os.path.realpath(sources_path())
    with FileLock(os.path.join(get_state_dir(), "sources.lock")):
        changed = change(load_kept_sources())
        if changed is None:
            return
        entries = {name: changed[name].to_dict() for name in sorted(changed)}
        data = {"version": FORMAT_VERSION, "sources": entries}
        try:
            make_private_folder(os.path.dirname(path))
            text = json.dumps(data, indent=2, ensure_ascii=False) + "\n"
            write_atomically(path, text.encode("utf-8", "surrogateescape"), 0o600)
        except OSError as failure:
            raise TemporaryError(
                f"{path} cannot be written: {failure.strerror or failure}.",
                code="E4060",
                suggestion=Suggestion("ask_human", "Check the folder and the free space."),
            ) from None


def _invalid_file(path: str, reason: str) -> StateError:
    return StateError(
        f"{path} cannot be used: {reason}.",
        suggestion=Suggestion("ask_human", f"Correct {path}, or delete it and adopt again."),
    )
