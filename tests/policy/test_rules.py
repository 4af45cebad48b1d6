"""The table of security policies."""

from __future__ import annotations

from typing import Any

import pytest
from tests.stages.stage_calls import make_call

from tooli.annotations import Destructive
from tooli.policy.rules import RULES, RUN, find_verdict


@pytest.mark.parametrize(
    ("command", "codes"),
    [
        ({}, (None, None, None)),
        ({"annotations": Destructive}, (None, "E1010", "E1010")),
        ({"requires_approval": True}, ("E2101", "E2101", "E2101")),
        ({"danger_level": "critical"}, (None, None, "E2101")),
        ({"danger_level": "forbidden"}, ("E2000", "E2000", "E2000")),
        ({"human_in_the_loop": True}, ("E2101", "E2101", "E2101")),
    ],
)
def test_verdict_of_each_policy(command: dict[str, Any], codes: tuple[str | None, ...]) -> None:
    found = [
        find_verdict(make_call(policy=policy, **command), False).code
        for policy in ("off", "standard", "strict")
    ]
    assert tuple(found) == codes


@pytest.mark.parametrize("policy", ["off", "standard", "strict"])
def test_confirmed_destructive_call_runs(policy: str) -> None:
    call = make_call(policy=policy, annotations=Destructive, options={"yes": True})
    assert find_verdict(call, False) is RUN


def test_setting_requires_a_human_for_destructive_commands() -> None:
    confirmed = make_call(annotations=Destructive, options={"yes": True})
    assert find_verdict(confirmed, True).code == "E2101"
    assert find_verdict(make_call(), True) is RUN


def test_first_rule_that_rejects_decides() -> None:
    call = make_call(annotations=Destructive, requires_approval=True)
    assert find_verdict(call, False).code == "E2101"


def test_strict_never_asks_a_human() -> None:
    assert not any(rule.strict.asks_human for rule in RULES.values())


def test_every_rule_has_a_verdict_for_every_policy() -> None:
    for rule in RULES.values():
        assert rule.verdict_for("off") is rule.off
        assert rule.verdict_for("standard") is rule.standard
        assert rule.verdict_for("strict") is rule.strict
