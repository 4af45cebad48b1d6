"""How often a caller may run a command, on doors that many come through."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from tooli.call.model import Call, Caller, Outcome, Stage
    from tooli.state.rates import Limiter

_limiter: Limiter | None = None


def limit_rate(rates: Sequence[str]) -> Stage:
    """Refuse a call that is one too many, by any of these rates; the refused ones do not count."""

    def stage(call: Call) -> Generator[Call, Outcome, Outcome]:
        limiter, who = _find_limiter(), _name(call.caller)
        wait, rate = limiter.hit(rates, who, call.tool.id)
        if wait:
            raise _too_many(call, rate, wait)
        return (yield call)

    return stage


def _find_limiter() -> Limiter:
    global _limiter
    if _limiter is None:
        from tooli.state.rates import Limiter

        try:
            _limiter = Limiter()
        except ImportError:
            from tooli.errors import DependencyError, Suggestion

            raise DependencyError(
                "A rate limit is set, and `limits` is not installed.",
                suggestion=Suggestion("fix", "Run: pip install 'tooli[http]'"),
            ) from None
    return _limiter


def _name(caller: Caller) -> str:
    """Whom a call is counted for: by the token, else by the address, never by a word of theirs."""
    if caller.principal is not None:
        return f"by token {caller.principal}"
    address = caller.address or "here"
    return _network(address) if ":" in address else address


def _network(address: str) -> str:
    """Where IPv6 comes from: one machine has as many of these as it likes, in one network."""
    from ipaddress import IPv6Address, ip_network

    try:
        given = IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    if given.ipv4_mapped is not None:  # a socket for both says it so
        return str(given.ipv4_mapped)
    return str(ip_network((given, 64), strict=False))


def _too_many(call: Call, rate: str, wait: float) -> Exception:
    from math import ceil

    from tooli.errors import Suggestion, TemporaryError

    seconds = max(ceil(wait), 1)
    return TemporaryError(
        f"{call.tool.name} may be called {rate.replace('/', ' times a ')}, and has been.",
        code="E4029",
        suggestion=Suggestion("retry_later", f"Wait {seconds} s, then call it again."),
        details={"retry_after": seconds, "rate_limit": rate},
    )
