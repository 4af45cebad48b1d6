"""Approvals with a user at a terminal, agents as processes, and real servers."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.integration.app_process import (
    PROCESS_TIMEOUT,
    command,
    environment,
    is_clean,
    read_envelope,
    run,
    run_interactive,
    start_app,
)

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a terminal")

APP = '''
import os
from pathlib import Path

from tooli import SecretInput, Tooli
from tooli.annotations import Destructive
from tooli.errors import InputError

app = Tooli("files", version="1.0")


@app.command(requires_approval=True, annotations=Destructive)
def delete(path: Path) -> str:
    """Delete a file."""
    with open(os.environ["EFFECTS"], "a") as effects:
        effects.write(f"{path}\\n")
    return f"deleted {path}"


@app.command(requires_approval=True, danger_level="high")
def clear(folder: Path) -> str:
    """Empty a folder."""
    with open(os.environ["EFFECTS"], "a") as effects:
        effects.write("cleared\\n")
    return "cleared"


clear.tooli_plan = lambda folder: {"removes": sorted(p.name for p in folder.iterdir())}


@app.command(annotations=Destructive)
def wipe(path: Path) -> str:
    """Wipe a file."""
    with open(os.environ["EFFECTS"], "a") as effects:
        effects.write("wiped\\n")
    return "wiped"


@app.command(requires_approval=True)
def pay(to: SecretInput[str]) -> str:
    """Pay somebody."""
    with open(os.environ["EFFECTS"], "a") as effects:
        effects.write(f"paid {to.reveal()}\\n")
    return "paid"


@app.command(requires_approval=True)
def charge(token: SecretInput[str]) -> str:
    """Charge somebody, and ask for the secret as if it was missing."""
    with open(os.environ["EFFECTS"], "a") as effects:
        effects.write("charged\\n")
    errors = [{"code": "E1002", "field": "token"}]
    raise InputError("missing", code="E1002", details={"errors": errors})


if __name__ == "__main__":
    app()
'''
AGENT = {"CLAUDECODE": "1"}


class Project:
    """A folder with the app, its state and a log of the effects of its commands."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.app = folder / "files.py"
        self.app.write_text(APP)
        self.effects_log = folder / "effects"
        self.env = environment(
            TERM="xterm-256color",
            EFFECTS=str(self.effects_log),
            TOOLI_STATE_DIR=str(folder / "state"),
            TOOLI_CONFIG="off",
        )

    @property
    def effects(self) -> list[str]:
        """What the commands did."""
        return self.effects_log.read_text().splitlines() if self.effects_log.exists() else []

    def run_as_agent(self, *argv: str) -> dict[str, Any]:
        """Run a command as an agent and return its envelope."""
        done = run(self.app, *argv, env={**self.env, **AGENT})
        assert is_clean(done.err)
        return read_envelope(done.out)

    def request_approval(self, *argv: str) -> str:
        """Run a command as an agent and return the ID of the approval request."""
        error = self.run_as_agent(*argv)["error"]
        assert error["code"] == "E2101"
        return error["details"]["approval"]["id"]

    def run_as_user(self, *argv: str, answers: Any = (), **env: str) -> tuple[int, str]:
        """Run a command at a terminal and return its exit code and output."""
        done = run_interactive(self.app, *argv, answers=answers, env={**self.env, **env})
        assert is_clean(done.out)
        return done.code, done.out.decode()

    def grant(self, id: str) -> None:
        """Grant a request at a terminal."""
        code, shown = self.run_as_user("approvals", "grant", id, answers=[type_the_code(id)])
        assert code == 0, shown


def type_the_code(id: str) -> tuple[bytes, Callable[[bytes], bytes]]:
    """Return the prompt for the code and a function that types the displayed code."""

    def answer(shown: bytes) -> bytes:
        (code,) = re.findall(rb"Type (\w{4}) to grant", shown)
        return code + b"\n"

    return f"to grant {id}: ".encode(), answer


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_granted_call_runs_once(project: Project) -> None:
    done = run(project.app, "delete", "a", "--yes", env={**project.env, **AGENT})
    assert done.code == 101
    approval = read_envelope(done.out)["error"]["details"]["approval"]
    assert project.effects == []
    listed = read_envelope(run(project.app, "approvals", "list", env=project.env).out)["result"]
    assert [one["id"] for one in listed] == [approval["id"]]
    assert listed[0]["arguments"] == {"path": "a"}
    assert listed[0]["effects"] == ["destructive"]
    assert listed[0]["caller"] == "claude-code (cli)"
    assert approval["command"].endswith(f"files.py approvals grant {approval['id']}")
    code, shown = project.run_as_user(
        "approvals", "grant", approval["id"], answers=[type_the_code(approval["id"])]
    )
    assert code == 0
    displayed = shown.partition("Type ")[0]
    assert f'in the folder {os.path.realpath(".")}\r\n  path: "a"\r\n' in displayed
    assert f'  path: "{os.path.realpath("a")}"\r\n        is: "missing"\r\n' in displayed
    assert "effects: destructive" in displayed
    assert project.run_as_agent("delete", "a")["result"] == "deleted a"
    assert project.effects == ["a"]
    assert project.run_as_agent("delete", "a")["error"]["code"] == "E2101"
    assert project.effects == ["a"]


def test_denied_call_does_not_run(project: Project) -> None:
    id = project.request_approval("delete", "a")
    code, _ = project.run_as_user("approvals", "deny", id)
    assert code == 0
    assert project.run_as_agent("delete", "a")["error"]["code"] == "E2103"
    assert project.request_approval("delete", "a") != id
    assert project.effects == []


def test_grant_applies_to_the_displayed_plan(project: Project) -> None:
    stock = project.folder / "stock"
    stock.mkdir()
    (stock / "old").touch()
    id = project.request_approval("clear", str(stock))
    code, shown = project.run_as_user("approvals", "grant", id, answers=[type_the_code(id)])
    assert code == 0
    assert '- "old"' in shown.partition("Type ")[0]
    (stock / "precious").touch()
    assert project.run_as_agent("clear", str(stock))["error"]["code"] == "E2101"
    assert project.effects == []
    (stock / "precious").unlink()
    assert project.run_as_agent("clear", str(stock))["result"] == "cleared"


@pytest.mark.parametrize("location", ["env:TO", "@to.txt"])
def test_grant_applies_to_the_value_of_a_secret(project: Project, location: str) -> None:
    def set_secret(text: str) -> None:
        project.env["TO"] = text
        (project.folder / "to.txt").write_text(text)

    argument = location.replace("@", f"@{project.folder}/")
    set_secret("friend")
    project.grant(project.request_approval("pay", argument))
    set_secret("foe")
    assert project.run_as_agent("pay", argument)["error"]["code"] == "E2101"
    set_secret("friend")
    assert project.run_as_agent("pay", argument)["result"] == "paid"
    assert project.effects == ["paid friend"]


def test_user_confirms_a_dangerous_command_by_its_name(project: Project) -> None:
    stock = project.folder / "stock"
    stock.mkdir()
    (stock / "old").touch()
    asked = b"Type clear to run it: "
    code, shown = project.run_as_user("clear", str(stock), answers=[(asked, b"y\n")])
    assert (code, project.effects) == (101, [])
    code, shown = project.run_as_user("clear", str(stock), answers=[(asked, b"clear\n")])
    assert (code, project.effects) == (0, ["cleared"])
    assert '- "old"' in shown.partition("Type ")[0]
    kept = project.folder / "state" / "approvals"
    assert not kept.exists(), "a prompt creates no request"


def test_function_cannot_make_the_user_run_it_again(project: Project) -> None:
    (project.folder / "token").write_text("t")
    argument = f"@{project.folder / 'token'}"
    code, shown = project.run_as_user("charge", argument, answers=[(b"Run it?", b"y\n")])
    assert (code, project.effects) == (2, ["charged"])
    assert "not shown" not in shown


def test_launcher_grants_for_an_app_with_one_command(project: Project) -> None:
    """Such an app has no built-in commands: `approvals grant` would be its arguments."""
    one = project.folder / "one.py"
    one.write_text(
        "from tooli import Tooli\napp = Tooli('one')\n"
        "@app.command(requires_approval=True)\ndef one(names: list[str]) -> str:\n"
        "    return ' '.join(names)\napp()\n"
    )
    done = run(one, "a", "b", "--json", env=project.env)
    approval = read_envelope(done.out)["error"]["details"]["approval"]
    assert approval["command"] == f"tooli approvals grant {approval['id']}"
    launcher = project.folder / "launcher.py"
    launcher.write_text("from tooli.launcher import main\nmain()\n")
    listed = read_envelope(run(launcher, "approvals", "list", env=project.env).out)["result"]
    assert [row["tool"] for row in listed] == ["one.one"]
    id = approval["id"]
    argv = ("approvals", "grant", id)
    assert run(launcher, *argv, env=project.env).code == 101
    assert run_interactive(launcher, *argv, answers=[type_the_code(id)], env=project.env).code == 0
    assert read_envelope(run(one, "a", "b", "--json", env=project.env).out)["result"] == "a b"


@pytest.mark.parametrize("decision", ["grant", "deny"])
def test_decision_is_logged(project: Project, decision: str) -> None:
    log = project.folder / "here.jsonl"
    project.env["TOOLI_AUDIT_LOG"] = str(log)
    id = project.request_approval("delete", "a")
    project.run_as_user(
        "approvals", decision, id, answers=[type_the_code(id)] if decision == "grant" else ()
    )
    events = [json.loads(line)["event"] for line in log.read_text().splitlines()]
    assert events[0] == "approval_requested"
    assert events[-1] == {"grant": "approval_granted", "deny": "approval_denied"}[decision]
    assert not (project.folder / "state" / "audit").exists()


def test_decision_is_not_logged_if_the_policy_is_off(project: Project) -> None:
    project.app.write_text(APP.replace('version="1.0"', 'security_policy="off"'))
    project.grant(project.request_approval("delete", "a"))
    assert project.run_as_agent("delete", "a")["result"] == "deleted a"
    assert not (project.folder / "state" / "audit").exists()


@pytest.mark.parametrize("policy", ["standard", "strict"])
def test_unwritable_audit_log_blocks_decisions_under_the_strict_policy(
    project: Project, policy: str
) -> None:
    project.app.write_text(
        APP.replace('version="1.0"', f'security_policy="{policy}"').replace(
            "(requ", "(auth=[], requ"
        )
    )
    id = project.request_approval("delete", "a")
    project.env["TOOLI_AUDIT_LOG"] = str(project.folder)  # a folder, not a file
    code, shown = project.run_as_user("approvals", "grant", id, answers=[type_the_code(id)])
    assert "audit log cannot be written" in shown
    waiting = read_envelope(run(project.app, "approvals", "list", env=project.env).out)["result"]
    assert (code, len(waiting)) == ((0, 0) if policy == "standard" else (75, 1))


class TestGranting:
    """Only a user at a terminal can grant a request; flags and variables cannot."""

    @pytest.mark.parametrize("flags", [[], ["--yes"], ["--yes", "--json"], ["--no-input"]])
    def test_refused_without_a_terminal(self, project: Project, flags: list[str]) -> None:
        id = project.request_approval("delete", "a")
        argv = ("approvals", "grant", id, *flags)
        done = run(project.app, *argv, stdin=f"{id}\ny\nyes\n".encode(), env=project.env)
        assert done.code == 101
        assert read_envelope(done.out)["error"]["code"] == "E2102"
        assert project.request_approval("delete", "a") == id

    @pytest.mark.parametrize(
        ("flags", "env"),
        [
            (["--no-input"], {}),
            (["--yes", "--no-input"], {}),
            ([], {"TOOLI_NO_INPUT": "1"}),
            ([], {"CLAUDECODE": "1"}),
            ([], {"CLAUDECODE": "1", "TOOLI_CALLER": "human"}),
            ([], {"AI_AGENT": "anything"}),
            ([], {"TOOLI_CALLER": "my-agent"}),
        ],
    )
    def test_refused_if_an_agent_is_detected(
        self, project: Project, flags: list[str], env: dict[str, str]
    ) -> None:
        id = project.request_approval("delete", "a")
        code, shown = project.run_as_user("approvals", "grant", id, *flags, **env)
        assert code == 101
        assert "E2102" in shown
        assert "Type " not in shown
        assert project.request_approval("delete", "a") == id

    @pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc")
    def test_refused_in_a_child_process_of_an_agent(self, project: Project) -> None:
        """An agent that sets no variable is found among the parent processes."""
        id = project.request_approval("delete", "a")
        script = project.folder / "codex"
        script.write_text(
            "import subprocess, sys\nsys.exit(subprocess.run(sys.argv[1:]).returncode)\n"
        )
        argv = [str(part) for part in command(project.app, "approvals", "grant", id)]
        done = run_interactive(script, *argv, env=project.env)
        assert done.code == 101
        assert b"an agent was detected" in done.out

    @pytest.mark.parametrize("typed", [b"\n", b"y\n", b"yes\n", b"\x04", b"0000\n"])
    def test_refused_without_the_displayed_code(self, project: Project, typed: bytes) -> None:
        id = project.request_approval("delete", "a")
        asked = f"to grant {id}: ".encode()
        code, shown = project.run_as_user(
            "approvals", "grant", id, "--yes", answers=[(asked, typed)]
        )
        assert code == 2
        assert "E1003" in shown
        assert project.request_approval("delete", "a") == id
        assert project.effects == []

    def test_code_is_random(self, project: Project) -> None:
        """Each prompt displays a new code."""
        id = project.request_approval("delete", "a")
        asked = f"to grant {id}: ".encode()
        codes = {
            re.findall(
                r"Type (\w{4}) to grant",
                project.run_as_user("approvals", "grant", id, answers=[(asked, b"\n")])[1],
            )[0]
            for _ in range(4)
        }
        assert len(codes) > 1

    @pytest.mark.parametrize("id", ["", "x", "../../x", "abcd-efgh", "*"])
    def test_unknown_request_is_not_found(self, project: Project, id: str) -> None:
        project.request_approval("delete", "a")
        code, shown = project.run_as_user("approvals", "grant", "--", id)
        assert code == 10
        assert "E3010" in shown

    def test_requests_of_another_app_are_not_found(self, project: Project) -> None:
        id = project.request_approval("delete", "a")
        other = project.folder / "other.py"
        other.write_text(APP.replace('"files"', '"other"'))
        done = run(other, "approvals", "list", env=project.env)
        assert read_envelope(done.out).get("result", []) == []
        assert read_envelope(run(other, "approvals", "deny", id, env=project.env).out)["error"][
            "code"
        ] == ("E3010")

    @pytest.mark.parametrize(
        "env",
        [
            {"TOOLI_APPROVED": "1"},
            {"TOOLI_YES": "true"},
            {"TOOLI_APPROVE": "true", "TOOLI_HUMAN_IN_THE_LOOP": "false"},
            {"TOOLI_SECURITY_POLICY": "off"},
            {"TOOLI_CALLER": "human"},
            {"TOOLI_SEAL_KEY": "0" * 64},
        ],
    )
    def test_environment_variables_do_not_grant(
        self, project: Project, env: dict[str, str]
    ) -> None:
        done = run(project.app, "delete", "a", "--yes", "--json", env={**project.env, **env})
        assert read_envelope(done.out)["ok"] is False
        assert project.effects == []


class TestRunning:
    def test_one_of_many_processes_uses_a_grant(self, project: Project) -> None:
        """One of many processes that repeat a granted call runs it."""
        count = 8
        for turn in range(3):
            project.effects_log.unlink(missing_ok=True)
            project.grant(project.request_approval("delete", f"f{turn}"))
            argv = command(project.app, "delete", f"f{turn}", "--json")
            processes = [
                subprocess.Popen(argv, env={**project.env, **AGENT}, stdout=subprocess.PIPE)
                for _ in range(count)
            ]
            found = [
                read_envelope(process.communicate(timeout=PROCESS_TIMEOUT)[0])
                for process in processes
            ]
            assert [one["ok"] for one in found].count(True) == 1
            assert {one["error"]["code"] for one in found if not one["ok"]} == {"E2101"}
            assert project.effects == [f"f{turn}"]

    def test_concurrent_refusals_share_a_request(self, project: Project) -> None:
        argv = command(project.app, "delete", "a", "--json")
        processes = [
            subprocess.Popen(argv, env={**project.env, **AGENT}, stdout=subprocess.PIPE)
            for _ in range(6)
        ]
        found = [
            read_envelope(process.communicate(timeout=PROCESS_TIMEOUT)[0]) for process in processes
        ]
        requested = {one["error"]["details"]["approval"]["id"] for one in found}
        listed = read_envelope(run(project.app, "approvals", "list", env=project.env).out)["result"]
        assert requested == {one["id"] for one in listed}

    def test_grant_applies_to_one_caller(self, project: Project) -> None:
        project.grant(project.request_approval("delete", "a"))
        for env in ({}, {"GEMINI_CLI": "1"}, {"TOOLI_CALLER": "codex"}):
            done = run(project.app, "delete", "a", "--json", env={**project.env, **env})
            assert read_envelope(done.out)["error"]["code"] == "E2101"
        assert project.effects == []

    def test_grant_applies_on_fast_path_and_typer_path(self, project: Project) -> None:
        """The fast path and the Typer path create the same request."""
        project.grant(project.request_approval("delete", "a"))
        project.app.write_text("import typer\n" + APP)
        done = run(project.app, "delete", "a", "--json", env={**project.env, **AGENT})
        assert read_envelope(done.out)["result"] == "deleted a"

    @pytest.mark.parametrize("mode", ["--json", "--jsonl", "--text", "--plain"])
    def test_grant_applies_in_every_output_mode(self, project: Project, mode: str) -> None:
        done = run(project.app, "delete", "a", mode, env={**project.env, **AGENT})
        assert done.code == 101
        assert b"approvals grant" in done.out + done.err
        project.grant(project.request_approval("delete", "a"))
        done = run(project.app, "delete", "a", mode, env={**project.env, **AGENT})
        assert (done.code, b"deleted a" in done.out) == (0, True)

    @pytest.mark.skipif(
        not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root can write everywhere"
    )
    def test_call_fails_with_a_read_only_state_directory(self, project: Project) -> None:
        (project.folder / "state").mkdir(mode=0o500)
        assert project.run_as_agent("delete", "a")["error"]["code"] == "E2104"

    def test_call_fails_if_the_state_directory_is_a_file(self, project: Project) -> None:
        (project.folder / "state").touch()
        error = project.run_as_agent("delete", "a")["error"]
        assert (error["code"], project.effects) == ("E2104", [])
        assert "TOOLI_STATE_DIR" in error["suggestion"]["fix"]


# ------------------------------------------------------------------ servers


def post(port: int, path: str, body: bytes) -> tuple[int, dict[str, Any]]:
    import http.client
    import json

    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PROCESS_TIMEOUT)
    try:
        connection.request("POST", path, body, {"content-type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def test_grant_allows_one_call_over_http(project: Project) -> None:
    with start_app(project.app, "api", "serve", "--port", "0", env=project.env) as server:
        port = _port(server)
        status, found = post(port, "/tools/delete?yes=true", b'{"path": "a"}')
        assert (status, found["error"]["code"]) == (428, "E2101")
        id = found["error"]["details"]["approval"]["id"]
        assert found["error"]["details"]["approval"]["command"] == f"files approvals grant {id}"
        assert post(port, "/tools/delete", b'{"path": "a"}')[1]["error"] == found["error"]
        project.grant(id)
        assert post(port, "/tools/delete", b'{"path": "b"}')[0] == 428
        assert project.effects == []
        status, found = post(port, "/tools/delete", b'{"path": "a"}')
        assert (status, found["result"]) == (200, "deleted a")
        assert post(port, "/tools/delete", b'{"path": "a"}')[0] == 428
        assert project.effects == ["a"]
        server.terminate()


def _port(server: subprocess.Popen[bytes]) -> int:
    assert server.stderr is not None
    seen = b""
    for line in server.stderr:
        seen += line
        found = re.search(rb"127\.0\.0\.1:(\d+)", line)
        if found:
            threading.Thread(target=server.stderr.read, daemon=True).start()
            return int(found[1])
    raise AssertionError(seen)


# ------------------------------------------------------------------ dry runs


@pytest.mark.parametrize("command_name", ["wipe", "delete"])
def test_dry_run_takes_precedence_over_yes(project: Project, command_name: str) -> None:
    target = project.folder / "f"
    target.write_text("precious")
    for flags in (
        ["--yes", "--dry-run"],
        ["--dry-run", "--yes"],
        ["--dry-run", "--yes", "--jsonl"],
    ):
        done = run(project.app, command_name, str(target), *flags, env=project.env)
        assert done.code == 0
        assert b'"basis":"declared"' in done.out
    code, shown = project.run_as_user(command_name, str(target), "--yes", "--dry-run")
    assert code == 0
    assert "Run it?" not in shown
    assert (project.effects, target.read_text()) == ([], "precious")
