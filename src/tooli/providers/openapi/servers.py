"""The URL of the server of an operation: `servers` with variables, or `host` of Swagger 2."""

from __future__ import annotations

import re
from urllib.parse import urljoin, urlsplit

from tooli.core.tool import quote
from tooli.errors import DefinitionError
from tooli.providers.openapi.parameter_styles import encode
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from tooli.core.protocols import JsonObject
    from tooli.providers.openapi.document import Document

_VARIABLE = re.compile(r"\{([^{}]+)\}")


class ServerFinder:
    """Finds the server of an operation.

    Args:
        document: The document.
        version: Its version.
        url: Where it was fetched from; None for a file.
        is_private: It was fetched from an address of a private network.
        base_url: The URL that the author has chosen for all operations.
        variables: The values of variables in the URLs of servers.
    """

    def __init__(
        self,
        document: Document,
        version: str,
        url: str | None = None,
        is_private: bool = False,
        base_url: str | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self._url = url
        self._is_private = is_private
        self._variables = variables or {}
        self._base_url = base_url
        self._name = document.name
        if version == "2.0":
            self._servers: Sequence[JsonObject] = _swagger_servers(document, url)
        else:
            found: Any = document.get("servers")
            self._servers = found if is_list(found) else []

    def find(self, servers: Sequence[JsonObject] | None = None) -> str:
        """Return the URL of the first server of an operation, or of the document.

        Raises DefinitionError if it is not the URL of a server.
        """
        if self._base_url is not None:
            return self._check(self._fill(self._base_url, {}))
        server: object = next(iter(servers or self._servers), {"url": "/"})
        if not is_object(server) or not isinstance(server.get("url"), str):
            server = {"url": "/"}
        variables = server.get("variables")
        url = self._fill(server["url"], variables if is_object(variables) else {})
        return self._check(urljoin(self._url, url) if self._url is not None else url)

    def allows_private(self, url: str) -> bool:
        """True if a server may have an address of a private network.

        A document from the network cannot name one: only its own host, if the document came from
        such an address itself, or `base_url`. Otherwise the name of its host could change its
        address after the document is read (DNS rebinding).
        """
        if self._base_url is not None or self._url is None:
            return True
        return self._is_private and urlsplit(self._url).hostname == urlsplit(url).hostname

    def _fill(self, url: str, declared: Mapping[str, Any]) -> str:
        def value_of(found: re.Match[str]) -> str:
            name = found[1]
            variable = declared.get(name)
            default = variable.get("default") if is_object(variable) else None
            value = self._variables.get(name, default)
            if value is None:
                raise DefinitionError(
                    f"{self._name}: the URL of the server has the variable {quote(name[:80])}: "
                    "set it in server_variables="
                )
            allowed = variable.get("enum") if is_object(variable) else None
            if name in self._variables and is_list(allowed) and value not in allowed:
                choices = ", ".join(map(str, allowed))[:200]
                raise DefinitionError(f"server_variables: {name} must be one of {choices}")
            is_chosen = name in self._variables and found.start() < _end_of_host(url)
            return _host_text(str(value), name) if is_chosen else str(value)

        return _VARIABLE.sub(value_of, url)

    def _check(self, url: str) -> str:
        try:
            parts = urlsplit(url)
            is_valid = parts.scheme in ("http", "https") and bool(parts.hostname)
            _ = parts.port
        except ValueError:
            is_valid = False
        else:
            is_valid = is_valid and "@" not in parts.netloc
        if not is_valid:
            raise DefinitionError(
                f"{self._name} has no complete URL of a server ({quote(url[:120])}): "
                "pass base_url= (--base-url)"
            )
        return url.partition("#")[0].partition("?")[0]


def _end_of_host(url: str) -> int:
    """Return the position after the host of a URL with variables."""
    start = url.find("://")
    end = url.find("/", start + 3) if start >= 0 else 0
    return end if end >= 0 else len(url)


def _host_text(value: str, name: str) -> str:
    """Return a variable in a host; raise a DefinitionError if it can end the host."""
    if encode(value) != value.replace(":", "%3A"):  # it may have a port
        raise DefinitionError(f"server_variables: {name} has a character that is not allowed")
    return value


def _swagger_servers(document: Document, url: str | None) -> list[JsonObject]:
    host, path, schemes = document.get("host"), document.get("basePath"), document.get("schemes")
    path = path if isinstance(path, str) else ""
    if not isinstance(host, str) or not host:
        return [{"url": path or "/"}]
    names = list(schemes) if is_list(schemes) else []
    own = urlsplit(url).scheme if url is not None else "https"
    scheme = "https" if "https" in names or (not names and own == "https") else "http"
    return [{"url": f"{scheme}://{host}{path}"}]
