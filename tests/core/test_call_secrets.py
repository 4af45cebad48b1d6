"""Secrets are found in every kind of value."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel, Secret, SecretBytes, SecretStr

from tooli import SecretInput
from tooli.core.call_secrets import (
    ReceivedSecret,
    call_secrets,
    iter_secrets,
    record_secret,
    record_secrets,
)


class Model(BaseModel):
    key: SecretStr


@dataclass(frozen=True)
class Row:
    key: Any


@pytest.mark.parametrize(
    "value",
    [
        SecretStr("hunter22"),
        SecretInput("hunter22"),
        Secret("hunter22"),
        [SecretStr("hunter22")],
        {"a": (SecretStr("hunter22"),)},
        {SecretStr("hunter22")},
        deque([SecretStr("hunter22")]),
        Model(key=SecretStr("hunter22")),
        Row(Row(SecretInput("hunter22"))),
        SimpleNamespace(key=SecretStr("hunter22")),
    ],
)
def test_secret_is_found(value: object) -> None:
    assert [secret.reveal() for secret in iter_secrets(value, set())] == ["hunter22"]


def test_value_that_contains_itself_is_read_once() -> None:
    loop: list[Any] = [SecretBytes(b"hunter22"), "text", 1, None]
    loop.append(loop)
    assert [secret.reveal() for secret in iter_secrets(loop, set())] == [b"hunter22"]


def test_secrets_are_recorded_for_the_current_call() -> None:
    record_secrets(SecretStr("hunter22"))  # there is no call
    secrets: list[Any] = []
    token = call_secrets.set(secrets)
    try:
        secret = record_secret(SecretInput("hunter22"))
        record_secrets([secret, SecretStr("hunter33")])
    finally:
        call_secrets.reset(token)
    assert [secret.reveal() for secret in secrets] == ["hunter22", "hunter33"]


def test_received_secret_does_not_show_its_value() -> None:
    secret = ReceivedSecret("hunter22")
    secret.load()
    assert "hunter22" not in f"{secret} {secret!r}"
