"""SessionState: values by name, their limits, and changes that would be lost."""

from __future__ import annotations

from typing import Any

import pytest

from tooli.core.session_state import MAX_SESSION_KEYS, SessionState
from tooli.errors import InternalError, StateError


def test_it_is_a_mapping_of_the_data() -> None:
    data: dict[str, Any] = {}
    state = SessionState(data, is_kept=True)
    state["a"] = 1
    state.update(b=2)
    assert state.setdefault("a", 9) == 1
    assert state.setdefault("c", []) is data["c"]
    assert (state.get("z"), state.get("z", 4), "a" in state, 3 in state) == (None, 4, True, False)
    assert dict(state) == data == {"a": 1, "b": 2, "c": []}
    assert state.pop("a") == 1
    assert state.pop("a", None) is None
    with pytest.raises(KeyError):
        state.pop("a")
    with pytest.raises(KeyError):
        state["a"]
    del state["b"]
    state.clear()
    assert (data, len(state)) == ({}, 0)


def test_it_can_change_while_it_is_read() -> None:
    state = SessionState({"a": 1, "b": 2}, is_kept=True)
    for key in state:
        del state[key]
    assert not state


def test_its_repr_shows_no_values() -> None:
    assert "hunter2" not in repr(SessionState({"password": "hunter2"}, is_kept=True))


def test_the_number_of_values_is_limited() -> None:
    state = SessionState({str(i): i for i in range(MAX_SESSION_KEYS)}, is_kept=True)
    state["0"] = "changed"
    assert state.setdefault("0") == "changed"
    for add in (lambda: state.update(more=1), lambda: state.setdefault("more", 1)):
        with pytest.raises(StateError, match="which is the limit"):
            add()
    del state["0"]
    state["more"] = 1


def test_a_key_must_be_a_string() -> None:
    state: Any = SessionState({}, is_kept=True)
    with pytest.raises(InternalError, match="must be a str, not int"):
        state[1] = 2


def test_a_change_in_a_process_that_ends_is_refused() -> None:
    state = SessionState({"a": 1}, is_kept=True, is_copy=True)
    changes = (
        lambda: state.update(a=2),
        lambda: state.setdefault("b", 2),
        lambda: state.pop("a"),
        lambda: state.clear(),
        lambda: state.__delitem__("a"),
    )
    for change in changes:
        with pytest.raises(InternalError, match="would be lost"):
            change()
    assert dict(state) == {"a": 1}
    assert state.setdefault("a") == 1
    call_state = SessionState({}, is_kept=False, is_copy=True)
    call_state["a"] = 1  # nobody reads it after the call
    assert call_state["a"] == 1
