"""`fs:write` and `fs:delete` without a path, and the interfaces of the kernel."""

from __future__ import annotations

import os
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from tests.execution.sandbox.sandboxed import sandboxed

from tooli.core.declared_capabilities import AllowedAccess
from tooli.execution.sandbox import bwrap, runtime_paths
from tooli.execution.sandbox.sandbox_runner import SandboxRunner, detect_sandbox_support

SUPPORT = detect_sandbox_support()
pytestmark = pytest.mark.skipif(bool(SUPPORT.missing), reason="; ".join(SUPPORT.missing))
needs_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="root can change more files"
)


def open_for_writing(path: str) -> Callable[[], str]:
    def attempt() -> str:
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
        return "opened"

    return attempt


def find_writable_file(folder: str) -> str:
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(parent, name)
            if os.path.isfile(path) and os.stat(path).st_mode & 0o200:
                try:
                    os.close(os.open(path, os.O_WRONLY))
                except OSError:
                    continue
                return path
    pytest.skip(f"no file in {folder} can be written")


@pytest.mark.parametrize("capabilities", [["fs:write"], ["fs:write:/"]], ids=["plain", "root"])
class TestWriting:
    def assert_denied(self, capabilities: list[str], path: str) -> None:
        result = sandboxed(capabilities, open_for_writing(path))
        assert (result.value, result.errno) == (None, 13), result

    def test_own_process(self, capabilities: list[str]) -> None:
        self.assert_denied(capabilities, f"/proc/{os.getpid()}/oom_score_adj")

    @needs_root
    def test_kernel_settings(self, capabilities: list[str]) -> None:
        self.assert_denied(capabilities, find_writable_file("/proc/sys/kernel"))
        self.assert_denied(capabilities, find_writable_file("/sys/kernel"))

    def test_devices(self, capabilities: list[str]) -> None:
        self.assert_denied(capabilities, "/dev/zero")

    def test_link_and_process_root(self, capabilities: list[str], tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to("/dev")
        self.assert_denied(capabilities, str(tmp_path / "link" / "zero"))
        self.assert_denied(capabilities, "/proc/self/root/dev/zero")

    @needs_root
    def test_new_control_group(self, capabilities: list[str]) -> None:
        def attempt() -> None:
            os.mkdir("/sys/fs/cgroup/tooli-test")

        result = sandboxed(capabilities, attempt)
        assert not os.path.exists("/sys/fs/cgroup/tooli-test")
        assert result.errno == 13

    def test_other_files(self, capabilities: list[str], tmp_path: Path) -> None:
        def attempt() -> None:
            (tmp_path / "new").write_text("new")
            Path("/dev/null").write_text("nothing")

        assert sandboxed(capabilities, attempt).error is None
        assert (tmp_path / "new").read_text() == "new"


def test_memory_folder_is_writable() -> None:
    if not os.access(runtime_paths.MEMORY_DIR, os.W_OK):
        pytest.skip("there is no /dev/shm")
    path = f"{runtime_paths.MEMORY_DIR}/tooli-test-{os.getpid()}"

    def attempt() -> None:
        Path(path).write_text("text")
        os.unlink(path)

    assert sandboxed(["fs:write", "fs:delete"], attempt).error is None


@pytest.mark.parametrize("path", ["/dev/zero", "/dev"])
def test_declared_interface_is_writable(path: str) -> None:
    assert sandboxed([f"fs:write:{path}"], open_for_writing("/dev/zero")).value == "opened"


# ------------------------------------------------------------------ other mount points

MOUNTS = b"""22 27 0:21 / /proc rw,relatime - proc proc rw
25 24 0:23 / /srv rw,relatime shared:7 - ext4 /dev/sda rw
26 24 0:24 / /srv/a\\040b/proc rw,relatime - proc proc rw
27 24 0:25 / /srv/sys rw,relatime shared:1 master:2 - sysfs - rw
28 24 0:26 / /srv/sys/kernel/debug rw - debugfs debugfs rw
29 24 0:27 / /srv/\xff rw - devtmpfs udev rw
"""


@pytest.fixture
def mounts(monkeypatch: pytest.MonkeyPatch) -> None:
    def open_mounts(path: str, mode: str) -> BytesIO:
        assert path == "/proc/self/mountinfo"
        return BytesIO(MOUNTS)

    monkeypatch.setattr(runtime_paths, "open", open_mounts, raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 0)


def test_other_mount_points(mounts: None, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = ("/srv/a b/proc", "/srv/sys", "/srv/\udcff")
    assert runtime_paths.find_kernel_dirs() == (*runtime_paths.KERNEL_DIRS, *expected)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert runtime_paths.find_kernel_dirs() == runtime_paths.KERNEL_DIRS


@pytest.mark.parametrize(
    ("writes", "expected"),
    [(None, ["/sys", "/srv/sys"]), (("/srv",), ["/srv/sys"]), (("/srv/sys",), []), (("/opt",), [])],
)
def test_bubblewrap(mounts: None, tmp_path: Path, writes: Any, expected: list[str]) -> None:
    fallback = SandboxRunner(None, AllowedAccess(writes=writes), required=True, temp_dir="/tmp")
    entry = bwrap.AppEntryPoint(None, "m", "app")
    argv = bwrap.BubblewrapRunner("/usr/bin/bwrap", entry, fallback, True)._build_bind_args()
    read_only = [argv[i + 1] for i, option in enumerate(argv) if option == "--ro-bind-try"]
    assert [path for path in ("/sys", "/srv/sys") if path in read_only] == expected
