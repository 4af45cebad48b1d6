"""How often a caller may run a command, on doors that many come through."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from tooli.core.call import Call, Caller, Outcome, Stage
    from tooli.storage.rate_limiter import RateLimiter

_limiter: RateLimiter | None = None


def limit_rate(rates: Sequence[str]) -> Stage:
    """Refuse a call that is one too many, by any of these rates; the refused ones do not count."""

    def stage(call: Call) -> Generator[Call, Outcome, Outcome]:
        limiter, caller_key = _get_limiter(), _caller_key(call.caller)
        wait, rate = limiter.hit(rates, caller_key, call.tool.id)
        if wait:
            raise _rate_limit_error(call, rate, wait)
        return (yield call)

    return stage


def _get_limiter() -> RateLimiter:
    global _limiter
    if _limiter is None:
        from tooli.storage.rate_limiter import RateLimiter

        try:
            _limiter = RateLimiter()
        except ImportError:
            from tooli.errors import DependencyError, Suggestion

            raise DependencyError(
                "A rate limit is set, and `limits` is not installed.",
                suggestion=Suggestion("fix", "Run: pip install 'tooli[http]'"),
            ) from None
    return _limiter


def _caller_key(caller: Caller) -> str:
    """Whom a call is counted for: by the token, else by the address, never by a word of theirs."""
    if caller.principal is not None:
        return f"by token {caller.principal}"
    address = caller.address or "here"
    return _network_prefix(address) if ":" in address else address


def _network_prefix(address: str) -> str:
    """Where IPv6 comes from: one machine has as many of these as it likes, in one network."""
    from ipaddress import IPv6Address, ip_network

    try:
        ipv6 = IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    if ipv6.ipv4_mapped is not None:  # a socket for both says it so
        return str(ipv6.ipv4_mapped)
    return str(ip_network((ipv6, 64), strict=False))


def _rate_limit_error(call: Call, rate: str, wait: float) -> Exception:
    from math import ceil

    from tooli.errors import Suggestion, TemporaryError

    seconds = max(ceil(wait), 1)
    return TemporaryError(
        f"{call.tool.name} may be called {rate.replace('/', ' times a ')}, and has been.",
        code="E4029",
        suggestion=Suggestion("retry_later", f"Wait {seconds} s, then call it again."),
        details={"retry_after": seconds, "rate_limit": rate},
    )
