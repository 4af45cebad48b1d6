"""Source: what the program `tooli` makes an app of, as it is written on a command line.

    app.py, app.py:cli           a file, and the app in it
    package.module:cli           a module, and the app in it
    mytool                       an installed program that is made with tooli or Typer
    exe:NAME                     any program
    openapi:FILE, openapi:URL    an API with an OpenAPI document
    mcp:COMMAND, mcp:URL         an MCP server
    tooli:URL                    an app that tooli serves over HTTP
    sql:FILE, sql:DATABASE       the queries in a file, or the tables of a database
    files:DIR                    the functions in a folder of Python files
    @NAME                        a source that `tooli adopt` has kept, or an installed app

The options of a source are written before it: `--header X-Key=env:KEY openapi:api.json`.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from shlex import split as split_words

from tooli.core import Record
from tooli.errors import InputError, Suggestion, shell_quote
from tooli.similar_names import did_you_mean

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    Pairs = tuple[tuple[str, str], ...]

KINDS: Mapping[str, str] = {
    "exe": "a program",
    "openapi": "an OpenAPI document",
    "mcp": "an MCP server",
    "tooli": "a served app",
    "sql": "a file of queries or a database",
    "files": "a folder of Python files",
}
"""The prefixes, and what the rest of the word names."""

PYTHON_APP, NAMED = "app", "@"
"""The kinds of sources without a prefix: a Tooli or Typer app in Python, and a name."""

_LOCAL_KINDS = ("openapi", "files")
_FILE_KINDS = ((".json", "openapi"), (".yaml", "openapi"), (".yml", "openapi"), (".sql", "sql"))
"""Endings of files that are no apps, and the prefix that they probably lack."""


class SourceOption(Record):
    """An option of a source on the command line."""

    flag: str
    field: str  # in SourceOptions
    kinds: tuple[str, ...] = ()  # the sources that have it; () stands for all
    form: str = "list"  # "list", "pairs" (NAME=VALUE, repeatable), "text" or "flag"


SOURCE_OPTIONS = (
    SourceOption("--include", "include"),
    SourceOption("--exclude", "exclude"),
    SourceOption("--read-only", "read_only", form="flag"),
    SourceOption("--header", "headers", ("openapi", "mcp", "tooli"), "pairs"),
    SourceOption("--env", "env", ("mcp", "exe"), "pairs"),
    SourceOption("--auth", "auth", ("openapi", "tooli"), "text"),
    SourceOption("--base-url", "base_url", ("openapi",), "text"),
    SourceOption("--database", "database", ("sql",), "text"),
    SourceOption("--trusted", "trusted", ("mcp",), "flag"),
    SourceOption("--no-sandbox", "no_sandbox", ("exe",), "flag"),
)
"""All options of sources. Their help texts are in `tooli.sources.parameters`."""


class SourceOptions(Record):
    """How a source is opened, and which of its tools are used."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    read_only: bool = False
    headers: Pairs = ()
    env: Pairs = ()
    auth: str | None = None
    base_url: str | None = None
    database: str | None = None
    trusted: bool = False
    no_sandbox: bool = False

    def words(self) -> Iterator[str]:
        """Yield the options as words of a command line."""
        for option in SOURCE_OPTIONS:
            value: Any = getattr(self, option.field)
            if option.form == "flag":
                yield from (option.flag,) * bool(value)
            elif option.form == "text":
                yield from () if value is None else (option.flag, value)
            else:
                for item in value:
                    yield option.flag
                    yield item if isinstance(item, str) else "=".join(item)


NO_OPTIONS = SourceOptions()


class Source(Record):
    """A source with its options."""

    kind: str  # a key of KINDS, PYTHON_APP or NAMED
    target: str  # what comes after the prefix
    options: SourceOptions = NO_OPTIONS
    name: str = ""  # the name of the app; "": it follows from the source

    @property
    def text(self) -> str:
        """The source as one word, without its options."""
        if self.kind == PYTHON_APP:
            return self.target
        return f"@{self.target}" if self.kind == NAMED else f"{self.kind}:{self.target}"

    @property
    def words(self) -> tuple[str, ...]:
        """The words of a command line that name the source: its options, then the source."""
        return (*self.options.words(), self.text)

    @property
    def is_path(self) -> bool:
        """True if the target is a file or folder of this machine that is not run."""
        if self.kind == "sql":
            return is_database_path(self.target)
        return self.kind in _LOCAL_KINDS and not self.is_url

    @property
    def is_url(self) -> bool:
        """True if the target is the URL of a server."""
        return is_url(self.target)


def is_url(text: str) -> bool:
    """True for an http or https URL."""
    return text.lower().startswith(("http://", "https://"))


# ------------------------------------------------------------------ reading a source


def parse_source(text: str, options: SourceOptions = NO_OPTIONS) -> Source:
    """Return the source that a word names; raise InputError if it names none, or for its options.

    A single letter before a colon is a drive of Windows, not a prefix.
    """
    prefix, colon, target = text.partition(":")
    if text[:1] == "@":
        source = Source(NAMED, text[1:].strip(), options)
    elif colon and prefix in KINDS:
        source = Source(prefix, target.strip(), options)
    else:
        source = Source(PYTHON_APP, text.strip(), options)
        _check_python_app(source.target, prefix if colon else "")
    if not source.target:
        what = "a name" if source.kind == NAMED else KINDS.get(source.kind, "an app")
        raise source_error(f"{text!r} does not name {what}.", _usage_of(source.kind))
    if source.kind == "tooli" and not source.is_url:
        raise source_error(
            f"{source.text}: must be the URL of a served app.",
            "Write tooli:http://HOST:PORT. Start the app with `mytool api serve`.",
        )
    _check_options(source)
    return source


def _check_python_app(text: str, prefix: str) -> None:
    """Raise InputError for a word that is a URL, a file of another kind, or has a wrong prefix."""
    if is_url(text):
        kinds = ", ".join([f"{kind}:{text}" for kind in ("openapi", "mcp", "tooli")])
        raise source_error(f"{text} is a URL, and what it serves is unknown.", f"Use {kinds}.")
    near = did_you_mean(prefix, KINDS) if len(prefix) > 2 and prefix.isalpha() else ""
    rest = text[len(prefix) + 1 :]
    if near and (is_url(rest) or not rest.isidentifier()):
        known = ", ".join([f"{kind}:" for kind in KINDS])
        raise source_error(f"{text!r} has an unknown prefix{near}", f"The prefixes are {known}.")
    for ending, kind in _FILE_KINDS:
        if text.lower().endswith(ending):
            raise source_error(f"{text!r} is not an app.", f"Use {kind}:{text}", f"{kind}:{text}")
    if os.path.isdir(text) and not _may_be_module(text):
        raise source_error(f"{text!r} is a folder.", f"Use files:{text}", f"files:{text}")


def _may_be_module(text: str) -> bool:
    """True for a word that could be a package in the current folder, such as `shop`."""
    return text.replace(".", "").isidentifier() and text[:1] != "."


def _check_options(source: Source) -> None:
    """Raise InputError if the source does not have one of its options."""
    if source.kind == NAMED:
        return  # they are checked with those that are kept
    for option in SOURCE_OPTIONS:
        given = getattr(source.options, option.field)
        if given and option.kinds and source.kind not in option.kinds:
            owners = " and ".join([f"{kind}:" for kind in option.kinds])
            raise source_error(
                f"{option.flag} is an option of {owners} sources, and {source.text} is none.",
                f"Leave out {option.flag}.",
                field=option.field,
            )
    if source.kind == "mcp":
        flag, given, other = (
            ("--env", source.options.env, "a URL")
            if source.is_url
            else ("--header", source.options.headers, "a command")
        )
        if given:
            instead = "--header" if flag == "--env" else "--env"
            raise source_error(
                f"{flag} cannot be given with {source.text}, which is {other}.",
                f"Use {instead} NAME=VALUE.",
                field="env" if flag == "--env" else "headers",
            )


def _usage_of(kind: str) -> str:
    forms = {"mcp": "mcp:COMMAND or mcp:URL", "openapi": "openapi:FILE or openapi:URL"}
    forms |= {"exe": "exe:NAME", "tooli": "tooli:URL", "sql": "sql:FILE or sql:DATABASE"}
    forms |= {"files": "files:DIR"}
    forms |= {NAMED: "@NAME", PYTHON_APP: "app.py, package.module:app or the name of a program"}
    return f"Write {forms[kind]}."


def source_error(
    message: str, fix: str, example: str | None = None, field: str = "source"
) -> InputError:
    """Return the error of a source that is not written correctly, and how to write it."""
    suggestion = Suggestion("retry_with_modified_input", fix, example=example)
    return InputError(message, field=field, suggestion=suggestion)


def with_absolute_paths(source: Source) -> Source:
    """Return a source that names the same files in every folder, its options included."""
    target, options = source.target, source.options
    if source.is_path:
        target = os.path.abspath(os.path.expanduser(target))
    elif source.kind == PYTHON_APP:
        path, attribute = split_reference(target)
        if path.endswith(".py"):
            path = os.path.abspath(os.path.expanduser(path))
        else:
            path = _absolute_module(path)
        target = f"{path}:{attribute}" if attribute else path
    elif source.kind == "exe" and (os.path.dirname(target) or target.endswith(".py")):
        target = os.path.abspath(os.path.expanduser(target))
    elif source.kind == "mcp" and not source.is_url:
        target = _absolute_command(target)
    database = options.database
    if database is not None and is_database_path(database):
        database = os.path.abspath(os.path.expanduser(database))
    auth = None if options.auth is None else _absolute_reference(options.auth)
    options = options.replace(
        database=database,
        auth=auth,
        headers=tuple([(name, _absolute_reference(value)) for name, value in options.headers]),
        env=tuple([(name, _absolute_reference(value)) for name, value in options.env]),
    )
    return source.replace(target=target, options=options)


def _absolute_module(name: str) -> str:
    """Return the file of a module that only this folder has; the name of any other one."""
    path = os.path.abspath(f"{name}.py")
    if not name.isidentifier() or not os.path.isfile(path):
        return name
    spec = find_spec(name)
    is_local = spec is None or (spec.origin and os.path.realpath(spec.origin)) == os.path.realpath(
        path
    )
    return path if is_local else name


def is_database_path(text: str) -> bool:
    """True if a database is a file; False for a URL, a variable or a database in memory."""
    return not text.startswith(("env:", "@", ":memory:")) and "://" not in text


def _absolute_reference(text: str) -> str:
    """Return a reference to a file, `@FILE`, with an absolute path."""
    if text[:1] != "@" or len(text) == 1:
        return text
    return "@" + os.path.abspath(os.path.expanduser(text[1:]))


def _absolute_command(command: str) -> str:
    """Return a command in which the relative paths of existing files and folders are absolute.

    A word without a separator is a path only if it is the name of a file with an extension, because
    it may as well be the name of a program or a package.
    """
    words = command_words(command)
    changed = [os.path.abspath(word) if _is_relative_path(word) else word for word in words]
    return command if changed == words else join_words(changed)


def _is_relative_path(word: str) -> bool:
    if word[:1] in ("-", "@") or os.path.isabs(word) or not os.path.exists(word):
        return False
    has_separator = bool(os.path.dirname(word)) or word in (os.curdir, os.pardir)
    return has_separator or (os.path.isfile(word) and bool(os.path.splitext(word)[1]))


def command_words(command: str) -> list[str]:
    """Return the words of a command; raise InputError if its quotes do not match."""
    try:
        words = split_words(command, posix=os.name != "nt")
    except ValueError as failure:
        message = f"mcp:{command}: {str(failure).lower()}."
        raise source_error(message, "Close the quotes in the command.") from None
    if not words:
        raise source_error("mcp: names no command.", _usage_of("mcp"))
    return words


def split_reference(reference: str) -> tuple[str, str]:
    """Split `path:attribute` into its parts. The colon of a Windows drive is kept."""
    drive, rest = os.path.splitdrive(reference)
    path, colon, attribute = rest.rpartition(":")
    return (drive + path, attribute) if colon else (reference, "")


def join_words(words: Sequence[str]) -> str:
    """Return words as a command line."""
    return " ".join(map(shell_quote, words))
