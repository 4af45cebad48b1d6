"""A guard in a Typer callback in front of an isolated command, with every kind of sandbox."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest
from tests.execution.sandbox import hide_syscalls
from tests.execution.sandbox.test_bwrap import LANDLOCK, SUPPORT, working_bubblewrap
from tests.integration.app_process import environment, run
from tests.integration.mcp.stdio_client import HANDSHAKE_VERSION, STATELESS_VERSION, connect
from tests.integration.mcp_http.http_process import run_server

pytestmark = pytest.mark.skipif(bool(SUPPORT.missing), reason="; ".join(SUPPORT.missing))

APP = '''
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import typer

HERE = Path(__file__).parent
if "HIDDEN_SYSCALLS" in os.environ:
    sys.path.insert(0, os.environ["HIDDEN_SYSCALLS"])
    import hide_syscalls

    hide_syscalls.hide(444, 445, 446)

from tooli import Tooli
from tooli.execution.sandbox import bwrap

bwrap.BWRAP_DIRS = (os.environ["BUBBLEWRAP"],) if "BUBBLEWRAP" in os.environ else ()

POLICY = os.environ.get("POLICY", "standard")
app = Tooli("guarded", security_policy=POLICY)


def access() -> list[str]:
    """Return what can be done with files that the command does not declare."""
    if POLICY == "strict":  # the call would fail
        return []
    attempts = {
        "read": lambda: (HERE / "secret").read_text(),
        "write": lambda: (HERE / "secret").write_text("changed"),
        "create": lambda: (HERE / "created").write_text("x"),
    }
    done = []
    for name, attempt in attempts.items():
        try:
            attempt()
            done.append(name)
        except OSError:
            pass
    return done


def show_version(value: bool) -> None:
    if value:
        print("version 7")
        raise typer.Exit()


@app.callback()
def main(
    ctx: typer.Context,
    password: str = "",
    version: bool = typer.Option(False, "--version", callback=show_version, is_eager=True),
) -> None:
    print("callback out")
    print("callback err", file=sys.stderr)
    if password != "open":
        print("access denied", file=sys.stderr)
        raise typer.Exit(3)
    ctx.obj = access()


@app.command(isolation="required", capabilities=[f"fs:read:{HERE}/own"], auth=[])
def plain(name: str) -> dict[str, object]:
    """Return what the function can access."""
    print("function out")
    own = (HERE / "own").read_text()
    return {"name": name, "own": own, "access": access()}


@app.command(isolation="required", auth=[])
def printed(name: str) -> None:
    """Print a text."""
    print(f"hello {name}")


@app.command(isolation="required", auth=[])
def with_context(ctx: typer.Context, name: str) -> dict[str, object]:
    """Return what the callback could access."""
    return {"name": name, "callback": ctx.obj, "params": ctx.params}


@app.command(isolation="required", auth=[])
def items(name: str) -> Iterator[str]:
    """Yield items."""
    for number in range(3):
        yield f"{name}{number}"


if __name__ == "__main__":
    if sys.argv[1:2] == ["CALL"]:
        with open("answer.json", "w") as file:
            answer = app.call(sys.argv[2], **json.loads(sys.argv[3]))
            error = None if answer.error is None else {"code": answer.error.code}
            document = {"result": answer.result, "error": error, "meta": answer.meta}
            json.dump(document, file, default=str)
    else:
        app()
'''


class Sandbox(NamedTuple):
    """A kind of sandbox: the value of `meta.enforcement`, and variables that select it."""

    level: str
    variables: dict[str, str]


@pytest.fixture(params=["landlock", "bwrap"])
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    """Each kind of sandbox that works here."""
    if request.param == "landlock":
        return Sandbox(SUPPORT.level, {})
    assert LANDLOCK == "444,445,446"
    folder = str(Path(hide_syscalls.__file__).parent)
    return Sandbox("bwrap", {"HIDDEN_SYSCALLS": folder, "BUBBLEWRAP": working_bubblewrap()})


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """The app, next to a file that the command declares and one that it does not."""
    (tmp_path / "own").write_text("own")
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "guarded.py").write_text(APP)
    return tmp_path / "guarded.py"


def call_in_python(script: Path, variables: dict[str, str], tool: str, **given: Any) -> Any:
    done = run(
        script, "CALL", tool, json.dumps(given), env=environment(**variables), cwd=script.parent
    )
    assert done.code == 0, done.err
    return json.loads((script.parent / "answer.json").read_text())


def call_with_mcp(version: str) -> Callable[..., Any]:
    def call(script: Path, variables: dict[str, str], tool: str, **given: Any) -> Any:
        env = environment(**variables)
        with connect(script, version, env=env, cwd=script.parent) as client:
            answer = client.result("tools/call", {"name": tool, "arguments": given})
            if answer.get("isError"):
                return {"error": client.failure(tool, given)}
            return {**answer["structuredContent"], "meta": answer["_meta"]["io.tooli/meta"]}

    return call


def call_over_http(script: Path, variables: dict[str, str], tool: str, **given: Any) -> Any:
    with run_server(script, interface=("api",), **variables) as server:
        url = f"{server.url.rstrip('/')}/tools/{tool}"
        return httpx2.post(url, json=given, timeout=300).json()


INTERFACES = {
    "python": call_in_python,
    "mcp": call_with_mcp(HANDSHAKE_VERSION),
    "mcp-stateless": call_with_mcp(STATELESS_VERSION),
    "http": call_over_http,
}


@pytest.fixture(params=INTERFACES)
def call(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """A function that calls a tool over an interface and returns the envelope."""
    return INTERFACES[request.param]


def assert_untouched(script: Path) -> None:
    assert (script.parent / "secret").read_text() == "secret"
    assert not (script.parent / "created").exists()


def test_guard_and_function_run_in_the_sandbox(
    script: Path, sandbox: Sandbox, call: Callable[..., Any]
) -> None:
    refused = call(script, sandbox.variables, "plain", name="x", password="wrong")
    assert refused["error"]["code"] == "E4001"
    done = call(script, sandbox.variables, "plain", name="x", password="open")
    assert done["result"] == {"name": "x", "own": "own", "access": []}
    assert done["meta"]["enforcement"] == sandbox.level
    done = call(script, sandbox.variables, "with_context", name="x", password="open")
    assert done["result"] == {"name": "x", "callback": [], "params": {"name": "x"}}
    assert_untouched(script)


@pytest.mark.parametrize("tool", ["printed", "items"])
def test_output_and_items_are_returned(script: Path, sandbox: Sandbox, tool: str) -> None:
    expected = {"printed": "callback out\nhello x", "items": ["x0", "x1", "x2"]}[tool]
    done = call_over_http(script, sandbox.variables, tool, name="x", password="open")
    assert done["result"] == expected
    done = call_with_mcp(HANDSHAKE_VERSION)(
        script, sandbox.variables, tool, name="x", password="wrong"
    )
    assert done["error"]["code"] == "E4001"
    assert "access denied" in done["error"]["message"]


@pytest.mark.parametrize("name", ["mcp", "http"])
def test_a_callback_can_end_the_call_with_a_text(script: Path, sandbox: Sandbox, name: str) -> None:
    """The process of the function reports that the function did not run."""
    done = INTERFACES[name](script, sandbox.variables, "plain", name="x", version=True)
    assert done["result"] == "version 7"


def test_the_strict_policy_allows_what_typer_does(script: Path, call: Callable[..., Any]) -> None:
    """Typer changes a variable of the environment, which the command does not declare."""
    done = call(script, {"POLICY": "strict"}, "plain", name="x", password="open")
    assert done.get("error") is None
    assert done["meta"].get("warnings") is None


def test_the_command_line_has_the_guard(script: Path, sandbox: Sandbox) -> None:
    """Typer runs the callbacks before the sandbox starts. With bubblewrap they would be lost."""
    env = environment(**sandbox.variables)
    done = run(script, "plain", "x", "--json", env=env, cwd=script.parent)
    assert done.code == 3
    done = run(script, "--password", "open", "plain", "x", "--json", env=env, cwd=script.parent)
    answer = json.loads(done.out)
    if sandbox.level == "bwrap":
        assert answer["error"]["code"] == "E2006"
        assert "the callbacks of the app have run already" in answer["error"]["message"]
        return
    assert answer["result"] == {"name": "x", "own": "own", "access": []}
    assert answer["meta"]["enforcement"] == sandbox.level
    assert b"callback out\nfunction out\n" in done.err
