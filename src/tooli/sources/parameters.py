"""The parameters of the commands that take a source, and its options on a command line."""

from __future__ import annotations

from typing import Annotated

from tooli.errors import ToolError
from tooli.schema.param_info import Argument, Option
from tooli.sources.source_grammar import (
    KINDS,
    SOURCE_OPTIONS,
    SourceOption,
    SourceOptions,
    source_error,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

# These annotations are evaluated when the module is imported.


def complete_source(incomplete: str) -> list[str]:
    """Return the prefixes of sources and the names of kept sources, for the completion of shells.

    Installed apps are left out: finding them takes longer.
    """
    from tooli.sources.kept_sources import load_kept_sources

    try:
        names = [f"@{name}" for name in load_kept_sources()]
    except ToolError:  # the file cannot be used; commands that need it say so
        names = []
    words = [*[f"{kind}:" for kind in KINDS], *names]
    return [word for word in words if word.startswith(incomplete)]


SourceText = Annotated[
    str,
    Argument(
        metavar="SOURCE",
        autocompletion=complete_source,
        help="app.py, app.py:cli, package.mod:cli, an installed program, exe:NAME, "
        "openapi:FILE|URL, mcp:COMMAND|URL, tooli:URL, sql:FILE|DATABASE, files:DIR or @NAME.",
    ),
]
Include = Annotated[
    list[str],
    Option(help="Use only the tools or groups that match: 'users.*' (repeatable)."),
]
Exclude = Annotated[
    list[str], Option(help="Leave out the tools or groups that match (repeatable).")
]
ReadOnlyTools = Annotated[
    bool, Option("--read-only", help="Use only tools that are known to change nothing.")
]
Headers = Annotated[
    list[str],
    Option(
        "--header",
        metavar="NAME=VALUE",
        help="Header of every request (repeatable). A credential is NAME=env:VARIABLE or "
        "NAME=@FILE. For openapi:, mcp: and tooli:.",
    ),
]
Variables = Annotated[
    list[str],
    Option(
        "--env",
        metavar="NAME=VALUE",
        help="Environment variable of the command (repeatable). A credential is "
        "NAME=env:VARIABLE or NAME=@FILE. For mcp: and exe:.",
    ),
]
Auth = Annotated[
    str | None,
    Option(metavar="REFERENCE", help="Credential: env:VARIABLE or @FILE. For openapi:, tooli:."),
]
BaseUrl = Annotated[str | None, Option(help="URL of the API. For openapi:.")]
Database = Annotated[
    str | None,
    Option(help="SQLite file, or env:VARIABLE with the URL of the database. For sql:."),
]
Trusted = Annotated[
    bool,
    Option(
        "--trusted", help="Believe what the server says about the effects of its tools. For mcp:."
    ),
]


NoSandbox = Annotated[
    bool,
    Option(
        "--no-sandbox",
        help="Read the parser of the program outside of the sandbox. For exe:.",
    ),
]


# ------------------------------------------------------------------ options on a command line

_OPTIONS_BY_FLAG = {option.flag: option for option in SOURCE_OPTIONS}


def read_options(values: Mapping[str, Any]) -> SourceOptions:
    """Return the options in the parameters of a command."""
    found: dict[str, Any] = {}
    for option in SOURCE_OPTIONS:
        value = values.get(option.field)
        if option.form == "pairs":
            value = tuple([read_pair(option, text) for text in value or ()])
        elif option.form == "list":
            value = tuple(value or ())
        elif option.form == "flag":
            value = bool(value)
        found[option.field] = value
    return SourceOptions(**found)


def read_pair(option: SourceOption, text: str) -> tuple[str, str]:
    """Return the name and the value of NAME=VALUE; raise InputError if it has no name."""
    name, equals, value = text.partition("=")
    if not name.strip() or not equals:
        raise source_error(
            f"{option.flag}: must be NAME=VALUE.",
            f"Write {option.flag} NAME=env:VARIABLE, or NAME=@FILE.",
            field=option.field,
        )
    return name.strip(), value.strip()


def count_option_words(words: Sequence[str]) -> int:
    """Return how many words at the beginning of a line are options of a source."""
    position = 0
    while position < len(words):
        flag, equals, _ = words[position].partition("=")
        option = _OPTIONS_BY_FLAG.get(flag)
        if option is None:
            break
        position += 1 if equals or option.form == "flag" else 2
    return min(position, len(words))


def parse_option_words(words: Sequence[str]) -> SourceOptions:
    """Return the options that the words of a line give; all words are options of sources."""
    found: dict[str, Any] = {}
    rest = iter(words)
    for word in rest:
        flag, equals, value = word.partition("=")
        option = _OPTIONS_BY_FLAG[flag]
        if option.form == "flag":
            if equals:
                raise source_error(f"{flag} takes no value.", f"Write {flag}.", field=option.field)
            found[option.field] = True
            continue
        if not equals:
            value = next(rest, "")
        if not value:
            raise source_error(f"{flag} has no value.", f"Write {flag} VALUE.", field=option.field)
        if option.form == "text":
            found[option.field] = value
        else:
            found.setdefault(option.field, []).append(value)
    return read_options(found)
