"""The stage `capabilities`. tests/execution tests the monitor itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.stages.stage_calls import make_call, make_context, pass_through

from tooli import AuthError, ToolError
from tooli.core.call import Call, Failed, Ok
from tooli.execution.monitor.audit_hook import Violation
from tooli.execution.monitor.monitored_runner import (
    RECORDED_KEY,
    VIOLATIONS_KEY,
    MonitoredRunner,
    RecordingRunner,
)
from tooli.stages import capabilities
from tooli.stages.capabilities import enforce_capabilities

if TYPE_CHECKING:
    from tooli.core.call import Outcome


@pytest.fixture(autouse=True)
def logged(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    events: list[Any] = []
    monkeypatch.setattr(
        capabilities,
        "log_event",
        lambda event, call, description, **fields: events.append((event, fields)),
    )
    return events


def run_stage(
    call: Call, *violations: Violation, outcome: Outcome | None = None, **settings: Any
) -> tuple[Call, Outcome]:
    """Run the stage for a function that commits these violations."""
    assert call.meta is not None
    if violations:
        call.meta[VIOLATIONS_KEY] = [
            (violation.capability, violation.target, violation.code) for violation in violations
        ]
    return pass_through(enforce_capabilities(make_context(call, **settings)), call, outcome)


UNDECLARED = Violation("net", "example.org:443", "E2003")
OUTSIDE = Violation("fs:write", "/etc/x", "E2005")


def test_call_without_restrictions_is_unchanged() -> None:
    call = make_call()
    passed, outcome = run_stage(call, outcome=Ok(1))
    assert passed is call
    assert outcome == Ok(1)
    assert call.meta == {}


@pytest.mark.parametrize("policy", ["standard", "strict"])
def test_declared_capabilities_are_monitored(policy: str) -> None:
    call = make_call(policy=policy, capabilities=["net:read"])
    passed, _ = run_stage(call)
    assert isinstance(passed.runner, MonitoredRunner)
    assert passed.runner.monitor.is_blocking is (policy == "strict")
    assert call.meta == {"enforcement": "audit"}


def test_policy_off_does_not_monitor() -> None:
    call = make_call(policy="off", capabilities=["net:read"])
    passed, _ = run_stage(call)
    assert passed is call
    assert call.meta == {"enforcement": "none"}


def test_path_settings_are_enforced_under_every_policy(tmp_path: Path) -> None:
    call = make_call(policy="off")
    passed, _ = run_stage(call, deny_paths=(str(tmp_path),))
    assert isinstance(passed.runner, MonitoredRunner)
    assert call.meta == {"enforcement": "audit"}


def test_call_without_metadata_is_monitored(tmp_path: Path) -> None:
    call = make_call(capabilities=["net:read"]).replace(meta=None)
    passed, outcome = pass_through(enforce_capabilities(make_context(call)), call, Ok(1))
    assert isinstance(passed.runner, MonitoredRunner)
    assert outcome == Ok(1)


def test_undeclared_access_is_only_logged_under_standard(logged: list[Any]) -> None:
    call = make_call(capabilities=["fs:read"])
    assert run_stage(call, UNDECLARED, outcome=Ok(1))[1] == Ok(1)
    assert logged == [
        ("violation", {"capability": "net", "target": "example.org:443", "code": "E2003"})
    ]


def test_undeclared_access_fails_under_strict() -> None:
    call = make_call(policy="strict", auth=[], capabilities=["fs:read"])
    outcome = run_stage(call, UNDECLARED, outcome=Ok(1))[1]
    assert isinstance(outcome, Failed)
    assert outcome.error.code == "E2003"
    assert outcome.error.__cause__ is None


def test_path_outside_the_settings_fails_under_every_policy(tmp_path: Path) -> None:
    cause = ToolError("the function failed")
    outcome = run_stage(
        make_call(), OUTSIDE, outcome=Failed(cause), allow_paths=((str(tmp_path),),)
    )[1]
    assert isinstance(outcome, Failed)
    assert outcome.error.code == "E2005"
    assert outcome.error.__cause__ is cause


def test_failure_of_the_monitor_is_returned_unchanged(tmp_path: Path) -> None:
    failed = Failed(AuthError("denied", code="E2005"))
    assert run_stage(make_call(), OUTSIDE, outcome=failed, deny_paths=(str(tmp_path),))[1] is failed


def test_actions_are_recorded(tmp_path: Path, logged: list[Any]) -> None:
    file = tmp_path / "record.jsonl"
    call = make_call()
    assert call.meta is not None
    call.meta[RECORDED_KEY] = [["net", "example.org:443", "E2003"]]
    passed, outcome = run_stage(call, outcome=Ok(1), record_capabilities=str(file))
    assert isinstance(passed.runner, RecordingRunner)
    assert outcome == Ok(1)
    assert json.loads(file.read_text())["uses"] == [["net", "example.org:443"]]
    assert logged == []
    assert RECORDED_KEY not in call.meta


def test_forged_record_is_removed_from_the_metadata(tmp_path: Path) -> None:
    """A sandboxed process can send recorded actions of a call that is only monitored."""
    call = make_call()
    assert call.meta is not None
    call.meta[RECORDED_KEY] = [["net", "example.org:443", "E2003"]]
    run_stage(call, outcome=Ok(1), allow_paths=((str(tmp_path),),))
    assert call.meta == {"enforcement": "audit"}


@pytest.mark.parametrize(("count", "not_logged"), [(1, None), (20, None), (21, 1), (1000, 980)])
def test_number_of_logged_violations_is_limited(
    logged: list[Any], count: int, not_logged: int | None
) -> None:
    violations = [Violation("net", f"h{number}:1", "E2003") for number in range(count)]
    call = make_call(policy="strict", capabilities=["fs:read"])
    _, outcome = run_stage(call, *violations, outcome=Ok(1))
    assert isinstance(outcome, Failed)
    fields = [fields for _, fields in logged]
    assert [field["target"] for field in fields] == [v.target for v in violations[:20]]
    assert fields[-1].get("not_logged") == not_logged
    assert not any("not_logged" in field for field in fields[:-1])
