"""Secrets are noted as they enter: whoever writes the answer takes them out of it."""

from __future__ import annotations

from tooli.inputs.secret import SecretInput, call_secrets

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator

    from tooli.core.call import Call, Outcome


def track_secrets(call: Call) -> Generator[Call, Outcome, Outcome]:
    """Note every secret that a call is given, also where the call is refused for something else.

    It stands around all others. What is told of the call is told by its door, and by no stage:
    there the secrets are taken out (`text/redact.py`).
    """
    secrets = call.secrets
    if secrets is None:
        return (yield call)
    for param in call.tool.params:
        if isinstance(param.default, SecretInput):
            secrets.append(param.default)  # pyright: ignore[reportUnknownMemberType]
    previous = call_secrets.get()
    call_secrets.set(secrets)
    try:
        return (yield call)
    finally:
        call_secrets.set(previous)
