"""The quota of stored outcomes: keys and bytes per caller, within the retention time."""

from __future__ import annotations

import pytest

from tooli.storage import outcome_quota
from tooli.storage.idempotency_store import RETENTION_SECONDS
from tooli.storage.outcome_quota import OutcomeQuota


def test_bytes_and_keys_of_a_caller_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1e6]
    monkeypatch.setattr(outcome_quota, "monotonic", lambda: clock[0])
    monkeypatch.setattr(outcome_quota, "MAX_BYTES_PER_CALLER", 100)
    monkeypatch.setattr(outcome_quota, "MAX_KEYS_PER_CALLER", 4)
    quota = OutcomeQuota()
    assert [quota.count("a", 60), quota.count("a", 60), quota.count("a", 40)] == [True, False, True]
    assert quota.count("b", 60)
    assert quota.has_key_left("a")
    quota.count("a", 0)
    assert not quota.has_key_left("a")
    assert quota.has_key_left("b")
    clock[0] += RETENTION_SECONDS + 3600
    assert quota.has_key_left("a")
    assert quota.count("a", 100)
