"""The first large message over stdio prepares the pipe and the memory of the process."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tooli.mcp import large_messages
from tooli.mcp.stdio_transport import StdioTransport

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems are left alone")


def test_large_message_prepares_the_process_once(monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    prepared: list[bool] = []
    monkeypatch.setattr(large_messages, "keep_freed_memory", lambda: prepared.append(True))
    reader, writer = os.pipe()
    transport = StdioTransport(-1, writer)
    transport.send(b"x" * 100)
    before = fcntl.fcntl(writer, fcntl.F_GETPIPE_SZ)
    assert prepared == []
    size = 1 << 18

    def send_twice() -> None:
        for _ in range(2):
            transport.send(b"x" * size)

    thread = threading.Thread(target=send_twice)
    thread.start()
    left = 101 + 2 * (size + 1)
    while left:
        left -= len(os.read(reader, 65536))
    thread.join(120)
    assert before < fcntl.fcntl(writer, fcntl.F_GETPIPE_SZ) == large_messages.PIPE_BYTES
    assert prepared == [True]
    os.close(reader)
    os.close(writer)


def test_other_outputs_keep_their_size(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as file:
        large_messages.widen_pipe(file.fileno())


USE_MEMORY = """
import resource, sys
from tooli.mcp.large_messages import keep_freed_memory
if sys.argv[1] == "keep":
    keep_freed_memory()
def use():
    blocks = [b"x" * (1 << 20) for _ in range(5)]
for _ in range(5):
    use()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    use()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def test_memory_of_a_message_is_used_again() -> None:
    if not (os.confstr("CS_GNU_LIBC_VERSION") or "").startswith("glibc"):
        pytest.skip("another C library")
    faults: dict[str, int] = {}
    for mode in ("keep", "default"):
        argv = [sys.executable, "-c", USE_MEMORY, mode]
        faults[mode] = int(subprocess.run(argv, capture_output=True, check=True).stdout)
    assert faults["keep"] < 100 < faults["default"]
