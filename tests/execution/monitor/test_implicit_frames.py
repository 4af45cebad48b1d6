"""Recognize access by Python itself, from the path and from the frames of the caller."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tooli.execution.monitor import implicit_access
from tooli.execution.monitor.audit_events import DirFdPath

IMPORT = "<frozen importlib._bootstrap_external>"
STDLIB = os.path.dirname(os.__file__)
APP = "/srv/app/main.py"


def frames(*callers: tuple[str, str]) -> Any:
    """Return a chain of frames, the innermost first: file and function."""
    frame = None
    for file, function in reversed(callers):
        code = SimpleNamespace(co_filename=file, co_name=function)
        frame = SimpleNamespace(f_code=code, f_back=frame)
    return frame


@pytest.fixture
def source_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on sys.path with code of an app."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(implicit_access, "_code_paths_cache", [])
    (tmp_path / "module.py").write_text("")
    (tmp_path / "data.txt").write_text("")
    yield tmp_path.resolve()


def set_frames(monkeypatch: pytest.MonkeyPatch, *callers: tuple[str, str]) -> None:
    """Make these the frames that cause the event."""
    monkeypatch.setattr(implicit_access, "_calling_frame", lambda: frames(*callers))


# ------------------------------------------------------------------ paths


def test_paths_are_resolved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path.resolve()
    (root / "folder").mkdir()
    (root / "file").write_text("")
    (root / "link").symlink_to(root / "file")
    (root / "loop").symlink_to(root / "loop")
    monkeypatch.chdir(root)
    resolve = implicit_access.resolve_path
    assert resolve("link", True) == str(root / "file")
    assert resolve("link", False) == str(root / "link")
    assert resolve(b"file", True) == str(root / "file")
    assert resolve(None, True) == str(root)
    assert resolve("folder/..", False) == str(root)
    assert resolve("new", True) == str(root / "new")
    assert resolve("none/new", True) == str(root / "none" / "new")
    assert resolve("none/..", True) == str(root)
    assert resolve("/dev/null", True) is None
    assert resolve("a\0b", True) is None
    assert resolve(object(), True) is None
    assert resolve("loop", True) == str(root / "loop")


def test_descriptors_are_resolved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path.resolve()
    folder = os.open(root, os.O_RDONLY)
    read_end, write_end = os.pipe()
    try:
        resolve = implicit_access.resolve_path
        assert resolve(folder, True) == str(root)
        assert resolve(read_end, True) is None
        assert resolve(DirFdPath("x", folder), True) == str(root / "x")
        assert resolve(DirFdPath("/x", folder), True) == "/x"
        monkeypatch.chdir(root)
        assert resolve(DirFdPath("x", 10_000), True) == str(root / "x")
    finally:
        for number in (folder, read_end, write_end):
            os.close(number)
    assert implicit_access.resolve_path(10_000, True) is None


def test_deleted_directories_and_systems_without_o_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path.resolve()
    monkeypatch.setattr(implicit_access, "_O_PATH", 0)
    assert implicit_access.resolve_path(str(root / "x"), True) == str(root / "x")
    monkeypatch.undo()
    (root / "gone").mkdir()
    monkeypatch.chdir(root / "gone")
    shutil.rmtree(root / "gone")
    assert implicit_access.resolve_path("x", True) == "x"
    monkeypatch.chdir(root)


# ------------------------------------------------------------------ files that Python reads


def test_libraries_may_be_read(source_dir: Path) -> None:
    assert implicit_access.is_implicit_access("read", os.path.join(STDLIB, "data.bin"))
    assert not implicit_access.is_implicit_access("write", os.path.join(STDLIB, "data.bin"))


def test_private_temp_dir(source_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(implicit_access, "private_temp_dirs", [f"{source_dir}/temp/"])
    assert implicit_access.is_implicit_access("write", f"{source_dir}/temp/x")
    assert not implicit_access.is_implicit_access("write", f"{source_dir}/other")


def test_only_code_of_the_app_may_be_read(
    source_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_frames(monkeypatch, (APP, "work"))
    assert implicit_access.is_implicit_access("read", f"{source_dir}/module.py")
    assert not implicit_access.is_implicit_access("read", f"{source_dir}/data.txt")
    assert implicit_access.is_implicit_access("read", f"{source_dir}/a.dist-info/METADATA")


@pytest.mark.parametrize(
    ("callers", "allowed"),
    [
        ([(IMPORT, "get_data"), (IMPORT, "_find_and_load"), (APP, "work")], True),
        ([(os.path.join(STDLIB, "traceback.py"), "f"), (APP, "work")], True),
        ([(os.path.join(STDLIB, "threading.py"), "excepthook"), (APP, "work")], True),
        ([(os.path.join(STDLIB, "json", "__init__.py"), "load"), (APP, "work")], False),
        ([(APP, "work"), (IMPORT, "_find_and_load")], False),
        ([(IMPORT, "get_data")], False),
    ],
)
def test_denied_code_may_be_imported_and_shown(
    source_dir: Path, monkeypatch: pytest.MonkeyPatch, callers: Any, allowed: bool
) -> None:
    set_frames(monkeypatch, *callers)
    path = f"{source_dir}/module.py"
    assert implicit_access.is_implicit_access("read", path, is_denied_by_config=True) is allowed


def test_directories_may_be_listed_to_import(
    source_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_frames(monkeypatch, (IMPORT, "_fill_cache"))
    assert implicit_access.is_implicit_access("read", str(source_dir))
    assert not implicit_access.is_implicit_access("read", f"{source_dir}/data.txt")
    set_frames(monkeypatch, (os.path.join(STDLIB, "pkgutil.py"), "iter"))
    assert implicit_access.is_implicit_access("read", str(source_dir))
    set_frames(monkeypatch)
    assert not implicit_access.is_implicit_access("read", str(source_dir))


def test_archive_on_sys_path_is_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path.resolve() / "code.zip"
    archive.write_text("")
    monkeypatch.setattr(sys, "path", [str(archive), *sys.path])
    monkeypatch.setattr(implicit_access, "_code_paths_cache", [])
    assert implicit_access.is_implicit_access("read", str(archive))


# ------------------------------------------------------------------ bytecode


@pytest.mark.parametrize(
    ("action", "name", "callers", "allowed"),
    [
        ("write", "__pycache__/m.pyc", [(IMPORT, "set_data"), (IMPORT, "get_code")], True),
        ("write", "__pycache__/m.pyc.1234", [(IMPORT, "set_data"), (IMPORT, "get_code")], True),
        ("make", "__pycache__", [(IMPORT, "set_data"), (IMPORT, "get_code")], True),
        ("write", "__pycache__/m.txt", [(IMPORT, "set_data"), (IMPORT, "get_code")], False),
        ("write", "m.pyc", [(IMPORT, "set_data"), (IMPORT, "get_code")], False),
        ("write", "__pycache__/m.pyc", [(IMPORT, "set_data"), (APP, "work")], False),
        ("write", "__pycache__/m.pyc", [], False),
    ],
)
def test_bytecode(
    source_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
    action: str,
    name: str,
    callers: Any,
    allowed: bool,
) -> None:
    set_frames(monkeypatch, *callers)
    assert implicit_access.is_implicit_access(action, f"{source_dir}/{name}") is allowed


def test_bytecode_below_the_prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prefix = tmp_path.resolve() / "cache" / "python"
    monkeypatch.setattr(sys, "pycache_prefix", str(prefix))
    monkeypatch.setattr(implicit_access, "_code_paths_cache", [])
    set_frames(monkeypatch, (IMPORT, "set_data"), (IMPORT, "get_code"))
    is_implicit = implicit_access.is_implicit_access
    assert is_implicit("make", str(prefix / "srv"))
    assert is_implicit("make", str(prefix.parent))  # a missing parent of the prefix
    assert is_implicit("write", str(prefix / "srv" / "m.pyc"))
    assert not is_implicit("write", str(tmp_path / "m.pyc"))
    assert is_implicit("write", str(prefix / "m.pyc"), True)


def test_denied_bytecode_is_read_only_to_load_a_module(
    source_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"{source_dir}/__pycache__/m.txt.pyc"
    monkeypatch.setattr(implicit_access, "_is_showing_source", lambda frame: False)
    callers = [(IMPORT, "get_data"), (IMPORT, "get_code")]
    set_frames(monkeypatch, *callers)
    assert not implicit_access.is_implicit_access("read", path, is_denied_by_config=True)
    set_frames(monkeypatch, *callers, (IMPORT, "_find_and_load"))
    assert implicit_access.is_implicit_access("read", path, is_denied_by_config=True)


# ------------------------------------------------------------------ who calls


def test_framework_storage(source_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = os.path.join(implicit_access.PACKAGE_DIR, "storage", "audit_log.py")
    set_frames(monkeypatch, (os.path.join(STDLIB, "os.py"), "open"), (storage, "append"))
    assert implicit_access.is_implicit_access("write", "/srv/state/audit.log")
    set_frames(monkeypatch, (os.path.join(STDLIB, "os.py"), "open"))
    assert not implicit_access.is_implicit_access("write", "/srv/state/audit.log")


def test_removing_a_tree_lists_its_directories(
    source_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_frames(monkeypatch, (os.path.join(STDLIB, "shutil.py"), "_rmtree_safe_fd"), (APP, "work"))
    assert implicit_access.is_implicit_access("read", "/srv/tree")
    assert not implicit_access.is_implicit_access("delete", "/srv/tree")


def test_native_code_of_libraries(source_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ctypes_file = os.path.join(STDLIB, "ctypes", "__init__.py")
    for callers, expected in (
        ([(ctypes_file, "<module>"), (APP, "work")], True),
        ([(ctypes_file, "__init__"), (APP, "work")], False),
        ([(ctypes_file, "__init__"), (os.path.join(STDLIB, "uuid.py"), "f")], True),
        ([], False),
    ):
        set_frames(monkeypatch, *callers)
        assert implicit_access.is_library_call() is expected


def test_emulated_socketpair(source_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for callers, expected in (
        ([(os.path.join(STDLIB, "socket.py"), "_fallback_socketpair")], True),
        ([(os.path.join(STDLIB, "socket.py"), "connect")], False),
        ([(APP, "socketpair")], False),
        ([], False),
    ):
        set_frames(monkeypatch, *callers)
        assert implicit_access.is_socketpair() is expected


def test_threads_of_the_framework(source_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    framework = os.path.join(implicit_access.PACKAGE_DIR, "serving", "thread_pool.py")
    set_frames(monkeypatch, (APP, "work"), (framework, "run"))
    assert implicit_access.is_framework_thread()
    set_frames(monkeypatch, (APP, "work"))
    assert not implicit_access.is_framework_thread()
