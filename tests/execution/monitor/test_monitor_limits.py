"""The monitor without a hook, with denied paths, in threads of unknown origin, and recording."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.execution.calls import make_call
from tests.execution.forked import refuse

from tooli.core.declared_capabilities import AllowedAccess
from tooli.errors import AuthError
from tooli.execution.monitor import audit_hook, monitored_runner
from tooli.execution.monitor.audit_hook import Monitor
from tooli.execution.monitor.monitored_runner import MonitoredRunner, RecordingRunner


def test_call_without_a_hook_warns_or_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another hook of the process may reject tooli's hook."""
    monkeypatch.setattr(Monitor, "begin", lambda self: False)
    call = make_call(lambda: 1, meta={})
    assert MonitoredRunner(Monitor(AllowedAccess()), None).run(call) == 1
    assert call.warnings == [
        "not monitored: another audit hook of the process rejects tooli's hook"
    ]
    with pytest.raises(AuthError, match="cannot be monitored"):
        MonitoredRunner(Monitor(AllowedAccess(), is_blocking=True), None).run(call)
    recording = make_call(lambda: 1, meta={})
    assert RecordingRunner(None, False).run(recording) == 1
    assert recording.meta == {}


def test_denied_paths_are_refused_inside_of_allowed_ones(tmp_path: Path) -> None:
    denied = tmp_path / "denied"
    access = AllowedAccess(reads=(str(tmp_path),), denied=(str(denied),))
    monitor = Monitor(access, is_blocking=True)
    monitor.check("read", str(tmp_path / "file"))
    with pytest.raises(PermissionError):
        monitor.check("read", str(denied / "file"))
    with pytest.raises(PermissionError):
        monitor.check("delete", str(tmp_path / "file"))


def test_created_files_may_be_deleted(tmp_path: Path) -> None:
    access = AllowedAccess(writes=(str(tmp_path),))
    monitor = Monitor(access, is_blocking=True)
    monitor.check("make", str(tmp_path / "new"))
    monitor.check("delete", str(tmp_path / "new" / "file"))
    with pytest.raises(PermissionError):
        monitor.check("delete", str(tmp_path / "other"))


def test_nested_runners_leave_no_monitor_on_the_thread() -> None:
    outer, inner = Monitor(AllowedAccess()), Monitor(AllowedAccess())
    call = make_call(lambda: 1, meta={})
    runner = MonitoredRunner(outer, MonitoredRunner(inner, None))
    assert runner.run(call) == 1
    assert threading.get_ident() not in audit_hook._thread_monitors


@pytest.mark.parametrize("is_known", [False, True])
def test_thread_of_unknown_origin_belongs_to_all_calls(is_known: bool) -> None:
    import _thread

    monitor = Monitor(AllowedAccess())
    assert monitor.begin()
    found: list[Any] = []
    done = threading.Event()

    def look() -> None:
        if is_known:
            threading.current_thread()  # `threading` makes an object for the thread
        found.append(audit_hook._owning_monitors())
        done.set()

    try:
        _thread.start_new_thread(look, ())
        assert done.wait(60)
    finally:
        monitor.finish()
    assert monitor in found[0]


def test_thread_of_the_app_belongs_to_a_call_that_owns_the_process() -> None:
    monitor = Monitor(AllowedAccess(), owns_process=True)
    assert monitor.begin()
    found: list[Any] = []
    try:
        thread = threading.Thread(target=lambda: found.append(audit_hook._owning_monitors()))
        thread.start()
        thread.join()
    finally:
        monitor.finish()
    assert monitor in found[0]


def test_monitor_is_attached_to_threads_only() -> None:
    assert audit_hook._follow_thread(()) is None
    monitor = Monitor(AllowedAccess())
    token = audit_hook._current_monitors.set((monitor,))
    try:
        audit_hook._follow_thread((print,))
        monitor.is_loop_shared = True
        thread = threading.Thread(name="asyncio_0")
        audit_hook._follow_thread((thread.run,))
        assert audit_hook._THREAD_ATTRIBUTE not in vars(thread)
        monitor.is_loop_shared = False
        audit_hook._follow_thread((thread.run,))
        assert vars(thread)[audit_hook._THREAD_ATTRIBUTE] == (monitor,)
    finally:
        audit_hook._current_monitors.reset(token)


def test_hook_is_installed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monitor = Monitor(AllowedAccess())
    assert monitor.begin()
    monitor.finish()
    monkeypatch.setattr(sys, "addaudithook", refuse)
    audit_hook._install_hook()


def test_stream_without_close_can_be_closed() -> None:
    class Items:
        def __init__(self) -> None:
            self.left = [1, 2]

        def __iter__(self) -> Iterator[int]:
            return self

        def __next__(self) -> int:
            if not self.left:
                raise StopIteration
            return self.left.pop(0)

    def work() -> Iterator[int]:
        return iter(Items())

    stream = MonitoredRunner(Monitor(AllowedAccess()), None).run(make_call(work, meta={}))
    assert next(stream) == 1
    stream.close()


def test_async_stream_without_aclose_can_be_closed() -> None:
    class Items:
        def __aiter__(self) -> AsyncIterator[int]:
            return self

        async def __anext__(self) -> int:
            return 1

    def work() -> AsyncIterator[int]:
        return Items()

    async def main() -> None:
        stream = await MonitoredRunner(Monitor(AllowedAccess()), None).arun(
            make_call(work, meta={})
        )
        assert await stream.__anext__() == 1
        await stream.aclose()

    asyncio.run(main())


def test_paths_are_shortened_unless_the_directory_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    root = os.path.realpath(tmp_path)
    assert monitored_runner.shorten_path(root) == "."
    assert monitored_runner.shorten_path(f"{root}/a") == "./a"
    assert monitored_runner.shorten_path("/other") == "/other"
    monkeypatch.setattr(os, "getcwd", refuse)
    assert monitored_runner.shorten_path(f"{root}/a") == f"{root}/a"


def test_violations_are_not_stored_without_metadata() -> None:
    call = make_call(lambda: 1)
    monitored_runner.store_violations(call, ())
    assert call.meta is None


def test_many_recorded_actions_are_stored_at_the_end(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")

    def work() -> None:
        for number in range(monitored_runner.MAX_IMMEDIATE_REPORTS + 20):
            try:
                open(tmp_path / str(number))
            except FileNotFoundError:
                pass

    call = make_call(work, meta={})
    RecordingRunner(None, False).run(call)
    assert call.meta is not None
    rows = call.meta[monitored_runner.RECORDED_KEY]
    assert len(rows) > monitored_runner.MAX_IMMEDIATE_REPORTS
