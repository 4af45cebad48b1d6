"""HttpSettings: the settings of an app's HTTP server."""

from __future__ import annotations

from tooli.core.record import Record
from tooli.serving.dispatcher import MAX_CONCURRENT_CALLS

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import TypeAlias, TypedDict

    from tooli.serving import AsgiApp

    Headers: TypeAlias = tuple[tuple[bytes, bytes], ...]

    class HttpSettingsDict(TypedDict, total=False):
        """The keywords of `app.asgi(…)`; `HttpSettings` explains them."""

        token: str | None
        scopes: Iterable[str] | None
        tokens: Mapping[str, Iterable[str] | None] | None
        allowed_hosts: Iterable[str] | None
        any_address: bool
        allowed_origins: Iterable[str]
        max_body: int
        body_timeout: float
        chunk_timeout: float
        heartbeat: float
        stall_timeout: float
        threads: int
        limit: int
        tools: bool
        page: bool
        mounts: Mapping[str, AsgiApp]


class HttpSettings(Record):
    """Access control and limits of the HTTP server."""

    token: str | None = None  # a token for all callers, which grants `scopes`
    scopes: Iterable[str] | None = None  # None: all scopes
    tokens: Mapping[str, Iterable[str] | None] | None = None  # more tokens, each with its scopes
    allowed_hosts: Iterable[str] | None = None  # None: the loopback names; "*": any
    any_address: bool = False  # also allow an IP address as Host
    allowed_origins: Iterable[str] = ()  # "http://localhost:*": any port
    max_body: int = 4 << 20
    body_timeout: float = 30.0  # seconds for a whole request body
    chunk_timeout: float = 10.0  # seconds for one chunk of it
    heartbeat: float = 15.0  # seconds until an idle event stream sends a comment
    stall_timeout: float = 60.0  # seconds that a stream waits for a client that does not read
    threads: int = 32
    limit: int = MAX_CONCURRENT_CALLS  # concurrent calls; further ones get status 503
    tools: bool = True  # serve the tools and their descriptions
    page: bool = True  # serve the HTML page at /
    mounts: Mapping[str, AsgiApp] = {}  # other ASGI applications, by path; same access control

    def __repr__(self) -> str:
        """Return a text without the tokens, since it may be logged."""
        requires_token = self.token is not None or bool(self.tokens)
        return f"HttpSettings({'secured' if requires_token else 'open'}, max_body={self.max_body})"
