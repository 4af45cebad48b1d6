"""Time limits in seconds, as numbers and as texts."""

from __future__ import annotations

import pytest

from tooli.core.timeout_values import MAX_TIMEOUT_SECONDS, parse_timeout


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (5, 5.0),
        (0.5, 0.5),
        ("5", 5.0),
        ("0.5", 0.5),
        (MAX_TIMEOUT_SECONDS, MAX_TIMEOUT_SECONDS),
        (MAX_TIMEOUT_SECONDS + 1, None),
        (0, None),
        (-1, None),
        (True, None),
        (None, None),
        (float("nan"), None),
        (float("inf"), None),
        ("", None),
        (".", None),
        ("-1", None),
        ("1e3", None),
        ("1_0", None),
        ("1.2.3", None),
        ("٣", None),
        ("1" * 16, None),
    ],
)
def test_parse_timeout(value: object, seconds: float | None) -> None:
    assert parse_timeout(value) == seconds
