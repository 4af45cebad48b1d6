"""The stage `timeout`."""

from __future__ import annotations

import pytest
from tests.stages.stage_calls import make_call, make_context, pass_through

from tooli import AuthError
from tooli.core.call import Runner
from tooli.execution.process_runner import ProcessRunner
from tooli.stages import timeout
from tooli.stages.timeout import enforce_timeout


class SandboxedRunner(Runner):
    needs_own_process = True


def test_call_without_a_timeout_is_not_changed() -> None:
    call = make_call()
    assert pass_through(enforce_timeout(make_context(call)), call)[0] is call


def test_timeout_runs_the_call_in_a_process() -> None:
    call = make_call(timeout=3)
    passed, _ = pass_through(enforce_timeout(make_context(call)), call)
    assert isinstance(passed.runner, ProcessRunner)


def test_sandboxed_call_without_a_timeout_runs_in_a_process() -> None:
    call = make_call().replace(runner=SandboxedRunner())
    passed, _ = pass_through(enforce_timeout(make_context(call)), call)
    assert isinstance(passed.runner, ProcessRunner)
    assert passed.runner.inner is call.runner


class TestWithoutFork:
    @pytest.fixture(autouse=True)
    def _no_fork(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(timeout, "can_fork", lambda: False)

    def test_timeout_runs_the_call_in_a_thread(self) -> None:
        call = make_call(options={"timeout": 2.0})
        passed, _ = pass_through(enforce_timeout(make_context(call)), call)
        assert type(passed.runner).__name__ == "ThreadRunner"

    def test_sandboxed_call_is_rejected(self) -> None:
        call = make_call().replace(runner=SandboxedRunner())
        with pytest.raises(AuthError, match="cannot run a command in a process of its own"):
            pass_through(enforce_timeout(make_context(call)), call)
