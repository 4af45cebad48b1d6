"""Make the provider of a source, by its kind. Each is imported when it is needed."""

from __future__ import annotations

from tooli.errors import AuthError, Suggestion
from tooli.policy.token_introspection import read_client_secret
from tooli.providers import public_names
from tooli.sources.credentials import is_reference
from tooli.sources.source_grammar import PYTHON_APP, Source, command_words
from tooli.sources.sql_header import find_database
from tooli.storage.state_files import UnusableFile

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.providers.provider import Provider


def make_provider(source: Source) -> Provider:
    """Return the provider of a source that is not a Python app."""
    return _MAKERS[source.kind](source)


def _make_openapi(source: Source) -> Provider:
    options = source.options
    return public_names.load("OpenAPIProvider")(
        source.target,
        base_url=options.base_url,
        auth=options.auth,
        headers=dict(options.headers) or None,
    )


def _make_mcp(source: Source) -> Provider:
    options = source.options
    return public_names.load("MCPProvider")(
        source.target if source.is_url else command_words(source.target),
        headers=dict(options.headers) or None,
        env=dict(options.env) or None,
        trusted=options.trusted,
    )


def _make_remote(source: Source) -> Provider:
    options = source.options
    return public_names.load("RemoteProvider")(
        source.target,
        token=options.auth,
        headers=dict(options.headers) or None,
        trusted=options.trusted,
    )


def _make_sql(source: Source) -> Provider:
    database, statements = find_database(source)
    read_only = True if source.options.read_only else None
    return public_names.load("SQLProvider")(database, statements, read_only=read_only)


def _make_files(source: Source) -> Provider:
    return public_names.load("FileSystemProvider")(source.target, hot_reload=True)


def _make_program(source: Source) -> Provider:
    env = {name: _read_reference(source, value) for name, value in source.options.env}
    return public_names.load("CLIProvider")(
        source.text, env=env or None, sandbox=not source.options.no_sandbox, raw=True
    )


def _read_reference(source: Source, value: str) -> str:
    """Return a value, or the credential that it refers to; raise AuthError if it is not there."""
    if not is_reference(value):
        return value
    try:
        return read_client_secret(value)
    except UnusableFile as reason:
        raise AuthError(
            f"{source.text}: {value} cannot be used: {reason}.",
            field="env",
            suggestion=Suggestion("fix", "Set the variable or the file, then call again."),
        ) from None


_MAKERS = {
    PYTHON_APP: _make_program,  # an object of a module that is no app of Typer
    "exe": _make_program,
    "openapi": _make_openapi,
    "mcp": _make_mcp,
    "tooli": _make_remote,
    "sql": _make_sql,
    "files": _make_files,
}
