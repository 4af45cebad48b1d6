"""The values of environment variables are not in the memory of a sandboxed process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.integration.app_process import environment

from tooli.execution.sandbox.sandbox_runner import detect_sandbox_support

pytestmark = pytest.mark.skipif(
    bool(detect_sandbox_support().missing), reason="; ".join(detect_sandbox_support().missing)
)

APP = '''
import os
from tooli import Tooli

app = Tooli("app", version="1")


def search() -> list[str]:
    """Search the heap of this process: a system call refuses an address that is not mapped."""
    import ctypes
    import gc
    import re

    libc = ctypes.CDLL(None)
    libc.sbrk.restype = ctypes.c_void_p
    libc.write.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t]
    top = libc.sbrk(0) & ~0xFFFFF
    bases = {id(one) & ~0xFFFFF for one in gc.get_objects()}
    bases |= {top - i * 0x100000 for i in range(16)}
    read_end, write_end = os.pipe()
    found, previous = set(), b""
    for base in sorted(bases):
        for address in range(base, base + 0x100000, 4096):
            if libc.write(write_end, address, 4096) != 4096:
                previous = b""
                continue
            data = os.read(read_end, 4096)
            found.update(re.findall(rb"CANARY-[a-z]+-[0-9]{6}", previous + data))
            previous = data[-100:]
    return sorted([text.decode()[::-1] for text in found])


@app.command(isolation="required")
def isolated() -> list[str]:
    return search()


@app.command()
def plain() -> list[str]:
    return search()


if __name__ == "__main__":
    app()
'''


@pytest.mark.parametrize("lines", [1, 10, 42, 400])
@pytest.mark.parametrize("name", ["CREDENTIALS", "TOOLI_SEAL_KEY"])
def test_variable_is_overwritten(tmp_path: Path, name: str, lines: int) -> None:
    (tmp_path / "app.py").write_text(APP)
    value = " ".join([f"CANARY-line-{i:06}" for i in range(lines)])
    found: dict[str, int] = {}
    for command in ("plain", "isolated"):
        done = subprocess.run(
            [sys.executable, "app.py", command, "--json"],
            capture_output=True,
            text=True,
            env=environment(**{name: value}),
            cwd=tmp_path,
            timeout=120,
        )
        answer = json.loads(done.stdout)
        assert answer["ok"], answer
        found[command] = len(answer["result"])
    assert found["plain"] >= lines * 0.9  # the search works
    assert found["isolated"] == 0
