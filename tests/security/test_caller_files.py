"""Files that a caller names: path rules and planted links apply before anything reads them."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.integration.app_process import environment

from tooli.execution.sandbox.sandbox_runner import detect_sandbox_support
from tooli.testing import Case
from tooli.testing.app_interfaces import interfaces

SUPPORT = detect_sandbox_support()
needs_sandbox = pytest.mark.skipif(bool(SUPPORT.missing), reason="; ".join(SUPPORT.missing))
pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs links")

APP = '''
import os
from typing import Any
from pydantic import BaseModel
from tooli import SecretInput, StdinOr, Tooli
from tooli.annotations import Destructive

app = Tooli("app", version="1")
isolated = Tooli("isolated")
app.add_typer(isolated, name="isolated")
CAPABILITIES = ["fs:write:./out", "fs:read:./out"]


class Box(BaseModel):
    value: int = 1


def secret(token: SecretInput[str]) -> str:
    return token.reveal()[::-1]


def secrets(tokens: list[SecretInput[str]]) -> str:
    return tokens[0].reveal()[::-1]


def model(box: Box) -> str:
    return str(box.value)[::-1]


def models(boxes: list[Box]) -> str:
    return str(boxes[0].value)[::-1]


def objects(data: dict[str, Any]) -> str:
    return str(data)[::-1]


def nested(data: dict[str, dict[str, int]]) -> str:
    return str(data)[::-1]


def field(value: int = 1) -> str:
    return str(value)[::-1]


def text(source: StdinOr[str]) -> str:
    return source[::-1]


def texts(sources: list[StdinOr[str]]) -> str:
    return sources[0][::-1]


for function in (secret, secrets, model, models, objects, nested, field, text, texts):
    app.command(auth=[])(function)
    app.command(f"delete-{function.__name__}", auth=[], annotations=Destructive)(function)
    isolated.command(auth=[], isolation="required", capabilities=CAPABILITIES)(function)
    isolated.command(
        f"delete-{function.__name__}",
        auth=[],
        isolation="required",
        capabilities=CAPABILITIES,
        annotations=Destructive,
    )(function)


@isolated.command(auth=[], isolation="required", capabilities=CAPABILITIES)
def plant(name: str, target: str) -> None:
    """Leave a link behind."""
    os.symlink(target, f"out/{name}")


if __name__ == "__main__":
    app()
'''

FORMS = {
    "secret": ["secret", "@{}/text"],
    "list of secrets": ["secrets", "@{}/text"],
    "model": ["model", "@{}/box.json"],
    "list of models": ["models", "@{}/boxes.json"],
    "object": ["objects", "@{}/box.json"],
    "field of an object": ["nested", "--data.inner", "@{}/box.json"],
    "--input": ["field", "--input", "@{}/box.json"],
    "input": ["text", "{}/text"],
    "list of inputs": ["texts", "{}/text"],
}
MODES: dict[str, tuple[list[str], dict[str, str]]] = {
    "plain": ([], {}),
    "timeout": (["--timeout", "30"], {}),
    "key": (["--idempotency-key", "k"], {}),
    "dry run": (["--dry-run"], {}),
    "agent": ([], {"CLAUDECODE": "1"}),
    "strict": ([], {"TOOLI_SECURITY_POLICY": "strict"}),
}
FORMS_IN_ALL_MODES = ("secret", "model", "--input", "input")
CANARIES = ("YRANAC", "424242")


class Project:
    """A folder with an app, and a folder with files that it must not use."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.private = folder / "project", folder / "private"
        (self.folder / "out").mkdir(parents=True)
        self.private.mkdir()
        (self.folder / "app.py").write_text(APP)
        (self.private / "text").write_text("CANARY")
        (self.private / "box.json").write_text('{"value": 424242}')
        (self.private / "boxes.json").write_text('[{"value": 424242}]')

    def run(self, *argv: str, **variables: str) -> Any:
        state = str(self.folder.parent / "state")
        done = subprocess.run(
            [sys.executable, "app.py", *argv, "--json"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=environment(TOOLI_STATE_DIR=state, **variables),
            timeout=120,
            cwd=self.folder,
        )
        assert not any([canary in done.stdout for canary in CANARIES]), (argv, done.stdout)
        return json.loads(done.stdout)

    def assert_refused(self, code: str, *argv: str, **variables: str) -> None:
        answer = self.run(*argv, **variables)
        assert not answer["ok"], answer
        assert answer["error"]["code"] == code, answer
        assert answer["error"]["field"], answer


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def modes(form: str) -> list[tuple[list[str], dict[str, str]]]:
    return [*MODES.values()][: None if form in FORMS_IN_ALL_MODES else 1]


def fill(form: str, folder: str | Path) -> list[str]:
    return [part.format(folder) for part in FORMS[form]]


@pytest.mark.parametrize("form", FORMS)
class TestPathRules:
    def test_denied(self, project: Project, form: str) -> None:
        argv = fill(form, project.private)
        for more, variables in modes(form):
            variables = {**variables, "TOOLI_DENY_PATHS": str(project.private)}
            project.assert_refused("E2005", *argv, *more, **variables)
        delete = [f"delete-{argv[0]}", *argv[1:]]
        denied = {"TOOLI_DENY_PATHS": str(project.private)}
        project.assert_refused("E2005", *delete, "--yes", **denied)

    def test_not_allowed(self, project: Project, form: str) -> None:
        argv = fill(form, project.private)
        project.assert_refused("E2005", *argv, TOOLI_ALLOW_PATHS=str(project.folder))

    def test_link_to_a_denied_folder(self, project: Project, form: str) -> None:
        (project.folder / "link").symlink_to(project.private)
        argv = fill(form, "link")
        project.assert_refused("E2005", *argv, TOOLI_DENY_PATHS=str(project.private))

    def test_denial_is_logged(self, project: Project, form: str) -> None:
        argv = fill(form, project.private)
        denied = {"TOOLI_DENY_PATHS": str(project.private)}
        project.assert_refused("E2005", f"delete-{argv[0]}", *argv[1:], "--yes", **denied)
        rows = project.run("audit", "tail")["result"]
        assert [row["code"] for row in rows if row.get("event") == "denial"] == ["E2005"]

    def test_allowed_file_is_read(self, project: Project, form: str) -> None:
        os.rename(project.private, project.folder / "public")
        (project.folder / "public" / "text").write_text("fine")
        for name in ("box.json", "boxes.json"):
            path = project.folder / "public" / name
            path.write_text(path.read_text().replace("424242", "7"))
        for more, variables in modes(form):
            variables = {**variables, "TOOLI_DENY_PATHS": str(project.private)}
            answer = project.run(*fill(form, "public"), *more, **variables)
            assert answer["ok"], answer


@needs_sandbox
@pytest.mark.parametrize("form", FORMS)
class TestPlantedLinks:
    def test_link_to_a_folder(self, project: Project, form: str) -> None:
        assert project.run("isolated", "plant", "link", str(project.private))["ok"]
        argv = ["isolated", *fill(form, "out/link")]
        for more, variables in modes(form):
            project.assert_refused("E2003", *argv, *more, **variables)
        delete = ["isolated", f"delete-{argv[1]}", *argv[2:]]
        project.assert_refused("E2003", *delete, "--yes")

    def test_denied_path(self, project: Project, form: str) -> None:
        argv = ["isolated", *fill(form, project.private)]
        project.assert_refused("E2005", *argv, TOOLI_DENY_PATHS=str(project.private))

    def test_file_of_the_caller_is_read(self, project: Project, form: str) -> None:
        (project.private / "text").write_text("fine")
        for name in ("box.json", "boxes.json"):
            path = project.private / name
            path.write_text(path.read_text().replace("424242", "7"))
        for more, variables in modes(form):
            answer = project.run("isolated", *fill(form, project.private), *more, **variables)
            assert answer["ok"], answer


# ------------------------------------------------------------------ files without an end

ENDLESS = {"device": "/dev/zero", "sparse file": "sparse.json"}
READERS = {
    "model": ["model", "@{}"],
    "list of models": ["models", "@{}"],
    "object": ["objects", "@{}"],
    "payload": ["field", "--input", "@{}"],
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", ENDLESS)
def test_a_file_without_an_end_is_not_read_to_the_end(
    tmp_path: Path, kind: str, reader: str
) -> None:
    """An isolated command can put such a file into a folder that it may write to."""
    (tmp_path / "app.py").write_text(APP)
    with open(tmp_path / "sparse.json", "wb") as file:
        file.truncate(1 << 40)
    argv = [word.format(ENDLESS[kind]) for word in READERS[reader]]
    env = environment(TOOLI_STATE_DIR=str(tmp_path / "state"))
    done = subprocess.run(
        [sys.executable, "app.py", *argv, "--json"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        timeout=120,
        preexec_fn=limit_memory,
    )
    error = json.loads(done.stdout)["error"]
    assert error["code"] == "E1008"
    assert "it is larger than 64 MB" in error["message"]


def limit_memory() -> None:
    """Let a process that reads on and on fail early."""
    resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))


def test_stdin_without_an_end_is_not_read_to_the_end(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    with open("/dev/zero", "rb") as zero:
        done = subprocess.run(
            [sys.executable, "app.py", "field", "--input", "-", "--json"],
            cwd=tmp_path,
            env=environment(TOOLI_STATE_DIR=str(tmp_path / "state")),
            stdin=zero,
            capture_output=True,
            timeout=120,
            preexec_fn=limit_memory,
        )
    assert "it is larger than 64 MB" in json.loads(done.stdout)["error"]["message"]


# ------------------------------------------------------------------ whether a denied file exists

EXISTENCE_APP = """
from pathlib import Path
from typing import Annotated
import typer
from tooli import SecretInput, StdinOr, Tooli

app = Tooli("app")


@app.command()
def text(source: StdinOr[str]) -> str:
    return "read"


@app.command()
def secret(source: SecretInput[str]) -> str:
    return "read"


@app.command()
def path(source: Annotated[Path, typer.Argument(exists=True, dir_okay=False)]) -> str:
    return "read"


@app.command()
def paths(source: list[StdinOr[str]]) -> str:
    return "read"
"""


@pytest.mark.parametrize("tool", ["text", "secret", "path", "paths"])
def test_an_error_does_not_say_whether_a_denied_file_exists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str
) -> None:
    denied = tmp_path / "denied"
    denied.mkdir()
    (denied / "file").write_text("private")
    (denied / "folder").mkdir()
    (denied / "unreadable").touch(mode=0)
    (tmp_path / "link").symlink_to(denied)
    monkeypatch.setenv("TOOLI_DENY_PATHS", str(denied))
    names: dict[str, Any] = {"__name__": "existence"}
    exec(EXISTENCE_APP, names)
    found: dict[str, set[str]] = {}
    for name in ("file", "folder", "missing", "unreadable", "file/below", "missing/below"):
        for folder in (denied, tmp_path / "link"):
            value = f"@{folder}/{name}" if tool == "secret" else f"{folder}/{name}"
            case = Case(tool, {"source": [value] if tool == "paths" else value})
            for interface in interfaces(names["app"]):
                # Typer checks a path itself, and other interfaces take the value of a secret
                if tool == ("path" if interface.surface == "cli" else "secret"):
                    continue
                error = interface.send_case(case).envelope["error"]
                found.setdefault(interface.name, set()).add(error["code"])
    assert all(codes == {"E2005"} for codes in found.values()), found
