"""Files that one call of a sandboxed command leaves behind, and what later calls can do then."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.integration.app_process import environment

from tooli.core.declared_capabilities import resolve_access
from tooli.core.safe_files import empty_folder
from tooli.execution.processes import list_processes
from tooli.execution.sandbox import runtime_paths, sandbox_runner
from tooli.execution.sandbox.sandbox_runner import detect_sandbox_support

SUPPORT = detect_sandbox_support()
pytestmark = pytest.mark.skipif(bool(SUPPORT.missing), reason="; ".join(SUPPORT.missing))

APP = '''
import os
from tooli import Tooli

app = Tooli("app", security_policy="off")


@app.command(isolation="required", capabilities=["fs:write:./out"])
def plant(name: str, target: str = "") -> str:
    """Make the folder a package and add a link, or nested folders."""
    open("out/__init__.py", "w").close()
    open("out/data.txt", "w").close()
    if target:
        os.symlink(target, "out/" + name)
    else:
        path = "out"
        for _ in range(int(name)):
            path += "/d"
            os.mkdir(path)
            open(path + "/__init__.py", "w").close()
    return "planted"


def read_file(path: str) -> str:
    with open(path) as file:
        return file.read()


@app.command(isolation="required", capabilities=["fs:write:./out"])
def read_again(path: str) -> str:
    """Read a file with the capabilities of the first call."""
    return read_file(path)


@app.command(isolation="required", capabilities=["none"])
def read_other(path: str) -> str:
    """Read a file with no capabilities."""
    return read_file(path)


@app.command(capabilities=["fs:write:./out"])
def optional(path: str) -> str:
    """Read a file, isolated by the setting only."""
    return read_file(path)


@app.command(isolation="required", capabilities=["none"])
def harmless() -> str:
    """Import a module of the project."""
    import helper
    import package.inner.deep

    return helper.VALUE + package.inner.deep.VALUE


@app.command(isolation="required", capabilities=["proc:spawn"], timeout=60)
def leave_process() -> int:
    """Leave a process that adds folders to the temporary folder."""
    os.chdir(os.environ["TMPDIR"])
    ready, started = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for fd in (0, 1, 2):
                os.close(fd)
            os.write(started, str(os.getpid()).encode())
            for _ in range(1_000_000):
                os.mkdir("d")
                os.chdir("d")
        os._exit(0)
    return int(os.read(ready, 20))


if __name__ == "__main__":
    app()
'''


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with an app, its modules, and a secret outside of it."""
    folder = tmp_path / "project"
    inner = folder / "package" / "inner"
    inner.mkdir(parents=True)
    (folder / "out").mkdir()
    (folder / "app.py").write_text(APP)
    (folder / "helper.py").write_text("VALUE = 'help'")
    (folder / "package" / "__init__.py").touch()
    (inner / "__init__.py").touch()
    (inner / "deep.py").write_text("VALUE = 'er'")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key").write_text("secret")
    return folder


def run(project: Path, *argv: str, **more: str) -> dict[str, Any]:
    env = environment(TOOLI_STATE_DIR=str(project.parent / "state"), **more)
    program = [sys.executable, "app.py", *argv, "--json"]
    done = subprocess.run(program, capture_output=True, env=env, timeout=120, cwd=project)
    return json.loads(done.stdout)


LINKS = [
    ("__pycache__", ""),
    ("a.dist-info", ""),
    ("a.egg-info", ""),
    ("package", ""),
    ("module.py", "key"),
    ("library.so", "key"),
    ("library.so.1", "key"),
]


@pytest.mark.parametrize(("name", "target"), LINKS, ids=[name for name, _ in LINKS])
def test_planted_link_makes_no_file_readable(project: Path, name: str, target: str) -> None:
    secret = project.parent / "secret"
    assert run(project, "plant", name, "--target", str(secret / target))["ok"]
    for command in ("read-again", "read-other"):
        answer = run(project, command, str(secret / "key"))
        assert answer["error"]["code"] == "E2030", answer


@pytest.mark.parametrize("target", ["a.py", "missing"], ids=["loop", "dangling"])
def test_planted_link_does_not_disable_the_sandbox(project: Path, target: str) -> None:
    assert run(project, "plant", "a.py", "--target", target)["ok"]
    key = str(project.parent / "secret" / "key")
    answer = run(project, "optional", key, TOOLI_ISOLATION="wanted")
    assert (answer["error"]["code"], answer["meta"]["enforcement"]) == ("E2030", SUPPORT.level)
    assert run(project, "harmless")["result"] == "helper"


def test_deep_folders_do_not_break_other_commands(project: Path) -> None:
    assert run(project, "plant", "1200")["ok"]
    try:
        assert run(project, "harmless")["result"] == "helper"
    finally:  # pytest cannot remove such a chain
        fd = os.open(project / "out", os.O_RDONLY)
        empty_folder(fd, max_seconds=300)
        os.close(fd)


def test_left_process_is_killed(project: Path) -> None:
    temp_dir = project.parent / "temp"
    temp_dir.mkdir()
    answer = run(project, "leave-process", TMPDIR=str(temp_dir))
    assert answer["ok"], answer
    assert answer["result"] not in list_processes()


def test_link_on_the_way_to_sys_path_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, secret = tmp_path / "out", tmp_path / "secret"
    for folder in (out, secret / "sub"):
        folder.mkdir(parents=True)
    (secret / "sub" / "module.py").touch()
    (out / "link").symlink_to(secret)
    (tmp_path / "alias").symlink_to(out)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "alias" / "link" / "sub")])
    for path, is_found in (("out", False), ("other", True)):
        access = resolve_access([f"fs:write:{tmp_path / path}"])
        code = runtime_paths.find_readable_paths(access).code
        assert (str(secret / "sub" / "module.py") in code) is is_found


@pytest.mark.parametrize("capability", ["fs:write", "fs:delete"])
def test_code_in_changeable_folders_is_not_readable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capability: str
) -> None:
    package = tmp_path / "package"
    for folder in (package, package / "out"):
        folder.mkdir()
        (folder / "__init__.py").touch()
    (tmp_path / "module.py").touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    everything = [str(tmp_path / "module.py"), str(package)]
    for path, expected in (
        ("other", everything),
        ("module.py", [str(package)]),
        ("package/out", [str(tmp_path / "module.py"), str(package / "__init__.py")]),
        ("package", [str(tmp_path / "module.py")]),
        (".", []),
    ):
        access = resolve_access([f"{capability}:{tmp_path / path}"])
        code = runtime_paths.find_readable_paths(access).code
        assert sorted(p for p in code if p.startswith(str(tmp_path))) == sorted(expected), path


def test_programs_and_certificates_in_writable_folders_are_not_readable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "program").write_text("#!/bin/sh\n")
    (tmp_path / "program").chmod(0o755)
    (tmp_path / "ca.pem").write_text("-----BEGIN CERTIFICATE-----\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))

    def find(*writable: str) -> set[str]:
        programs = runtime_paths.find_programs(writable)
        paths = {*programs, *runtime_paths.find_certificates(writable)}
        return {Path(path).name for path in paths if path.startswith(str(tmp_path))}

    assert find() == {"program", "ca.pem"}
    assert find(str(tmp_path)) == set()


@pytest.mark.parametrize("failure", [OSError(40, "loop"), RecursionError("deep"), ValueError("x")])
def test_sandbox_that_cannot_be_set_up_refuses_the_call(
    project: Path, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    from tooli import Tooli

    def fail(*_: object) -> None:
        raise failure

    monkeypatch.setenv("TOOLI_ISOLATION", "wanted")
    monkeypatch.setenv("TOOLI_STATE_DIR", str(project / "state"))
    monkeypatch.setattr(sandbox_runner.runtime_paths, "find_readable_paths", fail)
    app = Tooli("app", security_policy="off")

    @app.command()
    def work() -> str:
        return "ran"

    found = app.call("work")
    assert found.error is not None
    assert (found.error.code, "could not be set up" in found.error.message) == ("E2006", True)
