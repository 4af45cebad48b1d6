"""Call, Caller, Outcome and the profiles of callers."""

from __future__ import annotations

import asyncio
import pickle

import pytest

from tooli import Tooli
from tooli.core.call import (
    AGENT_TIMEOUT,
    CALLER_PROFILES,
    DEFAULT_OPTIONS,
    PYTHON_CALLER,
    Call,
    Caller,
    CallerProfile,
    Failed,
    Ok,
    Options,
    RedactionPolicy,
    Runner,
)
from tooli.core.tool import Tool
from tooli.errors import InputError

SURFACES = ("cli", "python", "mcp", "http")


def make_tool() -> Tool:
    app = Tooli("shop")

    @app.command()
    def buy(item: str) -> str:
        return item

    tool = app.find("buy")
    assert tool is not None
    return tool


@pytest.mark.parametrize(
    ("name", "surfaces"),
    [
        ("owns_process", {"cli"}),
        ("can_prompt", {"cli"}),
        ("is_remote", {"mcp", "http"}),
        ("is_in_process", {"python"}),
        ("gets_printed_text", {"cli", "mcp", "http"}),
        ("uses_environment_token", {"cli", "mcp"}),
    ],
)
def test_caller_properties_depend_on_the_surface(name: str, surfaces: set[str]) -> None:
    assert {surface for surface in SURFACES if getattr(Caller(surface), name)} == surfaces


def test_client_with_an_address_does_not_use_the_token_of_the_environment() -> None:
    assert not Caller("mcp", address="127.0.0.1").uses_environment_token


def test_caller_is_not_privileged_by_default() -> None:
    caller = Caller("http")
    assert (caller.scopes, caller.principal, caller.maybe_agent) == (frozenset(), None, False)


def test_caller_can_be_pickled() -> None:
    caller = Caller("mcp", name="client", scopes=frozenset({"read"}))
    assert pickle.loads(pickle.dumps(caller)) == caller


def test_profiles_change_output_of_agents_and_ci_only() -> None:
    changed = {name for name, profile in CALLER_PROFILES.items() if profile != CallerProfile()}
    assert changed == {"ai_agent", "ci_cd"}


def test_only_agents_have_a_default_timeout_and_auto_confirm() -> None:
    agent = CALLER_PROFILES["ai_agent"]
    assert (agent.timeout, agent.confirm) == (AGENT_TIMEOUT, "agree")
    others = [profile for name, profile in CALLER_PROFILES.items() if name != "ai_agent"]
    assert {(profile.timeout, profile.confirm) for profile in others} == {(None, "ask")}


def test_defaults_of_a_call() -> None:
    call = Call(make_tool(), {"item": "tea"}, PYTHON_CALLER, [])
    assert call.options == DEFAULT_OPTIONS == Options()
    assert (call.policy, call.approved, call.problems, call.claims) == ("standard", False, (), ())
    assert (call.meta, call.secrets, call.runner, call.peer) == (None, None, None, None)


def test_replaced_call_shares_its_warnings() -> None:
    call = Call(make_tool(), {}, PYTHON_CALLER, [])
    changed = call.replace(policy="strict", options=Options(yes=True))
    changed.warnings.append("late")
    assert call.warnings == ["late"]
    assert (call.policy, call.options.yes) == ("standard", False)


def test_call_is_read_only() -> None:
    call = Call(make_tool(), {}, PYTHON_CALLER, [])
    with pytest.raises(AttributeError, match="frozen"):
        call.approved = True  # type: ignore[misc]


def test_unknown_option_is_rejected() -> None:
    with pytest.raises(TypeError):
        Options(force=True)  # type: ignore[call-arg]


def test_outcomes_are_compared_by_value() -> None:
    error = InputError("wrong")
    assert Ok([1]) == Ok([1]) != Ok([2])
    assert Failed(error) != Ok(error)
    assert Failed(error).has_started
    assert Failed(error) != Failed(error, has_started=False)


def test_defaults_of_a_redaction_policy() -> None:
    policy = RedactionPolicy()
    assert (policy.policy, policy.secrets, policy.caller) == ("standard", None, PYTHON_CALLER)


def test_runner_must_implement_run_and_arun() -> None:
    inner = Runner()
    outer = Runner(inner)
    call = Call(make_tool(), {}, PYTHON_CALLER, [])
    assert (outer.inner, inner.inner, outer.needs_own_process) == (inner, None, False)
    with pytest.raises(NotImplementedError):
        outer.run(call)
    with pytest.raises(NotImplementedError):
        asyncio.run(outer.arun(call))
