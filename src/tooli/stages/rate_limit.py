"""Limit how often a caller may run a command on a server."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_network
from math import ceil

from tooli.errors import DependencyError, Suggestion, TemporaryError
from tooli.storage.rate_limiter import RateLimiter

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator

    from tooli.core.call import Call, Caller, Outcome, Stage
    from tooli.pipeline import StageContext

_limiter: RateLimiter | None = None


def limit_rate(context: StageContext) -> Stage | None:
    """Reject calls to a server that exceed a rate limit.

    Both the rate limit of the command and that of the settings apply. Rejected calls do not count.
    """
    if not context.caller.is_remote:
        return None
    limits = (context.tool.limits.rate_limit, context.state.security_settings.get("rate_limit"))
    rates = [rate for rate in dict.fromkeys(limits) if rate is not None]

    def check_rate(call: Call) -> Generator[Call, Outcome, Outcome]:
        limiter, caller_key = _get_limiter(), _caller_key(call.caller)
        wait, rate = limiter.hit(rates, caller_key, call.tool.id)
        if wait:
            raise _rate_limit_error(call, rate, wait)
        return (yield call)

    return check_rate


def _get_limiter() -> RateLimiter:
    global _limiter
    if _limiter is None:
        try:
            _limiter = RateLimiter()
        except ImportError:
            raise DependencyError(
                "A rate limit is set, but the package `limits` is not installed.",
                suggestion=Suggestion("fix", "Run: pip install 'tooli[http]'"),
            ) from None
    return _limiter


def _caller_key(caller: Caller) -> str:
    """Return the key that calls are counted under: the verified token, or the peer address."""
    if caller.principal is not None:
        return f"by token {caller.principal}"
    address = caller.address or "here"
    return _network_prefix(address) if ":" in address else address


def _network_prefix(address: str) -> str:
    """Return the /64 network of an IPv6 address, because a machine may use all its addresses.

    An IPv4 address that is mapped to IPv6 is returned as IPv4.
    """
    try:
        ipv6 = IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    if ipv6.ipv4_mapped is not None:  # from a dual-stack socket
        return str(ipv6.ipv4_mapped)
    return str(ip_network((ipv6, 64), strict=False))


def _rate_limit_error(call: Call, rate: str, wait: float) -> Exception:
    seconds = max(ceil(wait), 1)
    return TemporaryError(
        f"{call.tool.name} may be called {rate.replace('/', ' times a ')}. The limit is reached.",
        code="E4029",
        suggestion=Suggestion("retry_later", f"Wait {seconds} s, then call it again."),
        details={"retry_after": seconds, "rate_limit": rate},
    )
