"""Guard: who may talk to the door at all. What they may run is decided by the stages.

Host     only names of this server: a page whose name was turned to our address stays out
Origin   only the door's own page, and those that were allowed
Bearer   a token: one of the door's own, compared so that the time it takes tells nothing, or one
         that the settings verify
"""

from __future__ import annotations

import sys
from hmac import compare_digest

from tooli.errors import AuthError, DefinitionError, InputError, Suggestion, TemporaryError
from tooli.surfaces.http.exchange import Refused
from tooli.surfaces.listening import LOOPBACK

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tooli.config.identity import Verifier
    from tooli.surfaces.http.exchange import Exchange
    from tooli.surfaces.http.settings import Settings

_EXPOSED = b"retry-after, www-authenticate, preference-applied"
_KNOWN_HOSTS = 256
_NAME_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789.-_")


class Guard:
    """Stands before everything that is served."""

    def __init__(self, settings: Settings, verifier: Verifier | None = None) -> None:
        if verifier is not None:
            verifier.check()
        hosts = LOOPBACK if settings.allowed_hosts is None else settings.allowed_hosts
        self._hosts = frozenset(_words("allowed_hosts", hosts))
        self._origins = frozenset(
            word.rstrip("/") for word in _words("allowed_origins", settings.allowed_origins)
        )
        self._any_address = settings.any_address
        self._welcome: set[bytes] = set()  # Hosts that were looked at and are ours
        self._tokens = _tokens_of(settings)
        self._verifier = verifier
        self.secured = bool(self._tokens) or verifier is not None  # whether a token is needed

    def admit(self, exchange: Exchange) -> None:
        """Let a request of a known host and origin pass; refuse any other."""
        exchange.read_headers()
        host = exchange.headers.get(b"host")
        if host is None:
            raise Refused(InputError("The request names no Host.", code="E1400"))
        if host not in self._welcome:
            self._look_at(host)
        origin = exchange.headers.get(b"origin")
        if origin is not None:
            self._check_origin(exchange, origin, host)
        elif exchange.method not in ("GET", "HEAD"):
            site = exchange.headers.get(b"sec-fetch-site")
            if site is not None and site not in (b"same-origin", b"none"):
                raise _foreign("another site")

    # -------------------------------------------------------------- hosts and origins

    def _look_at(self, host: bytes) -> None:
        name, port = _split_host(host)
        suffixes = [entry[1:] for entry in self._hosts if entry.startswith("*.")]
        ours = (
            "*" in self._hosts
            or name in self._hosts
            or f"{name}:{port}" in self._hosts
            or any([name.endswith(suffix) for suffix in suffixes])
            or (self._any_address and _is_address(name))
        )
        if not name or not ours:
            raise Refused(
                InputError(
                    "This server does not answer to the Host of the request.",
                    code="E1421",
                    is_retryable=False,
                    suggestion=Suggestion(
                        "ask_human", "Whoever runs the server can allow the host's name."
                    ),
                )
            )
        if len(self._welcome) < _KNOWN_HOSTS:
            self._welcome.add(host)

    def _check_origin(self, exchange: Exchange, origin: bytes, host: bytes) -> None:
        said = origin.decode("latin-1").lower()
        if said.partition("://")[2] == host.decode("latin-1").lower():
            return  # the page came from here, and the Host is known to be ours
        any_port = f"{said.rpartition(':')[0] if said.count(':') > 1 else said}:*"
        if self._origins.isdisjoint((said, any_port, "*")):
            raise _foreign("that origin")
        exchange.extra = (
            (b"access-control-allow-origin", origin),
            (b"access-control-expose-headers", _EXPOSED),
            (b"vary", b"origin"),
        )

    # -------------------------------------------------------------- tokens

    def identify(self, exchange: Exchange) -> None:
        """Learn who calls and which scopes they hold; refuse who brings no valid token."""
        if not self.secured:
            return
        given = exchange.headers.get(b"authorization", b"")
        kind, _, token = given.partition(b" ")
        token = token.strip()
        found = False
        if kind.lower() == b"bearer" and token:
            for known, scopes, principal in self._tokens:
                if compare_digest(known, token):  # all are compared, whichever it is
                    found = True
                    exchange.scopes, exchange.principal = scopes, principal
        if not found and self._verifier is not None and kind.lower() == b"bearer" and token:
            self._verify(exchange, self._verifier, token)
        elif not found:
            raise _unknown_token(given != b"")

    def _verify(self, exchange: Exchange, verifier: Verifier, token: bytes) -> None:
        try:
            identity = verifier.identify(token)
        except AuthError as error:
            raise Refused(error, _challenge("invalid_token")) from None
        except InputError as broken:  # a file has changed for the worse: the owner's to mend
            print(broken.message, file=sys.stderr, flush=True)
            wait = Suggestion("ask_human", "Whoever runs the server finds the reason in its log.")
            said = "Tokens cannot be verified at the moment."
            raise Refused(TemporaryError(said, suggestion=wait)) from None
        if identity.principal in [principal for *_, principal in self._tokens]:
            raise _unknown_token(True)  # a name that is one of the door's own tokens
        exchange.scopes, exchange.principal = identity.scopes, identity.principal


def _words(name: str, said: Iterable[str]) -> list[str]:
    if isinstance(said, str):
        raise DefinitionError(f"{name}={said!r}: give a list of names")
    return [word.lower().strip() for word in said]


def _tokens_of(settings: Settings) -> list[tuple[bytes, frozenset[str] | None, str | None]]:
    """The door's own tokens: the letters, the scopes, and whom each of them names.

    The one `token` opens the door for all who share it, and names nobody.
    """
    said = dict(settings.tokens or {})
    if settings.token is not None:
        said[settings.token] = settings.scopes
    elif settings.scopes is not None:
        raise DefinitionError("scopes=… say what the token allows: give token=…, too")
    tokens: list[tuple[bytes, frozenset[str] | None, str | None]] = []
    for token, scopes in said.items():
        if not token or not token.isascii() or not token.isprintable() or " " in token:
            raise DefinitionError("a token is one word of ASCII letters, and not empty")
        if isinstance(scopes, str):
            raise DefinitionError("the scopes of a token are a list")
        letters = token.encode("ascii")
        principal = _name(letters) if token != settings.token else None
        tokens.append((letters, None if scopes is None else frozenset(scopes), principal))
    return tokens


def _name(token: bytes) -> str:
    """What the holder of a token is called; the same in every worker, and after a restart."""
    from hashlib import sha256

    return f"token:{sha256(token).hexdigest()[:16]}"


def _split_host(host: bytes) -> tuple[str, str]:
    """The name and the port; an empty name where it is none."""
    text = host.decode("latin-1").lower()
    if text[:1] == "[":
        name, bracket, rest = text[1:].partition("]")
        fits = bracket and (not rest or rest[0] == ":") and set(name) <= set("0123456789abcdef:.")
        port = rest[1:]
    else:
        name, _, port = text.partition(":")
        fits = _NAME_LETTERS.issuperset(name)
        name = name.removesuffix(".")
    if not fits or (port and not (port.isascii() and port.isdecimal())):
        return "", ""
    return name, port


def _is_address(name: str) -> bool:
    from ipaddress import ip_address

    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _foreign(who: str) -> Refused:
    return Refused(
        AuthError(
            f"Pages of {who} may not call this server.",
            code="E2403",
            suggestion=Suggestion("ask_human", "Whoever runs the server can allow the origin."),
        )
    )


def _unknown_token(given: bool) -> Refused:
    return Refused(
        AuthError(
            "The token is not valid." if given else "A token is needed.",
            code="E2401",
            suggestion=Suggestion("ask_human", "Send the header 'Authorization: Bearer TOKEN'."),
        ),
        _challenge("invalid_token" if given else ""),
    )


def _challenge(error: str) -> tuple[bytes, bytes]:
    said = 'Bearer realm="tooli"' + (f', error="{error}"' if error else "")
    return b"www-authenticate", said.encode()
