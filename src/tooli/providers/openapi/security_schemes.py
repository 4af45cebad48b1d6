"""Credentials for the requests to an API: from environment variables and files.

    auth="env:TOKEN"                      for the scheme that an operation requires
    auth={"basicAuth": "@password.txt"}   by the name of the scheme

`security` of an operation is a list of alternatives. Each names the schemes that it needs. The
first alternative is used for which all credentials are known.
"""

from __future__ import annotations

import os
from base64 import b64encode

from tooli.core import Record
from tooli.core.call_secrets import ReceivedSecret, record_secret
from tooli.core.tool import quote
from tooli.errors import AuthError, DefinitionError, Suggestion
from tooli.similar_names import did_you_mean
from tooli.text.jsonable import is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from tooli.core.protocols import JsonObject
    from tooli.providers.openapi.document import Document
    from tooli.providers.openapi.operations import Operation

MAX_SECRET_BYTES = 1 << 16
"""Maximum size of a file with a credential."""


class Credential(Record):
    """What is added to a request: a header, a parameter of the query, or a cookie."""

    location: str
    name: str
    value: str


def check_source(value: object, keyword: str, *, allows_text: bool = False) -> None:
    """Raise a DefinitionError if a value does not say where a credential is."""
    if hasattr(value, "reveal"):
        return
    if not isinstance(value, str) or not value:
        raise DefinitionError(f"{keyword}: must be env:NAME or @FILE, not {type(value).__name__}")
    is_source = (value[:4] == "env:" and len(value) > 4) or (value[:1] == "@" and len(value) > 1)
    if not is_source and not allows_text:
        raise DefinitionError(
            f"{keyword}: must be env:NAME or @FILE, so that the credential is not in the code"
        )


def read_source(value: Any, keyword: str, folder: str) -> str:
    """Return the credential at a place, and hide it in all output of the call.

    Raises AuthError if it is not there.
    """
    if hasattr(value, "reveal"):
        text = str(value.reveal())
    elif value[:4] == "env:":
        text = os.environ.get(value[4:], "")
        if not text:
            raise _missing(f"The environment variable {value[4:]} is not set.", keyword)
    elif value[:1] == "@":
        text = _read_file(os.path.join(folder, value[1:]), value[1:], keyword)
    else:
        return value
    if any([ord(char) < 0x20 or ord(char) == 0x7F for char in text]):
        raise _missing(f"{value} contains a line break or a control character.", keyword)
    record_secret(ReceivedSecret(text))
    return text


def _read_file(path: str, name: str, keyword: str) -> str:
    try:
        with open(path, "rb") as file:
            text = file.read(MAX_SECRET_BYTES + 1).decode().strip()
    except (OSError, UnicodeError) as failure:
        reason = getattr(failure, "strerror", None) or "it is not text"
        raise _missing(f"The file {name} cannot be read: {reason}.", keyword) from None
    if not text or len(text) > MAX_SECRET_BYTES:
        raise _missing(f"The file {name} is {'too large' if text else 'empty'}.", keyword)
    return text


def _missing(message: str, keyword: str) -> AuthError:
    fix = f"Set the credential that {keyword} names, and call again."
    return AuthError(message, suggestion=Suggestion("ask_human", fix))


class Authenticator:
    """Adds the credentials that operations require.

    Args:
        document: The document.
        version: Its version.
        auth: One source for every scheme, or sources by the name of the scheme.
        folder: The folder that relative paths start at.
    """

    def __init__(self, document: Document, version: str, auth: Any, folder: str) -> None:
        self._auth = auth
        self._folder = folder
        section = "/securityDefinitions" if version == "2.0" else "/components/securitySchemes"
        self._schemes: dict[str, JsonObject] = {}
        for name in document.names(section):
            scheme = document.resolve(document.item(section, name))
            if is_object(scheme):
                self._schemes[name] = scheme
        if is_object(auth):
            for name in auth:
                if name not in self._schemes:
                    hint = did_you_mean(str(name), self._schemes)
                    raise DefinitionError(
                        f"auth: {document.name} has no security scheme {quote(str(name))}{hint}"
                    )

    def credentials(self, operation: Operation) -> list[Credential]:
        """Return the credentials for an operation.

        Raises AuthError if those that are configured are not enough, or cannot be read.
        """
        if self._auth is None:
            return []
        alternatives = operation.security
        if alternatives is None:
            return self._default_credentials()
        named = [list(option) for option in alternatives if is_object(option) and option]
        for names in named:
            if all(map(self._is_known, names)) and (is_object(self._auth) or len(names) == 1):
                return [self._make(name) for name in names]
        if len(named) < len(alternatives) or not alternatives:
            return []  # it needs none
        wanted = " or ".join([" and ".join(map(str, names)) for names in named])[:300]
        raise AuthError(
            f"{operation.entry.label} needs credentials for {wanted}.",
            suggestion=Suggestion(
                "ask_human", "Configure them in auth= of the OpenAPIProvider, by scheme."
            ),
        )

    @property
    def parameters(self) -> frozenset[tuple[str, str]]:
        """The names and locations of the parameters that are credentials."""
        schemes = [scheme for scheme in self._schemes.values() if scheme.get("type") == "apiKey"]
        return frozenset([(str(s.get("name")), str(s.get("in"))) for s in schemes])

    def schemes_of(self, operation: Operation) -> Sequence[str]:
        """Return the names of the schemes that an operation may use."""
        if operation.security is None:
            return list(self._schemes)
        names = [str(name) for option in operation.security if is_object(option) for name in option]
        return list(dict.fromkeys(names))

    def _default_credentials(self) -> list[Credential]:
        """Return the credentials for an operation that does not say what it needs."""
        name = next(filter(self._is_known, self._schemes), None)
        if name is not None:
            return [self._make(name)]
        if is_object(self._auth):
            return []
        return [_bearer(read_source(self._auth, "auth", self._folder))]

    def _is_known(self, name: str) -> bool:
        has_source = name in self._auth if is_object(self._auth) else True
        return has_source and _is_supported(self._schemes.get(name))

    def _make(self, name: str) -> Credential:
        source = self._auth[name] if is_object(self._auth) else self._auth
        value = read_source(
            source, f"auth[{name!r}]" if is_object(self._auth) else "auth", self._folder
        )
        return _make_credential(self._schemes[name], value)


def _is_supported(scheme: Mapping[str, Any] | None) -> bool:
    if scheme is None:
        return False
    kind = scheme.get("type")
    if kind == "apiKey":
        has_place = scheme.get("in") in ("header", "query", "cookie")
        return has_place and isinstance(scheme.get("name"), str)
    if kind == "http":
        return str(scheme.get("scheme")).lower() in ("basic", "bearer")
    return kind in ("basic", "oauth2", "openIdConnect")


def _make_credential(scheme: Mapping[str, Any], value: str) -> Credential:
    kind = scheme["type"]
    if kind == "apiKey":
        return Credential(scheme["in"], scheme["name"], value)
    if kind == "basic" or str(scheme.get("scheme")).lower() == "basic":
        encoded = b64encode(value.encode()).decode()
        record_secret(ReceivedSecret(encoded))
        password = value.partition(":")[2]
        if password:
            record_secret(ReceivedSecret(password))
        return Credential("header", "Authorization", f"Basic {encoded}")
    return _bearer(value)


def _bearer(value: str) -> Credential:
    return Credential("header", "Authorization", f"Bearer {value}")
