"""Settings: what an app's author or operator decides about its HTTP door."""

from __future__ import annotations

from tooli.core.record import Record
from tooli.serving.dispatcher import MAX_CONCURRENT_CALLS

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
    from typing import Any, TypeAlias, TypedDict

    Message: TypeAlias = MutableMapping[str, Any]
    Scope: TypeAlias = MutableMapping[str, Any]
    Receive: TypeAlias = Callable[[], Awaitable[Message]]
    Send: TypeAlias = Callable[[Message], Awaitable[None]]
    AsgiApp: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
    Headers: TypeAlias = tuple[tuple[bytes, bytes], ...]

    class HttpSettingsDict(TypedDict, total=False):
        """The settings as keywords of `app.asgi(…)`; each is explained at `HttpSettings`."""

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
    """How the door is guarded, and how much of anything it takes."""

    token: str | None = None  # who brings it holds `scopes`; None: everybody may come in
    scopes: Iterable[str] | None = None  # None: every scope
    tokens: Mapping[str, Iterable[str] | None] | None = None  # more tokens, each with its scopes
    allowed_hosts: Iterable[str] | None = None  # None: this machine's own names; "*": any
    any_address: bool = False  # also a Host in numbers, which no name server can turn around
    allowed_origins: Iterable[str] = ()  # pages of these may call; "http://localhost:*": any port
    max_body: int = 4 << 20
    body_timeout: float = 30.0  # seconds for all of a body
    chunk_timeout: float = 10.0  # and for any piece of it
    heartbeat: float = 15.0  # seconds of silence before an event stream says that it lives
    stall_timeout: float = 60.0  # how long a stream waits for a client that does not read
    threads: int = 32
    limit: int = MAX_CONCURRENT_CALLS  # calls at the same time; more are sent away for a moment
    tools: bool = True  # the app's own tools, and what describes them
    page: bool = True  # the page for people, at /
    mounts: Mapping[str, AsgiApp] = {}  # other applications behind the same guard, by path

    def __repr__(self) -> str:
        """Without the tokens: what is shown is sooner or later logged."""
        requires_token = self.token is not None or bool(self.tokens)
        return f"Settings({'secured' if requires_token else 'open'}, max_body={self.max_body})"
