"""Actions of audit events, resolved paths, and access by Python, which needs no capability."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.integration.app_process import environment

from tooli.execution.monitor import actions
from tooli.execution.monitor.actions import EVENTS, DirFdPath
from tooli.execution.sandbox.sandbox_runner import detect_sandbox_support

# ------------------------------------------------------------------ audit events


def translate(event: str, *args: Any) -> list[tuple[str, Any]]:
    """Return the actions of an event."""
    return list(EVENTS[event](args))


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("f", "r", os.O_RDONLY), [("read", "f")]),
        (("f", "w", os.O_WRONLY | os.O_CREAT), [("write", "f")]),
        (("f", "x", os.O_WRONLY | os.O_CREAT | os.O_EXCL), [("make", "f")]),
        (("f", None, os.O_RDWR), [("write", "f")]),
        (("f", "a", 0), [("write", "f")]),
        ((3, "r", os.O_RDONLY), []),
    ],
)
def test_actions_of_open_depend_on_its_flags(args: tuple[Any, ...], expected: list[Any]) -> None:
    assert translate("open", *args) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (":memory:", []),
        ("", []),
        ("a.db", ["read", "write"]),
        (b"a.db", ["read", "write"]),
        ("file:a.db", ["read", "write"]),
        ("file:a.db?mode=ro", ["read"]),
        ("file:a.db?mode=ro&mode=rw", ["read", "write"]),
        ("file:?mode=memory", []),
        ("file:a.db?mode=memory#part", []),
        ("file:///tmp/a.db", ["read", "write"]),
        ("file://localhost/tmp/a%20b.db?m%6fde=ro", ["read"]),
        ("file:a%zz.db", ["read", "write"]),
        (3, []),
    ],
)
def test_actions_of_sqlite_connect_depend_on_the_uri(name: Any, expected: list[str]) -> None:
    assert [action for action, _ in translate("sqlite3.connect", name)] == expected


def test_sqlite_uri_names_are_decoded() -> None:
    found = translate("sqlite3.connect", "file://localhost/tmp/a%20b.db?mode=ro")
    assert found == [("read", "/tmp/a b.db")]


def test_sqlite_file_whose_name_is_a_uri(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file:a.db").write_text("")
    found = translate("sqlite3.connect", "file:a.db?mode=ro")
    assert found == [("read", "a.db")]
    found = translate("sqlite3.connect", "file:a.db")
    assert found[:2] == [("read", "file:a.db"), ("write", "file:a.db")]
    assert sqlite3.sqlite_version


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        (("localhost", 80), [("net", "localhost:80")]),
        (("::1", 80, 0, 0), [("net", "::1:80")]),
        (None, []),
        (b"/tmp/s", [("net", "/tmp/s")]),
        (7, [("net", "7")]),
    ],
)
def test_connect_is_a_network_action(address: Any, expected: list[Any]) -> None:
    assert translate("socket.connect", None, address) == expected


@pytest.mark.parametrize(
    ("address", "creates_file"),
    [("/tmp/s", True), (b"/tmp/s", True), ("\0abstract", False), ("", False), (("", 0), False)],
)
def test_bind_to_a_unix_path_creates_a_file(address: Any, creates_file: bool) -> None:
    found = [action for action, _ in translate("socket.bind", None, address)]
    assert ("place" in found) is creates_file


@pytest.mark.parametrize(
    ("args", "target"),
    [
        (("prog", ["prog"], None), "prog"),
        ((None, ["prog", "x"]), "prog"),
        ((None, []), "a copy of the process"),
        ((), "a copy of the process"),
    ],
)
def test_spawn_names_the_program(args: tuple[Any, ...], target: str) -> None:
    assert list(actions._spawn_actions(args)) == [("spawn", target)]


# ------------------------------------------------------------------ access by Python itself

APP = '''
import sys
from pathlib import Path
from tooli import Tooli

app = Tooli("monitored", security_policy="{policy}")


@app.command(capabilities=["none"], auth=[], **{options})
def load() -> str:
    """Import a module that has no bytecode yet."""
    import neighbour

    return neighbour.WORD


@app.command(capabilities=["none"], auth=[])
def plant(path: str) -> str:
    """Write a file whose name looks like bytecode."""
    with open(path, "wb") as file:
        file.write(b"x")
    return "written"


@app.command(capabilities=["none"], auth=[])
def compiled(source: str, target: str) -> str:
    """Have the standard library write bytecode."""
    import py_compile

    return str(py_compile.compile(source, target, doraise=True))


@app.command(capabilities=["none"], auth=[])
def stored(path: str) -> str:
    """Use the function that importing uses."""
    from importlib.machinery import SourceFileLoader

    SourceFileLoader("x", path).set_data(path, b"x")
    return "written"


@app.command(capabilities=["none"], auth=[])
def redirected(prefix: str) -> str:
    """Import with another folder for bytecode."""
    sys.pycache_prefix = prefix
    import neighbour

    return neighbour.WORD


if __name__ == "__main__":
    app()
'''


def write_app(folder: Path, policy: str = "strict", options: str = "{}") -> None:
    (folder / "app.py").write_text(
        APP.replace("{policy}", policy).replace("{options}", options), encoding="utf-8"
    )
    (folder / "neighbour.py").write_text("WORD = 'found'")


def run(folder: Path, *argv: str, prefix: Path | None = None) -> dict[str, Any]:
    variables = {"TOOLI_STATE_DIR": str(folder / "state")}
    if prefix is not None:
        variables["PYTHONPYCACHEPREFIX"] = str(prefix)
    env = {
        name: value
        for name, value in environment(**variables).items()
        if name != "PYTHONDONTWRITEBYTECODE"
        and (prefix is not None or name != "PYTHONPYCACHEPREFIX")
    }
    done = subprocess.run(
        [sys.executable, str(folder / "app.py"), *argv, "--json"],
        env=env,
        cwd=folder,
        capture_output=True,
        timeout=60,
    )
    return json.loads(done.stdout)


def bytecode(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("neighbour.*.pyc")]


@pytest.mark.parametrize("policy", ["standard", "strict"])
@pytest.mark.parametrize("folder", ["pycache", "prefix", "missing/parents/of/prefix"])
def test_importing_writes_and_reads_bytecode(tmp_path: Path, policy: str, folder: str) -> None:
    write_app(tmp_path, policy)
    prefix = None if folder == "pycache" else tmp_path / "elsewhere" / folder
    for _ in range(2):  # the second time it is read
        answer = run(tmp_path, "load", prefix=prefix)
        assert answer.get("result") == "found", answer
        assert "warnings" not in answer["meta"]
        assert len(bytecode(prefix or tmp_path)) == 1


@pytest.mark.parametrize("policy", ["standard", "strict"])
@pytest.mark.skipif(
    bool(detect_sandbox_support().missing), reason="; ".join(detect_sandbox_support().missing)
)
def test_isolated_command_imports_without_a_warning(tmp_path: Path, policy: str) -> None:
    write_app(tmp_path, policy, '{"isolation": "required"}')
    answer = run(tmp_path, "load", prefix=tmp_path / "elsewhere")
    assert answer.get("result") == "found", answer
    assert "warnings" not in answer["meta"]


@pytest.mark.parametrize("prefix", [None, "elsewhere"])
@pytest.mark.parametrize("command", ["plant", "stored", "compiled"])
def test_command_that_writes_bytecode_is_refused(
    tmp_path: Path, command: str, prefix: str | None
) -> None:
    write_app(tmp_path)
    cache = tmp_path / (prefix or "__pycache__")
    cache.mkdir()
    target = cache / "neighbour.cpython-312.pyc"
    sources = [str(tmp_path / "neighbour.py")] if command == "compiled" else []
    prefix_dir = None if prefix is None else cache
    answer = run(tmp_path, command, *sources, str(target), prefix=prefix_dir)
    assert answer["error"]["code"] == "E2003", answer
    assert answer["error"]["details"]["capability"] == "fs:write"
    assert not target.exists()


def test_command_cannot_choose_the_bytecode_folder(tmp_path: Path) -> None:
    write_app(tmp_path)
    chosen = tmp_path / "chosen"
    answer = run(tmp_path, "redirected", str(chosen))
    assert answer["error"]["code"] == "E2003", answer
    assert bytecode(chosen) == []


# ------------------------------------------------------------------ frames of the caller


IMPORT = "<frozen importlib._bootstrap_external>"
STDLIB = os.path.dirname(os.__file__)
APP_FILE = "/srv/app/main.py"


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
    monkeypatch.setattr(actions, "_code_paths_cache", [])
    (tmp_path / "module.py").write_text("")
    (tmp_path / "data.txt").write_text("")
    yield tmp_path.resolve()


def set_frames(monkeypatch: pytest.MonkeyPatch, *callers: tuple[str, str]) -> None:
    """Make these the frames that cause the event."""
    monkeypatch.setattr(actions, "_calling_frame", lambda: frames(*callers))


def test_paths_are_resolved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path.resolve()
    (root / "folder").mkdir()
    (root / "file").write_text("")
    (root / "link").symlink_to(root / "file")
    (root / "loop").symlink_to(root / "loop")
    monkeypatch.chdir(root)
    resolve = actions.resolve_path
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
        resolve = actions.resolve_path
        assert resolve(folder, True) == str(root)
        assert resolve(read_end, True) is None
        assert resolve(DirFdPath("x", folder), True) == str(root / "x")
        assert resolve(DirFdPath("/x", folder), True) == "/x"
        monkeypatch.chdir(root)
        assert resolve(DirFdPath("x", 10_000), True) == str(root / "x")
    finally:
        for number in (folder, read_end, write_end):
            os.close(number)
    assert actions.resolve_path(10_000, True) is None


def test_paths_resolve_in_deleted_directories_and_without_o_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path.resolve()
    monkeypatch.setattr(actions, "_O_PATH", 0)
    assert actions.resolve_path(str(root / "x"), True) == str(root / "x")
    monkeypatch.undo()
    (root / "gone").mkdir()
    monkeypatch.chdir(root / "gone")
    shutil.rmtree(root / "gone")
    assert actions.resolve_path("x", True) == "x"
    monkeypatch.chdir(root)


def test_libraries_may_be_read(source_dir: Path) -> None:
    assert actions.is_implicit_access("read", os.path.join(STDLIB, "data.bin"))
    assert not actions.is_implicit_access("write", os.path.join(STDLIB, "data.bin"))


def test_private_temp_dir_may_be_written(source_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actions, "private_temp_dirs", [f"{source_dir}/temp/"])
    assert actions.is_implicit_access("write", f"{source_dir}/temp/x")
    assert not actions.is_implicit_access("write", f"{source_dir}/other")


def test_only_code_of_the_app_may_be_read(
    source_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_frames(monkeypatch, (APP_FILE, "work"))
    assert actions.is_implicit_access("read", f"{source_dir}/module.py")
    assert not actions.is_implicit_access("read", f"{source_dir}/data.txt")
    assert actions.is_implicit_access("read", f"{source_dir}/a.dist-info/METADATA")


@pytest.mark.parametrize(
    ("callers", "allowed"),
    [
        ([(IMPORT, "get_data"), (IMPORT, "_find_and_load"), (APP_FILE, "work")], True),
        ([(os.path.join(STDLIB, "traceback.py"), "f"), (APP_FILE, "work")], True),
        ([(os.path.join(STDLIB, "threading.py"), "excepthook"), (APP_FILE, "work")], True),
        ([(os.path.join(STDLIB, "json", "__init__.py"), "load"), (APP_FILE, "work")], False),
        ([(APP_FILE, "work"), (IMPORT, "_find_and_load")], False),
        ([(IMPORT, "get_data")], False),
    ],
)
def test_denied_code_may_be_imported_and_shown(
    source_dir: Path, monkeypatch: pytest.MonkeyPatch, callers: Any, allowed: bool
) -> None:
    set_frames(monkeypatch, *callers)
    path = f"{source_dir}/module.py"
    assert actions.is_implicit_access("read", path, is_denied_by_config=True) is allowed


def test_directories_may_be_listed_to_import(
    source_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_frames(monkeypatch, (IMPORT, "_fill_cache"))
    assert actions.is_implicit_access("read", str(source_dir))
    assert not actions.is_implicit_access("read", f"{source_dir}/data.txt")
    set_frames(monkeypatch, (os.path.join(STDLIB, "pkgutil.py"), "iter"))
    assert actions.is_implicit_access("read", str(source_dir))
    set_frames(monkeypatch)
    assert not actions.is_implicit_access("read", str(source_dir))


def test_archive_on_sys_path_is_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path.resolve() / "code.zip"
    archive.write_text("")
    monkeypatch.setattr(sys, "path", [str(archive), *sys.path])
    monkeypatch.setattr(actions, "_code_paths_cache", [])
    assert actions.is_implicit_access("read", str(archive))


@pytest.mark.parametrize(
    ("action", "name", "callers", "allowed"),
    [
        ("write", "__pycache__/m.pyc", [(IMPORT, "set_data"), (IMPORT, "get_code")], True),
        ("write", "__pycache__/m.pyc.1234", [(IMPORT, "set_data"), (IMPORT, "get_code")], True),
        ("make", "__pycache__", [(IMPORT, "set_data"), (IMPORT, "get_code")], True),
        ("write", "__pycache__/m.txt", [(IMPORT, "set_data"), (IMPORT, "get_code")], False),
        ("write", "m.pyc", [(IMPORT, "set_data"), (IMPORT, "get_code")], False),
        ("write", "__pycache__/m.pyc", [(IMPORT, "set_data"), (APP_FILE, "work")], False),
        ("write", "__pycache__/m.pyc", [], False),
    ],
)
def test_bytecode_may_be_written_by_imports_only(
    source_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
    action: str,
    name: str,
    callers: Any,
    allowed: bool,
) -> None:
    set_frames(monkeypatch, *callers)
    assert actions.is_implicit_access(action, f"{source_dir}/{name}") is allowed


def test_bytecode_below_the_prefix_may_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = tmp_path.resolve() / "cache" / "python"
    monkeypatch.setattr(sys, "pycache_prefix", str(prefix))
    monkeypatch.setattr(actions, "_code_paths_cache", [])
    set_frames(monkeypatch, (IMPORT, "set_data"), (IMPORT, "get_code"))
    is_implicit = actions.is_implicit_access
    assert is_implicit("make", str(prefix / "srv"))
    assert is_implicit("make", str(prefix.parent))  # a missing parent of the prefix
    assert is_implicit("write", str(prefix / "srv" / "m.pyc"))
    assert not is_implicit("write", str(tmp_path / "m.pyc"))
    assert is_implicit("write", str(prefix / "m.pyc"), True)


def test_denied_bytecode_is_read_only_to_load_a_module(
    source_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"{source_dir}/__pycache__/m.txt.pyc"
    monkeypatch.setattr(actions, "_is_showing_source", lambda frame: False)
    callers = [(IMPORT, "get_data"), (IMPORT, "get_code")]
    set_frames(monkeypatch, *callers)
    assert not actions.is_implicit_access("read", path, is_denied_by_config=True)
    set_frames(monkeypatch, *callers, (IMPORT, "_find_and_load"))
    assert actions.is_implicit_access("read", path, is_denied_by_config=True)


def test_framework_storage_may_be_written_by_the_framework_only(
    source_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = os.path.join(actions.PACKAGE_DIR, "storage", "audit_log.py")
    set_frames(monkeypatch, (os.path.join(STDLIB, "os.py"), "open"), (storage, "append"))
    assert actions.is_implicit_access("write", "/srv/state/audit.log")
    set_frames(monkeypatch, (os.path.join(STDLIB, "os.py"), "open"))
    assert not actions.is_implicit_access("write", "/srv/state/audit.log")


def test_removing_a_tree_lists_its_directories(
    source_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_frames(
        monkeypatch, (os.path.join(STDLIB, "shutil.py"), "_rmtree_safe_fd"), (APP_FILE, "work")
    )
    assert actions.is_implicit_access("read", "/srv/tree")
    assert not actions.is_implicit_access("delete", "/srv/tree")


def test_native_code_loaded_by_a_library_is_a_library_call(
    source_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ctypes_file = os.path.join(STDLIB, "ctypes", "__init__.py")
    for callers, expected in (
        ([(ctypes_file, "<module>"), (APP_FILE, "work")], True),
        ([(ctypes_file, "__init__"), (APP_FILE, "work")], False),
        ([(ctypes_file, "__init__"), (os.path.join(STDLIB, "uuid.py"), "f")], True),
        ([], False),
    ):
        set_frames(monkeypatch, *callers)
        assert actions.is_library_call() is expected


def test_emulated_socketpair_is_recognized(
    source_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for callers, expected in (
        ([(os.path.join(STDLIB, "socket.py"), "_fallback_socketpair")], True),
        ([(os.path.join(STDLIB, "socket.py"), "connect")], False),
        ([(APP_FILE, "socketpair")], False),
        ([], False),
    ):
        set_frames(monkeypatch, *callers)
        assert actions.is_socketpair() is expected


def test_threads_of_the_framework_are_recognized(
    source_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    framework = os.path.join(actions.PACKAGE_DIR, "serving", "thread_pool.py")
    set_frames(monkeypatch, (APP_FILE, "work"), (framework, "run"))
    assert actions.is_framework_thread()
    set_frames(monkeypatch, (APP_FILE, "work"))
    assert not actions.is_framework_thread()
