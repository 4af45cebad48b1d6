"""Collect the secrets of a call, so that they can be redacted from every output."""

from __future__ import annotations

from tooli.inputs.secret import SecretInput, call_secrets

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator

    from tooli.core.call import Call, Outcome


def track_secrets(call: Call) -> Generator[Call, Outcome, Outcome]:
    """Collect the secrets of a call, even if an inner stage rejects it.

    `pipeline/present.py` redacts them from all output of the call.
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
