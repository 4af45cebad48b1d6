"""Make an app of a source: a Tooli app in Python, or an app with the tools of one provider."""

from __future__ import annotations

import os
import sys
from fnmatch import fnmatchcase
from shutil import which

from tooli.app import Tooli
from tooli.core import Record
from tooli.errors import (
    DefinitionError,
    InputError,
    NotFoundError,
    Suggestion,
    ToolError,
    copy_error,
)
from tooli.pipeline.failure import as_tool_error
from tooli.schema.described import clean_text
from tooli.sources.console_scripts import (
    find_entry_function,
    is_console_script,
    replace_typer,
)
from tooli.sources.credentials import check_options
from tooli.sources.providers import make_provider
from tooli.sources.python_apps import (
    NotATyperAppError,
    load_python_app,
    name_after_program,
)
from tooli.sources.source_grammar import (
    NAMED,
    NO_OPTIONS,
    PYTHON_APP,
    Source,
    parse_source,
    with_absolute_paths,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tooli.core.tool import Tool
    from tooli.sources.source_grammar import SourceOptions

_MAX_NAMES = 20
"""Maximum number of tools that an error lists."""


class SelectTools(Record):
    """A transform that leaves out the tools that the options of a source do not select."""

    options: SourceOptions

    def __call__(self, tool: Tool) -> Tool | None:
        """Return the tool if it is selected, or None."""
        options, key = self.options, ".".join(tool.path)
        if options.read_only and not tool.behavior.read_only:
            return None
        if options.include and not _matches(key, options.include):
            return None
        return None if _matches(key, options.exclude) else tool


def _matches(key: str, patterns: tuple[str, ...]) -> bool:
    """True if a name of a tool matches a pattern, or is in a group that does."""
    return any([fnmatchcase(key, p) or fnmatchcase(key, f"{p}.*") for p in patterns])


# ------------------------------------------------------------------ loading


def load_app(reference: str, options: SourceOptions = NO_OPTIONS) -> Tooli:
    """Return the app of a source, such as `app.py:cli`, `openapi:api.json` or `@name`.

    The provider of a source is asked for its tools at once, so that a source that cannot be used is
    an error that names it.
    """
    return load_source(parse_source(reference, options))


def load_source(source: Source) -> Tooli:
    """Return the app of a source."""
    given, source = source, _resolve(source)
    check_options(source)
    if source.kind == PYTHON_APP:
        try:
            app = load_python_app(source.target)
        except NotATyperAppError:  # it is read as a program
            app = _load_provided_app(source)
    else:
        app = _load_provided_app(source)
    app._state.reference = given.words if given.kind == NAMED else with_absolute_paths(source).words
    for options in dict.fromkeys((source.options, given.options)):  # both apply to a name
        if options.include or options.exclude or options.read_only:
            app.add_transform(SelectTools(options))
    return app


def load_program(reference: str, options: SourceOptions = NO_OPTIONS) -> Callable[[], Any]:
    """Return the function that starts an app. All apps of Typer become apps of tooli."""
    source = parse_source(reference, options)
    if _resolve(source).kind == PYTHON_APP:
        replace_typer()
    program = source.target
    if source.words != (program,) or ":" in program or not is_console_script(program):
        return load_source(source)
    function = find_entry_function(program)
    run_command_line = Tooli._run_command_line

    def run_named(self: Tooli, *args: Any, **kwargs: Any) -> object:
        return run_command_line(name_after_program(self, program), *args, **kwargs)

    Tooli._run_command_line = run_named
    return function


def _resolve(source: Source) -> Source:
    """Return the source that a name stands for. Other sources are returned as they are."""
    if source.kind != NAMED:
        return source
    from tooli.sources.named_sources import resolve

    return resolve(source)


def _load_provided_app(source: Source) -> Tooli:
    """Return an app with the tools of the provider of a source."""
    _check_exists(source)
    try:
        is_module = source.kind == PYTHON_APP  # of an object that is no app of Typer
        provider = make_provider(source if is_module else with_absolute_paths(source))
    except Exception as failure:
        raise _describe_failure(source, failure) from failure
    app = Tooli(source.name or derive_name(source, provider.name))
    app.add_provider(provider)
    state = app._state
    state.needs_launcher = True
    mount = state.mounts[0]
    mount.location = source.text
    mount.load()
    if mount.failure is not None:
        failure = mount.failure.__cause__ or mount.failure
        raise _describe_failure(source, failure) from failure
    description = clean_text(provider.description or "").strip()
    if description:
        state.declared_description = description
        state.typer_kwargs.setdefault("help", description)
    return app


def _check_exists(source: Source) -> None:
    if source.kind == "exe":
        _check_program(source)
    if not source.is_path:
        return
    path, what = source.target, "folder" if source.kind == "files" else "file"
    if not os.path.exists(path):
        raise NotFoundError(f"{source.text}: there is no {what} {path!r}.", field="source")
    if os.path.isdir(path) != (source.kind == "files") and source.kind != "sql":
        raise InputError(f"{source.text}: {path!r} is not a {what}.", field="source")


def _check_program(source: Source) -> None:
    """Raise NotFoundError if there is no program of a name: beside this Python, or on the PATH."""
    name = with_absolute_paths(source).target
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")])
    is_file = os.path.isfile(name)
    if (is_file and os.path.dirname(name)) or which(name, path=path) is not None:
        return
    fix = f"For the file here, write exe:./{name}." if is_file else "Install it, or give its path."
    raise NotFoundError(
        f"{source.text}: there is no program {source.target!r}.",
        field="source",
        suggestion=Suggestion("fix", fix),
    )


def _describe_failure(source: Source, failure: BaseException) -> Exception:
    """Return the error of a source that cannot be used. It names the source."""
    if isinstance(failure, DefinitionError):
        error = _restate(failure)
    else:
        error = copy_error(as_tool_error(failure))
    if source.text not in error.message and source.target not in error.message:
        error.message = f"{source.text}: {error.message}"
    error.args = (error.message,)
    if error.field not in _OPTION_FIELDS:
        error.field = "source"
    if error.suggestion is None:
        error.suggestion = Suggestion("fix", _FIXES[source.kind])
    return error


def _restate(failure: DefinitionError) -> ToolError:
    """Return the error for a definition that is wrong, in the class of what has caused it."""
    cause: BaseException | None = failure
    while cause is not None:
        cause = cause.__cause__ or cause.__context__
        if isinstance(cause, (ToolError, OSError)):
            error = copy_error(as_tool_error(cause))
            error.message = failure.message
            return error
    return InputError(failure.message)


_OPTION_FIELDS = ("headers", "env", "auth", "base_url", "database", "trusted")
_FIXES = {
    PYTHON_APP: "Check that the program starts: run it with --help.",
    "exe": "Check that the program is installed and starts: run it with --help.",
    "openapi": "Check that it is an OpenAPI document (JSON or YAML), and that it can be read.",
    "mcp": "Check that the command starts an MCP server, or that the URL is one of an MCP server.",
    "tooli": "Check that the app is being served: mytool api serve",
    "sql": "Check the queries, and the database: --database shop.db",
    "files": "Check that it is a folder of Python files with typed functions.",
}


def check_has_tools(app: Tooli, source: Source) -> int:
    """Return the number of tools of an app; raise an error if there are none."""
    count = sum([not tool.hidden for tool in app.catalog])
    if count:
        return count
    options = source.options
    problems = [problem.message for problem in app.catalog.problems.values()]
    if problems:
        text = clean_text("; ".join(problems[:3]), 1000)
        raise InputError(f"{source.text} has no usable tools: {text}", field="source")
    if not (options.include or options.exclude or options.read_only):
        raise NotFoundError(
            f"{source.text!r} has no commands that can be listed: a custom class may create them.",
            field="source",
        )
    everything = load_source(source.replace(options=options.replace(**_SELECT_ALL)))
    names = [tool.key for tool in everything.catalog if not tool.hidden]
    listed = ", ".join(names[:_MAX_NAMES]) + (", …" if len(names) > _MAX_NAMES else "")
    if options.read_only:
        text, field = "none of its tools is known to be read-only", "read_only"
    else:
        text, field = "--include and --exclude select none of its tools", "include"
    fix = f"The tools are {listed}." if listed else "It has no tools."
    raise InputError(
        f"{source.text}: {text}.",
        field=field,
        suggestion=Suggestion("retry_with_modified_input", fix),
    )


_SELECT_ALL: dict[str, Any] = {"include": (), "exclude": (), "read_only": False}


def derive_name(source: Source, provider_name: str = "") -> str:
    """Return a name for the app of a source without one. A provider knows that of a command."""
    text = source.target
    if source.is_url:
        text = text.partition("://")[2].partition("/")[0].rpartition("@")[2]
    else:
        text = provider_name if source.kind == "mcp" else text
        text = os.path.basename(text.rstrip("/\\"))
        stem, ending = os.path.splitext(text)
        text = stem if ending.lower() in _ENDINGS else text
    plain = "".join([c if c.isascii() and c.isalnum() else " " for c in text.partition(":")[0]])
    return "-".join(plain.lower().split())[:60] or source.kind


_ENDINGS = (".json", ".yaml", ".yml", ".sql", ".db", ".sqlite", ".py", ".js", ".exe", ".sh")
