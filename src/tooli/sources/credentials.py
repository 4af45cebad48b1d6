"""Refuse credentials in a source: on a command line and in files, only references are allowed.

A reference is `env:NAME` or `@FILE`. It is resolved when the source is opened.
"""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

from tooli.errors import InputError, Suggestion
from tooli.sources.source_grammar import command_words
from tooli.text.patterns import redact_credentials

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.sources.source_grammar import Source

_SECRET_PARTS = (
    *("token", "secret", "password", "passwd", "passphrase", "credential", "cookie"),
    *("apikey", "accesskey", "privatekey", "authorization"),
)
_SECRET_WORDS = frozenset(("auth", "key", "session", "signature", "dsn", "pat", "pwd"))
"""A header, variable, parameter or flag with such a part or word in its name has a credential."""
_LOCATION_WORDS = frozenset(("file", "path", "dir", "folder", "url", "uri", "issuer"))
"""Last words of names whose values say where a credential is."""


def check_options(source: Source) -> None:
    """Raise InputError if an option of a source has a credential in plain text."""
    options = source.options
    for flag, field, pairs in (
        ("--header", "headers", options.headers),
        ("--env", "env", options.env),
    ):
        for name, value in pairs:
            is_given = is_reference(value) or _has_scheme(value, source)
            if not is_given and (is_secret_name(name) or has_credential(value)):
                raise _secret_error(f"{flag} {name}", field, f"{flag} {name}=")
    if options.auth is not None and not is_reference(options.auth):
        raise _secret_error("--auth", "auth", "--auth ")
    for flag, field, value in (
        ("--database", "database", options.database),
        ("--base-url", "base_url", options.base_url),
    ):
        if value is not None and not is_reference(value) and has_credential(value):
            raise _secret_error(flag, field, f"{flag} ")


def check_target(source: Source) -> None:
    """Raise InputError if the URL or the command of a source has a credential in plain text."""
    target = source.target
    if source.is_url:
        if has_credential(target) or any(map(is_secret_name, _query_names(target))):
            raise _url_error(source.kind)
    elif source.kind == "sql":
        if has_credential(target):
            raise _url_error(source.kind)
    elif source.kind == "mcp":
        words = command_words(target)
        for word, following in zip(words, [*words[1:], ""], strict=True):
            name, equals, value = word.partition("=")
            value = value if equals else following if word[:1] == "-" else ""
            is_named = is_secret_name(name) and value[:1] not in ("", "-")
            if has_credential(word) or (is_named and not is_reference(value)):
                raise _command_error()


def is_reference(value: str) -> bool:
    """True for `env:NAME` or `@FILE`."""
    return (value[:4] == "env:" and len(value) > 4) or (value[:1] == "@" and len(value) > 1)


def _has_scheme(value: str, source: Source) -> bool:
    """True for `Bearer env:NAME`. An API has `--auth` for that."""
    scheme, _, reference = value.partition(" ")
    return source.kind in ("mcp", "tooli") and scheme.isalpha() and is_reference(reference)


def is_secret_name(name: str) -> bool:
    """True if a name says that its value is a credential."""
    words = "".join([c if c.isalnum() else " " for c in name.lower()]).split()
    if not words or words[-1] in _LOCATION_WORDS:
        return False
    plain = "".join(words)
    return not _SECRET_WORDS.isdisjoint(words) or any([part in plain for part in _SECRET_PARTS])


def has_credential(text: str) -> bool:
    """True if a text contains what looks like a credential, such as a password in a URL."""
    try:
        has_password = bool(urlsplit(text).password)
    except ValueError:
        has_password = False
    return has_password or bool(redact_credentials(text)[1])


def _query_names(url: str) -> list[str]:
    return [name for name, _ in parse_qsl(urlsplit(url).query, keep_blank_values=True)]


def _secret_error(what: str, field: str, start: str) -> InputError:
    return InputError(
        f"{what}: a credential must not be on the command line, where others can see it.",
        code="E1032",
        field=field,
        suggestion=Suggestion(
            "retry_with_modified_input",
            "Put it into a variable or a file, and name that.",
            example=f"{start}env:VARIABLE or {start}@FILE",
        ),
    )


def _url_error(kind: str) -> InputError:
    fix = "Remove it from the URL, and pass it with --header NAME=env:VARIABLE."
    if kind == "sql":
        fix = "Put the URL into a variable, and write sql:env:VARIABLE."
    return InputError(
        f"The URL of the {kind}: source contains a credential, which would be stored.",
        code="E1032",
        field="source",
        suggestion=Suggestion("retry_with_modified_input", fix),
    )


def _command_error() -> InputError:
    return InputError(
        "The command of the mcp: source contains a credential, which would be stored.",
        code="E1032",
        field="source",
        suggestion=Suggestion(
            "retry_with_modified_input",
            "Remove it from the command, and pass it with --env NAME=env:VARIABLE.",
        ),
    )


def redact_command(command: str) -> str:
    """Return a command or a URL for display, without the credentials in it."""
    words: list[str] = []
    hides_next = False
    for word in redact_credentials(command)[0].split(" "):
        name, equals, value = word.partition("=")
        if hides_next and word[:1] != "-":
            words.append("[redacted]")
        elif equals and value and is_secret_name(name):
            words.append(f"{name}=[redacted]")
        else:
            words.append(word)
        hides_next = word[:1] == "-" and not equals and is_secret_name(name)
    return " ".join(words)
