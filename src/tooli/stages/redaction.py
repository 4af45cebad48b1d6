"""Secrets are noted as they enter: whoever writes the answer takes them out of it."""

from __future__ import annotations

from tooli.inputs.secret import SecretInput, noted

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator

    from tooli.call.model import Call, Outcome


def note_secrets(call: Call) -> Generator[Call, Outcome, Outcome]:
    """Note every secret that a call is given, also where the call is refused for something else.

    It stands around all others. What is told of the call is told by its door, and by no stage:
    there the secrets are taken out (`call/cleaning.py`).
    """
    kept = call.secrets
    if kept is None:
        return (yield call)
    for param in call.tool.params:
        if isinstance(param.default, SecretInput):
            kept.append(param.default)  # pyright: ignore[reportUnknownMemberType]
    before = noted.get()
    noted.set(kept)
    try:
        return (yield call)
    finally:
        noted.set(before)
