"""A program that replaces the process in the sandbox."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tooli.execution.interpreter import isolated_argv
from tooli.execution.sandbox.sandbox_runner import detect_sandbox_support

HAS_SANDBOX = bool(detect_sandbox_support().landlock and detect_sandbox_support().seccomp)
CODE = "from tooli.sources.confined_program import main; main()"
SCRIPT = """
import os, socket, sys
for action in (
    lambda: open(sys.argv[1], "w"),
    lambda: socket.create_connection(("127.0.0.1", int(sys.argv[2]))),
):
    try:
        action()
        print("allowed")
    except OSError:
        print("refused")
print(os.environ.get("SECRET_OF_USER"), sys.argv[1:] == [sys.argv[1], sys.argv[2]])
"""


@pytest.mark.skipif(not HAS_SANDBOX, reason="there is no sandbox")
def test_program_cannot_write_or_connect(tmp_path: Path) -> None:
    import socket

    script = tmp_path / "script"
    script.write_text(f"#!{sys.executable}\n{SCRIPT}")
    script.chmod(0o755)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        done = subprocess.run(
            [*isolated_argv(CODE), str(script), str(tmp_path / "new"), port],
            capture_output=True,
            text=True,
            env={**os.environ, "SECRET_OF_USER": "x"},
            timeout=60,
        )
    assert done.stdout.split() == ["refused", "refused", "None", "True"], done.stderr
    assert not (tmp_path / "new").exists()


@pytest.mark.skipif(not HAS_SANDBOX, reason="there is no sandbox")
def test_binary_program() -> None:
    done = subprocess.run(
        [*isolated_argv(CODE), sys.executable, "-I", "-c", "print(6 * 7)"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == "42\n", done.stderr
