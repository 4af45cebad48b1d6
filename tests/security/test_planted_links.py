"""Links that an isolated command leaves behind, and what later calls of the app do with them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.integration.app_process import environment

from tooli import Tooli
from tooli.core.declared_capabilities import resolve_access
from tooli.errors import AuthError
from tooli.execution.sandbox.sandbox_runner import detect_sandbox_support
from tooli.inputs.output import Output

SUPPORT = detect_sandbox_support()
needs_sandbox = pytest.mark.skipif(bool(SUPPORT.missing), reason="; ".join(SUPPORT.missing))
pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs links")

APP = '''
import os
from pathlib import Path
from tooli import Output, SecretInput, StdinOr, Tooli

app = Tooli("app", security_policy=os.environ.get("POLICY", "off"))
more = Tooli("more")
app.add_typer(more, name="more")
ISOLATED = {"isolation": "required", "capabilities": ["fs:write:./out", "fs:delete:./out"]}


@app.command(**ISOLATED)
def plant(name: str, target: str) -> None:
    """Put a link into the folder."""
    path = Path("out", name)
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    path.symlink_to(target)


@app.command(**ISOLATED)
def write(target: Output, text: str = "changed") -> None:
    target.write_text(text)


@more.command(isolation="required", capabilities=["none"])
def write_other(target: Output) -> None:
    target.write_text("changed")


@app.command(isolation="required", capabilities=["none"])
def read(source: StdinOr[str]) -> str:
    return source


@app.command(isolation="required", capabilities=["none"])
def length(secret: SecretInput[str]) -> int:
    return len(secret.reveal())


@app.command(
    isolation="required",
    capabilities=["fs:write:./out", "fs:write:./out/data", "fs:delete:./out"],
)
def save() -> None:
    """Write below a declared path inside another declared path."""
    Path("out/data/file").write_text("changed")


@app.command(isolation="required", capabilities=["fs:read:./out/data"])
def load() -> str:
    """Read below a declared path that another command may replace."""
    return Path("out/data/file").read_text()


@app.command(auth=[], capabilities=["fs:read:./out/data"])
def load_here() -> str:
    """Read it without isolation."""
    return Path("out/data/file").read_text()


if __name__ == "__main__":
    app()
'''


class Project:
    """A folder with an app whose isolated commands may write to `out`, and files outside."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.outside = folder / "project", folder / "outside"
        self.out = self.folder / "out"
        (self.out / "data").mkdir(parents=True)
        self.outside.mkdir()
        (self.folder / "app.py").write_text(APP)
        self.file = self.outside / "file"
        self.file.write_text("secret")

    def run(self, *argv: str, policy: str = "off") -> Any:
        state = str(self.folder.parent / "state")
        done = subprocess.run(
            [sys.executable, "app.py", *argv, "--json"],
            capture_output=True,
            env=environment(TOOLI_STATE_DIR=state, POLICY=policy),
            timeout=120,
            cwd=self.folder,
        )
        return json.loads(done.stdout)

    def assert_refused(self, *argv: str, policy: str = "off") -> None:
        answer = self.run(*argv, policy=policy)
        assert not answer["ok"], answer
        assert answer["error"]["code"] == "E2003"
        assert " link " in answer["error"]["message"]
        assert sorted(os.listdir(self.outside)) == ["file"]
        assert self.file.read_text() == "secret"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


# ------------------------------------------------------------------ files of the caller


@needs_sandbox
@pytest.mark.parametrize("command", ["write", "more write-other"])
@pytest.mark.parametrize(
    ("name", "target", "path"),
    [
        ("report", "../../outside/file", "out/report"),
        ("report", "../../outside/new", "out/report"),
        ("folder", "../../outside", "out/folder/file"),
        ("folder", "../../outside", "out/folder/../outside/file"),
        ("a", "b", "out/a"),
        ("report", "../../outside/file", "link"),
        ("report", "../../outside/file", "./out/../out/data/../report"),
    ],
    ids=["file", "new_file", "folder", "parent_of_a_link", "chain", "own_link", "dots"],
)
def test_output(project: Project, command: str, name: str, target: str, path: str) -> None:
    assert project.run("plant", name, target)["ok"]
    if name == "a":
        assert project.run("plant", "b", str(project.file))["ok"]
    (project.folder / "link").symlink_to("out/report")
    project.assert_refused(*command.split(), path)


@needs_sandbox
def test_output_through_a_link_to_a_place_inside(project: Project) -> None:
    (project.out / "latest").symlink_to("data/report")
    (project.folder / "result").symlink_to("out/report")
    for path, target in (("out/latest", "data/report"), ("result", "report")):
        for command in ("write", "more write-other"):
            assert project.run(*command.split(), path)["ok"]
            assert (project.out / target).read_text() == "changed"
            (project.out / target).unlink()


@needs_sandbox
def test_output_through_a_link_elsewhere(project: Project) -> None:
    (project.folder / "results").symlink_to(project.outside)
    assert project.run("write", "results/report")["ok"]
    assert (project.outside / "report").read_text() == "changed"


@needs_sandbox
def test_input_through_a_link_to_a_place_inside(project: Project) -> None:
    (project.out / "file").write_text("inside")
    (project.out / "latest").symlink_to("file")
    assert project.run("read", "out/latest")["result"] == "inside"


@needs_sandbox
def test_input(project: Project) -> None:
    assert project.run("plant", "input", str(project.file))["ok"]
    project.assert_refused("read", "out/input")
    assert project.run("read", str(project.file))["result"] == "secret"


@needs_sandbox
def test_secret(project: Project) -> None:
    assert project.run("plant", "token", str(project.file))["ok"]
    project.assert_refused("length", "@out/token")
    assert project.run("length", f"@{project.file}")["result"] == 6


def test_links_of_an_output_are_found_once(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("file")
    output = Output(tmp_path / "link")
    assert output.tooli_real_path == str(tmp_path / "file")
    (tmp_path / "link").unlink()
    assert output.tooli_links == (str(tmp_path / "link"),)


# ------------------------------------------------------------------ declared paths


@needs_sandbox
@pytest.mark.parametrize("target", ["../../outside", "../../outside/new", "/"])
def test_declared_path(project: Project, target: str) -> None:
    assert project.run("plant", "data", target)["ok"]
    for command in ("save", "load"):
        project.assert_refused(command)


@needs_sandbox
def test_declared_path_under_strict(project: Project) -> None:
    assert project.run("plant", "data", "../../outside")["ok"]
    project.assert_refused("load-here", policy="strict")
    answer = project.run("load-here", policy="standard")
    assert "link" in answer["meta"]["warnings"][0]


@needs_sandbox
def test_declared_path_that_leads_to_a_place_inside(project: Project) -> None:
    assert project.run("plant", "data", "other")["ok"]
    (project.out / "other").mkdir()
    assert project.run("save")["ok"]
    assert (project.out / "other" / "file").read_text() == "changed"
    project.assert_refused("load")  # it may not read the folder


class TestResolveAccess:
    def resolve(self, folder: Path, *capabilities: str) -> Any:
        return resolve_access(capabilities, str(folder))

    def test_link_in_a_writable_folder(self, tmp_path: Path) -> None:
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "data").symlink_to("/usr")
        for name in ("read", "write", "delete"):
            capability = f"fs:{name}:out/data"
            for declared in ((capability, "fs:write:out"), ("fs:write:out", capability)):
                access = self.resolve(tmp_path, *declared)
                assert access.redirected == (capability,)
                assert access.writes == (str(tmp_path / "out"),)
                assert access.reads == access.deletes == ()

    def test_folder_below_a_link(self, tmp_path: Path) -> None:
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "a").symlink_to("/usr")
        assert self.resolve(tmp_path, "fs:write:out", "fs:read:out/a/lib").redirected
        assert self.resolve(tmp_path, "fs:write:out", "fs:read:out/a/..").redirected

    def test_link_that_only_a_person_can_have_made(self, tmp_path: Path) -> None:
        (tmp_path / "data").symlink_to("/usr")
        access = self.resolve(tmp_path, "fs:read:data", "fs:write:out", "fs:delete:.")
        assert access.reads == ("/usr",)
        assert not access.redirected

    def test_link_at_the_writable_path_itself(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "out").symlink_to("real")
        access = self.resolve(tmp_path, "fs:write:out", "fs:write:out/data")
        assert access.writes == (str(tmp_path / "real"), str(tmp_path / "real" / "data"))
        assert not access.redirected

    def test_writing_everywhere(self, tmp_path: Path) -> None:
        (tmp_path / "data").symlink_to("/usr")
        access = self.resolve(tmp_path, "fs:write", "fs:write:data", "fs:read:data")
        assert (access.reads, access.writes) == (("/usr",), None)

    def test_covered_by_another_path(self, tmp_path: Path) -> None:
        (tmp_path / "data").symlink_to("other")
        access = self.resolve(tmp_path, "fs:write:.", "fs:write:data", "fs:read", "fs:read:data")
        assert (access.reads, access.writes) == (None, (str(tmp_path),))
        assert not access.redirected


@needs_sandbox
def test_isolated_command_with_the_permissions_of_its_app(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    app = Tooli("app", permissions=["fs:write:./out", "fs:read"], security_policy="off")

    @app.command(isolation="required")
    def plant() -> None:
        os.symlink("/usr", "out/data")

    @app.command(isolation="required", capabilities=["fs:read:./out/data"])
    def look() -> list[str]:
        return os.listdir("out/data")

    app.call("plant").unwrap()
    with pytest.raises(AuthError, match="link"):
        app.call("look").unwrap()
