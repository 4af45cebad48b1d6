"""Approvals with a person at a terminal, agents in processes of their own and real servers."""

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

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a terminal is needed")

APP = '''
import os
from pathlib import Path

from tooli import SecretInput, Tooli
from tooli.annotations import Destructive

app = Tooli("files", version="1.0")


@app.command(requires_approval=True, annotations=Destructive)
def delete(path: Path) -> str:
    """Delete a file."""
    with open(os.environ["NOTED"], "a") as noted:
        noted.write(f"{path}\\n")
    return f"deleted {path}"


@app.command(requires_approval=True, danger_level="high")
def clear(folder: Path) -> str:
    """Empty a folder."""
    with open(os.environ["NOTED"], "a") as noted:
        noted.write("cleared\\n")
    return "cleared"


clear.tooli_plan = lambda folder: {"removes": sorted(p.name for p in folder.iterdir())}


@app.command(annotations=Destructive)
def wipe(path: Path) -> str:
    """Wipe a file."""
    with open(os.environ["NOTED"], "a") as noted:
        noted.write("wiped\\n")
    return "wiped"


@app.command(requires_approval=True)
def pay(to: SecretInput[str]) -> str:
    """Pay somebody."""
    with open(os.environ["NOTED"], "a") as noted:
        noted.write(f"paid {to.reveal()}\\n")
    return "paid"


if __name__ == "__main__":
    app()
'''
AGENT = {"CLAUDECODE": "1"}


class Place:
    """A user's files: the app, its state and what its commands did."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.app = folder / "files.py"
        self.app.write_text(APP)
        self.noted = folder / "noted"
        self.env = environment(
            TERM="xterm-256color",
            NOTED=str(self.noted),
            TOOLI_STATE_DIR=str(folder / "state"),
            TOOLI_CONFIG="off",
        )

    @property
    def done(self) -> list[str]:
        return self.noted.read_text().splitlines() if self.noted.exists() else []

    def agent(self, *argv: str) -> dict[str, Any]:
        """The envelope that an agent gets."""
        done = run(self.app, *argv, env={**self.env, **AGENT})
        assert is_clean(done.err)
        return read_envelope(done.out)

    def refused(self, *argv: str) -> str:
        """The ID of the request for an agent's call."""
        error = self.agent(*argv)["error"]
        assert error["code"] == "E2101"
        return error["details"]["approval"]["id"]

    def human(self, *argv: str, answers: Any = (), **env: str) -> tuple[int, str]:
        done = run_interactive(self.app, *argv, answers=answers, env={**self.env, **env})
        assert is_clean(done.out)
        return done.code, done.out.decode()

    def grant(self, id: str) -> None:
        code, shown = self.human("approvals", "grant", id, answers=[typing_the_code(id)])
        assert code == 0, shown


def typing_the_code(id: str) -> tuple[bytes, Callable[[bytes], bytes]]:
    """Read the displayed code and type it, as a person does."""

    def answer(shown: bytes) -> bytes:
        (code,) = re.findall(rb"Type (\w{4}) to grant", shown)
        return code + b"\n"

    return f"to grant {id}: ".encode(), answer


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_granted_call_runs_once(place: Place) -> None:
    done = run(place.app, "delete", "a", "--yes", env={**place.env, **AGENT})
    assert done.code == 101
    approval = read_envelope(done.out)["error"]["details"]["approval"]
    assert place.done == []
    listed = read_envelope(run(place.app, "approvals", "list", env=place.env).out)["result"]
    assert [one["id"] for one in listed] == [approval["id"]]
    assert listed[0]["arguments"] == {"path": "a"}
    assert listed[0]["effects"] == ["destructive"]
    assert listed[0]["caller"] == "claude-code (cli)"
    assert approval["command"].endswith(f"files.py approvals grant {approval['id']}")
    code, shown = place.human(
        "approvals", "grant", approval["id"], answers=[typing_the_code(approval["id"])]
    )
    assert code == 0
    assert 'path: "a"\r\n  effects: destructive' in shown.partition("Type ")[0]
    assert place.agent("delete", "a")["result"] == "deleted a"
    assert place.done == ["a"]
    assert place.agent("delete", "a")["error"]["code"] == "E2101"
    assert place.done == ["a"]


def test_a_human_denies(place: Place) -> None:
    id = place.refused("delete", "a")
    code, _ = place.human("approvals", "deny", id)
    assert code == 0
    assert place.agent("delete", "a")["error"]["code"] == "E2103"
    assert place.refused("delete", "a") != id
    assert place.done == []


def test_the_plan_is_displayed_and_bound(place: Place) -> None:
    stock = place.folder / "stock"
    stock.mkdir()
    (stock / "old").touch()
    id = place.refused("clear", str(stock))
    code, shown = place.human("approvals", "grant", id, answers=[typing_the_code(id)])
    assert code == 0
    assert '- "old"' in shown.partition("Type ")[0]
    (stock / "precious").touch()
    assert place.agent("clear", str(stock))["error"]["code"] == "E2101"
    assert place.done == []
    (stock / "precious").unlink()
    assert place.agent("clear", str(stock))["result"] == "cleared"


@pytest.mark.parametrize("location", ["env:TO", "@to.txt"])
def test_a_secret_is_bound_by_its_value(place: Place, location: str) -> None:
    def put(text: str) -> None:
        place.env["TO"] = text
        (place.folder / "to.txt").write_text(text)

    argument = location.replace("@", f"@{place.folder}/")
    put("friend")
    place.grant(place.refused("pay", argument))
    put("foe")
    assert place.agent("pay", argument)["error"]["code"] == "E2101"
    put("friend")
    assert place.agent("pay", argument)["result"] == "paid"
    assert place.done == ["paid friend"]


def test_a_person_confirms_a_dangerous_command_by_its_name(place: Place) -> None:
    stock = place.folder / "stock"
    stock.mkdir()
    (stock / "old").touch()
    asked = b"Type clear to run it: "
    code, shown = place.human("clear", str(stock), answers=[(asked, b"y\n")])
    assert (code, place.done) == (101, [])
    code, shown = place.human("clear", str(stock), answers=[(asked, b"clear\n")])
    assert (code, place.done) == (0, ["cleared"])
    assert '- "old"' in shown.partition("Type ")[0]
    kept = place.folder / "state" / "approvals"
    assert not kept.exists(), "a prompt creates no request"


def test_the_launcher_grants_for_an_app_with_one_command(place: Place) -> None:
    """Such an app has no built-in commands: `approvals grant` would be its arguments."""
    one = place.folder / "one.py"
    one.write_text(
        "from tooli import Tooli\napp = Tooli('one')\n"
        "@app.command(requires_approval=True)\ndef one(names: list[str]) -> str:\n"
        "    return ' '.join(names)\napp()\n"
    )
    done = run(one, "a", "b", "--json", env=place.env)
    approval = read_envelope(done.out)["error"]["details"]["approval"]
    assert approval["command"] == f"tooli approvals grant {approval['id']}"
    launcher = place.folder / "launcher.py"
    launcher.write_text("from tooli.launcher import main\nmain()\n")
    listed = read_envelope(run(launcher, "approvals", "list", env=place.env).out)["result"]
    assert [row["tool"] for row in listed] == ["one.one"]
    id = approval["id"]
    argv = ("approvals", "grant", id)
    assert run(launcher, *argv, env=place.env).code == 101
    assert run_interactive(launcher, *argv, answers=[typing_the_code(id)], env=place.env).code == 0
    assert read_envelope(run(one, "a", "b", "--json", env=place.env).out)["result"] == "a b"


@pytest.mark.parametrize("decision", ["grant", "deny"])
def test_a_decision_is_logged(place: Place, decision: str) -> None:
    log = place.folder / "here.jsonl"
    place.env["TOOLI_AUDIT_LOG"] = str(log)
    id = place.refused("delete", "a")
    place.human(
        "approvals", decision, id, answers=[typing_the_code(id)] if decision == "grant" else ()
    )
    events = [json.loads(line)["event"] for line in log.read_text().splitlines()]
    assert events[0] == "approval_requested"
    assert events[-1] == {"grant": "approval_granted", "deny": "approval_denied"}[decision]
    assert not (place.folder / "state" / "audit").exists()


def test_a_decision_is_not_logged_with_the_policy_off(place: Place) -> None:
    place.app.write_text(APP.replace('version="1.0"', 'security_policy="off"'))
    place.grant(place.refused("delete", "a"))
    assert place.agent("delete", "a")["result"] == "deleted a"
    assert not (place.folder / "state" / "audit").exists()


@pytest.mark.parametrize("policy", ["standard", "strict"])
def test_a_decision_that_cannot_be_logged(place: Place, policy: str) -> None:
    place.app.write_text(
        APP.replace('version="1.0"', f'security_policy="{policy}"').replace(
            "(requ", "(auth=[], requ"
        )
    )
    id = place.refused("delete", "a")
    place.env["TOOLI_AUDIT_LOG"] = str(place.folder)  # no file
    code, shown = place.human("approvals", "grant", id, answers=[typing_the_code(id)])
    assert "audit log cannot be written" in shown
    waiting = read_envelope(run(place.app, "approvals", "list", env=place.env).out)["result"]
    assert (code, len(waiting)) == ((0, 0) if policy == "standard" else (75, 1))


class TestGranting:
    """Only a person at a terminal can grant; no flag and no variable can."""

    @pytest.mark.parametrize("flags", [[], ["--yes"], ["--yes", "--json"], ["--no-input"]])
    def test_not_without_a_terminal(self, place: Place, flags: list[str]) -> None:
        id = place.refused("delete", "a")
        argv = ("approvals", "grant", id, *flags)
        done = run(place.app, *argv, stdin=f"{id}\ny\nyes\n".encode(), env=place.env)
        assert done.code == 101
        assert read_envelope(done.out)["error"]["code"] == "E2102"
        assert place.refused("delete", "a") == id

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
    def test_not_if_an_agent_is_detected(
        self, place: Place, flags: list[str], env: dict[str, str]
    ) -> None:
        id = place.refused("delete", "a")
        code, shown = place.human("approvals", "grant", id, *flags, **env)
        assert code == 101
        assert "E2102" in shown
        assert "Type " not in shown
        assert place.refused("delete", "a") == id

    @pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="it looks into /proc")
    def test_not_in_a_child_process_of_an_agent(self, place: Place) -> None:
        """An agent that sets no variable is found among the parent processes."""
        id = place.refused("delete", "a")
        script = place.folder / "codex"
        script.write_text(
            "import subprocess, sys\nsys.exit(subprocess.run(sys.argv[1:]).returncode)\n"
        )
        argv = [str(part) for part in command(place.app, "approvals", "grant", id)]
        done = run_interactive(script, *argv, env=place.env)
        assert done.code == 101
        assert b"an agent was detected" in done.out

    @pytest.mark.parametrize("typed", [b"\n", b"y\n", b"yes\n", b"\x04", b"0000\n"])
    def test_not_by_anything_but_the_code(self, place: Place, typed: bytes) -> None:
        id = place.refused("delete", "a")
        asked = f"to grant {id}: ".encode()
        code, shown = place.human("approvals", "grant", id, "--yes", answers=[(asked, typed)])
        assert code == 101
        assert "E2103" in shown
        assert place.refused("delete", "a") == id
        assert place.done == []

    def test_not_by_a_code_that_was_typed_before(self, place: Place) -> None:
        """Each prompt has a new code."""
        id = place.refused("delete", "a")
        asked = f"to grant {id}: ".encode()
        codes = {
            re.findall(
                r"Type (\w{4}) to grant",
                place.human("approvals", "grant", id, answers=[(asked, b"\n")])[1],
            )[0]
            for _ in range(4)
        }
        assert len(codes) > 1

    @pytest.mark.parametrize("id", ["", "x", "../../x", "abcd-efgh", "*"])
    def test_an_unknown_request(self, place: Place, id: str) -> None:
        place.refused("delete", "a")
        code, shown = place.human("approvals", "grant", "--", id)
        assert code == 10
        assert "E3010" in shown

    def test_another_app_of_the_same_user(self, place: Place) -> None:
        id = place.refused("delete", "a")
        other = place.folder / "other.py"
        other.write_text(APP.replace('"files"', '"other"'))
        done = run(other, "approvals", "list", env=place.env)
        assert read_envelope(done.out).get("result", []) == []
        assert read_envelope(run(other, "approvals", "deny", id, env=place.env).out)["error"][
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
    def test_no_variable_runs_the_call(self, place: Place, env: dict[str, str]) -> None:
        done = run(place.app, "delete", "a", "--yes", "--json", env={**place.env, **env})
        assert read_envelope(done.out)["ok"] is False
        assert place.done == []


class TestRunning:
    def test_one_of_many_processes_uses_a_grant(self, place: Place) -> None:
        """One of many processes that repeat a granted call runs it."""
        count = 8
        for turn in range(3):
            place.noted.unlink(missing_ok=True)
            place.grant(place.refused("delete", f"f{turn}"))
            argv = command(place.app, "delete", f"f{turn}", "--json")
            processes = [
                subprocess.Popen(argv, env={**place.env, **AGENT}, stdout=subprocess.PIPE)
                for _ in range(count)
            ]
            found = [
                read_envelope(process.communicate(timeout=PROCESS_TIMEOUT)[0])
                for process in processes
            ]
            assert [one["ok"] for one in found].count(True) == 1
            assert {one["error"]["code"] for one in found if not one["ok"]} == {"E2101"}
            assert place.done == [f"f{turn}"]

    def test_concurrent_refusals_share_a_request(self, place: Place) -> None:
        argv = command(place.app, "delete", "a", "--json")
        processes = [
            subprocess.Popen(argv, env={**place.env, **AGENT}, stdout=subprocess.PIPE)
            for _ in range(6)
        ]
        found = [
            read_envelope(process.communicate(timeout=PROCESS_TIMEOUT)[0]) for process in processes
        ]
        requested = {one["error"]["details"]["approval"]["id"] for one in found}
        listed = read_envelope(run(place.app, "approvals", "list", env=place.env).out)["result"]
        assert requested == {one["id"] for one in listed}

    def test_another_caller_does_not_use_it(self, place: Place) -> None:
        place.grant(place.refused("delete", "a"))
        for env in ({}, {"GEMINI_CLI": "1"}, {"TOOLI_CALLER": "codex"}):
            done = run(place.app, "delete", "a", "--json", env={**place.env, **env})
            assert read_envelope(done.out)["error"]["code"] == "E2101"
        assert place.done == []

    def test_fast_path_and_typer_path(self, place: Place) -> None:
        """The fast path and Typer make the same call of a command line."""
        typer_first = place.folder / "with_typer.py"
        typer_first.write_text("import typer\n" + APP)
        place.grant(place.refused("delete", "a"))
        done = run(typer_first, "delete", "a", "--json", env={**place.env, **AGENT})
        assert read_envelope(done.out)["result"] == "deleted a"

    @pytest.mark.parametrize("mode", ["--json", "--jsonl", "--text", "--plain"])
    def test_every_mode(self, place: Place, mode: str) -> None:
        done = run(place.app, "delete", "a", mode, env={**place.env, **AGENT})
        assert done.code == 101
        assert b"approvals grant" in done.out + done.err
        place.grant(place.refused("delete", "a"))
        done = run(place.app, "delete", "a", mode, env={**place.env, **AGENT})
        assert (done.code, b"deleted a" in done.out) == (0, True)

    @pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may all")
    def test_a_read_only_state_directory(self, place: Place) -> None:
        (place.folder / "state").mkdir(mode=0o500)
        assert place.agent("delete", "a")["error"]["code"] == "E2104"

    def test_a_state_directory_that_is_a_file(self, place: Place) -> None:
        (place.folder / "state").touch()
        error = place.agent("delete", "a")["error"]
        assert (error["code"], place.done) == ("E2104", [])
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


def test_over_http(place: Place) -> None:
    with start_app(place.app, "api", "serve", "--port", "0", env=place.env) as server:
        port = _port(server)
        status, found = post(port, "/tools/delete?yes=true", b'{"path": "a"}')
        assert (status, found["error"]["code"]) == (428, "E2101")
        id = found["error"]["details"]["approval"]["id"]
        assert found["error"]["details"]["approval"]["command"] == f"files approvals grant {id}"
        assert post(port, "/tools/delete", b'{"path": "a"}')[1]["error"] == found["error"]
        place.grant(id)
        assert post(port, "/tools/delete", b'{"path": "b"}')[0] == 428
        assert place.done == []
        status, found = post(port, "/tools/delete", b'{"path": "a"}')
        assert (status, found["result"]) == (200, "deleted a")
        assert post(port, "/tools/delete", b'{"path": "a"}')[0] == 428
        assert place.done == ["a"]
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


# ------------------------------------------------------------------ a dry run wins


@pytest.mark.parametrize("command_name", ["wipe", "delete"])
def test_a_dry_run_does_nothing_with_any_other_flag(place: Place, command_name: str) -> None:
    target = place.folder / "f"
    target.write_text("precious")
    for flags in (
        ["--yes", "--dry-run"],
        ["--dry-run", "--yes"],
        ["--dry-run", "--yes", "--jsonl"],
    ):
        done = run(place.app, command_name, str(target), *flags, env=place.env)
        assert done.code == 0
        assert b'"basis":"declared"' in done.out
    code, shown = place.human(command_name, str(target), "--yes", "--dry-run")
    assert code == 0
    assert "Run it?" not in shown
    assert (place.done, target.read_text()) == ([], "precious")
