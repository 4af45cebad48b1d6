"""Public enumerations."""

from __future__ import annotations

import json

import pytest

from tooli import ErrorCategory, SecurityPolicy, Tooli
from tooli.errors import CATEGORIES, StateError


@pytest.mark.parametrize("value", [SecurityPolicy.STRICT, "STRICT", "Strict", "strict"])
def test_security_policy_is_accepted_as_a_member_and_in_any_case(value) -> None:
    app = Tooli("app", security_policy=value)
    assert app._state.policy == app._state.declared_policy == "strict"
    assert type(app._state.policy) is str


def test_members_are_equal_to_their_values() -> None:
    assert SecurityPolicy("STRICT") is SecurityPolicy.STRICT
    assert SecurityPolicy.OFF == "off" == str(SecurityPolicy.OFF) == f"{SecurityPolicy.OFF}"
    assert json.dumps(ErrorCategory.HUMAN) == '"human"'
    with pytest.raises(ValueError, match="loose"):
        SecurityPolicy("loose")


def test_every_category_is_a_member() -> None:
    assert {member.value for member in ErrorCategory} == {*CATEGORIES}


@pytest.mark.parametrize("value", [ErrorCategory.STATE, "STATE", "state"])
def test_category_of_an_error_class(value) -> None:
    class Locked(StateError):
        category = value

    assert Locked("x").to_dict()["category"] == "state"
    assert type(Locked.category) is str
