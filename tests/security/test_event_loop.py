"""Attacks of a sandboxed command on the event loop of the server that waits for it."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import pytest

from tooli import Tooli
from tooli.execution.sandbox.sandbox_runner import detect_sandbox_support
from tooli.execution.sandbox.temp_dirs import SandboxDirs

SUPPORT = detect_sandbox_support()


@pytest.mark.skipif(bool(SUPPORT.missing), reason="; ".join(SUPPORT.missing))
def test_temporary_files_are_not_removed_on_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The removal of the files that a command has made takes up to five seconds."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    threads: list[threading.Thread] = []
    remove = SandboxDirs.remove

    def record_thread(self: SandboxDirs) -> None:
        threads.append(threading.current_thread())
        remove(self)

    monkeypatch.setattr(SandboxDirs, "remove", record_thread)
    app = Tooli("files")

    @app.command(isolation="required")
    async def fill() -> None:
        for i in range(100):
            Path(os.environ["TMPDIR"], str(i)).touch()

    @app.command(isolation="required")
    async def fail() -> None:
        Path(os.environ["TMPDIR"], "file").touch()
        raise ValueError

    @app.command(isolation="required")
    def both() -> None:
        return None

    for name in ("fill", "fail", "both"):
        asyncio.run(app.acall(name))
    assert len(threads) == 3
    assert threading.main_thread() not in threads
    assert list(tmp_path.iterdir()) == []
