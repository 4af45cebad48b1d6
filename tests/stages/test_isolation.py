"""The stage `isolation`. The kernel features are simulated; tests/execution uses the real ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.providers.provided import ToolList
from tests.stages.stage_calls import make_call, make_context, pass_through

from tooli import ToolError, Tooli
from tooli.annotations import ReadOnly
from tooli.core.call import Ok
from tooli.core.declared_capabilities import AllowedAccess
from tooli.execution.sandbox.sandbox_runner import SandboxRunner, SandboxSupport
from tooli.execution.sandbox.syscalls import SandboxUnavailable
from tooli.policy.allowed_access import resolve_allowed_access
from tooli.providers import described_tool
from tooli.stages import isolation
from tooli.stages.isolation import isolate

COMPLETE = SandboxSupport(landlock=4, seccomp=True)
PARTIAL = SandboxSupport(seccomp=True, missing=("no Landlock",))
NOTHING = SandboxSupport(missing=("no Landlock", "no seccomp"))


@pytest.fixture(autouse=True)
def _temp_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(isolation, "find_bubblewrap", lambda: None)
    monkeypatch.setattr(isolation, "detect_architecture", lambda: "x86_64")


def set_support(monkeypatch: pytest.MonkeyPatch, found: SandboxSupport) -> None:
    monkeypatch.setattr(isolation, "detect_sandbox_support", lambda: found)


def run_stage(mode: str = "required", **settings: Any) -> Any:
    call = make_call()
    stage = isolate(make_context(call, isolation=mode, **settings))
    assert stage is not None
    return call, pass_through(stage, call)[0]


def test_no_stage_without_isolation() -> None:
    assert isolate(make_context(make_call(), isolation="off")) is None


def test_setting_turns_isolation_on() -> None:
    assert isolate(make_context(make_call(), isolation="wanted")) is not None


def test_complete_support_runs_the_call_in_a_sandbox(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    set_support(monkeypatch, COMPLETE)
    call, passed = run_stage()
    assert isinstance(passed.runner, SandboxRunner)
    assert call.warnings == []
    assert list(tmp_path.iterdir()) == [], "the folder for temporary files is removed"


def test_required_but_unavailable_sandbox_fails_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    set_support(monkeypatch, NOTHING)
    with pytest.raises(ToolError, match="no Landlock"):
        run_stage()


def test_wanted_but_unavailable_sandbox_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    set_support(monkeypatch, NOTHING)
    call, passed = run_stage("wanted")
    assert passed is call
    assert call.warnings == [
        "not isolated: no Landlock; no seccomp; bubblewrap (bwrap) is not installed"
    ]


def test_wanted_and_partly_available_sandbox_is_used_with_a_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    set_support(monkeypatch, PARTIAL)
    call, passed = run_stage("wanted")
    assert isinstance(passed.runner, SandboxRunner)
    assert len(call.warnings) == 1


def test_nested_sandbox_does_not_use_bubblewrap(monkeypatch: pytest.MonkeyPatch) -> None:
    set_support(monkeypatch, PARTIAL.replace(is_nested=True))
    monkeypatch.setattr(isolation, "find_bubblewrap", lambda: pytest.fail("not expected"))
    call, passed = run_stage("wanted")
    assert passed is call
    assert call.warnings == ["not isolated: no Landlock"]


def test_bubblewrap_replaces_landlock(monkeypatch: pytest.MonkeyPatch) -> None:
    set_support(monkeypatch, PARTIAL)
    runners: list[Any] = []
    monkeypatch.setattr(isolation, "find_bubblewrap", lambda: "/usr/bin/bwrap")
    monkeypatch.setattr(isolation, "locate_app", lambda state, tool: "entry")
    monkeypatch.setattr(
        isolation, "BubblewrapRunner", lambda *parts: runners.append(parts) or parts
    )
    call, passed = run_stage()
    assert passed.runner is runners[0]
    program, entry, sandbox, filters = runners[0]
    assert (program, entry, filters) == ("/usr/bin/bwrap", "entry", True)
    assert isinstance(sandbox, SandboxRunner)
    assert call.warnings == []


@pytest.mark.parametrize("reason", ["plans need Landlock", "no Landlock"])
def test_warning_gives_the_reason_against_bubblewrap_once(
    reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(state: object, tool: object) -> None:
        raise SandboxUnavailable(reason)

    set_support(monkeypatch, PARTIAL)
    monkeypatch.setattr(isolation, "find_bubblewrap", lambda: "/usr/bin/bwrap")
    monkeypatch.setattr(isolation, "locate_app", fail)
    call, _ = run_stage("wanted")
    assert call.warnings[0].count(reason) == 1, "a reason is given once"


def test_settings_are_read_before_the_sandbox_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    set_support(monkeypatch, COMPLETE)
    resolved: list[Any] = []
    monkeypatch.setattr(isolation, "load_security_settings", resolved.append)
    call = make_call(isolation="required")
    context = make_context(call)
    context.state.security_settings_loaded = False
    stage = isolate(context)
    assert stage is not None
    pass_through(stage, call)
    assert resolved == [context.state]


class TestAllowedAccess:
    def test_no_access_without_capabilities(self) -> None:
        call = make_call()
        assert (
            resolve_allowed_access(call.tool, make_context(call).state, AllowedAccess())
            == AllowedAccess()
        )

    def test_settings_restrict_capabilities(self, tmp_path: Path) -> None:
        call = make_call(capabilities=[f"fs:write:{tmp_path}"])
        state = make_context(call, deny_paths=(str(tmp_path / "secret"),)).state
        access = resolve_allowed_access(call.tool, state, AllowedAccess())
        assert access.denied == (str(tmp_path / "secret"),)


def test_folder_is_removed_after_the_process_has_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The stage may run on an event loop, which the removal of many files would block."""
    set_support(monkeypatch, COMPLETE)
    stage = isolate(make_context(make_call(), isolation="required"))
    assert stage is not None
    run = stage(make_call())
    runner = next(run).runner
    assert runner is not None
    runner.process_started()
    with pytest.raises(StopIteration):
        run.send(Ok(None))
    assert len(list(tmp_path.iterdir())) == 1
    runner.process_ended()
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------ tools that run elsewhere


@pytest.mark.parametrize(("isolation", "is_refused"), [("required", True), ("wanted", False)])
def test_tool_that_runs_elsewhere_is_not_confined(isolation: str, is_refused: bool) -> None:
    app = Tooli("app")
    tool = described_tool("get", dict, annotations=ReadOnly, stops_itself=True)
    app.add_provider(ToolList(tool))
    app._state.security_settings["isolation"] = isolation
    app._state.security_settings_loaded = True
    result = app.call("get")
    if is_refused:
        assert result.error is not None
        assert result.error.code == "E2006"
        assert "runs in another process or on another machine" in result.error.message
    else:
        assert result.unwrap() == {}
        assert "not isolated" in result.meta["warnings"][0]
