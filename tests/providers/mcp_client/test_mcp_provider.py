"""MCPProvider: tools of programs that speak MCP, with a real process as the server."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from tests.providers.mcp_client.fakes import (
    SERVER,
    AnsweringPeer,
    RepeatingPeer,
    Servers,
    call_with,
    is_running,
    wait_until,
)

from tooli.annotations import OpenWorld, ReadOnly
from tooli.core.peer import InputRequired
from tooli.errors import ApprovalRequired, DefinitionError, DependencyError, TimeoutExceeded
from tooli.providers import MCPProvider
from tooli.providers.mcp_client import mcp_provider, server_session
from tooli.providers.mcp_client.server_process import ServerGone
from tooli.providers.mcp_client.server_session import RpcFailure
from tooli.schema.json_schema import input_schema, output_schema
from tooli.testing import invoke

if TYPE_CHECKING:
    from pathlib import Path

FORM_ANSWER = {"action": "accept", "content": {"name": "Ada"}}


# ------------------------------------------------------------------ calls


def test_call(servers: Servers, era: str) -> None:
    app = servers.make_app(era)
    assert app.options(yes=True).call("add", a=1, b=2).unwrap() == {"sum": 3}
    assert json.loads(app.options(yes=True).call("echo").unwrap()) == {}  # absent is not null
    echoed = app.options(yes=True).call("echo", text="é☃\u2028").unwrap()
    assert json.loads(echoed) == {"text": "é☃\u2028"}
    assert servers.starts == 1


def test_schemas_are_unchanged(servers: Servers) -> None:
    app = servers.make_app()
    tool = app.find("add")
    assert tool is not None
    integers = {"a": {"type": "integer"}, "b": {"type": "integer"}}
    assert input_schema(tool) == {"type": "object", "properties": integers}
    assert output_schema(tool)["required"] == ["sum"]


def test_invalid_arguments_are_refused_here(servers: Servers) -> None:
    result = servers.make_app().options(yes=True).call("add", a="x")
    assert result.error is not None and result.error.code == "E1003"
    assert not [line for line in servers.log() if line.startswith("call")]


def test_failure_of_a_tool(servers: Servers, era: str) -> None:
    error = servers.make_app(era).options(yes=True).call("fail").error
    assert error is not None
    assert (error.code, error.message) == ("E4000", "No such file.")


def test_content(servers: Servers) -> None:
    result = servers.make_app().options(yes=True).call("content").unwrap()
    kinds = [part.to_content_block()["type"] for part in result[:4]]
    assert kinds == ["text", "image", "resource_link", "resource"]
    assert result[4] == {"type": "image", "data": 7}  # not valid, so it is JSON


def test_calls_at_the_same_time(servers: Servers) -> None:
    app = servers.make_app()
    with ThreadPoolExecutor(8) as pool:
        sums = list(
            pool.map(lambda n: app.options(yes=True).call("add", a=n, b=n).unwrap(), range(40))
        )
    assert sums == [{"sum": 2 * n} for n in range(40)]
    assert servers.starts == 1


def test_unknown_tool_forgets_the_list(servers: Servers) -> None:
    provider = servers.make()
    app = servers.make_app()
    tool = app.find("add")
    assert tool is not None
    removed = next(iter(provider._make_tools([{"name": "gone", "inputSchema": {}}])))
    with pytest.raises(Exception, match="Unknown tool") as caught:
        removed.fn(tooli_context=_context(removed))
    assert getattr(caught.value, "code", "") == "E1000"
    assert provider._cache().load() is None


def _context(tool: Any) -> Any:
    from tooli.core.call import Call, Caller
    from tooli.pipeline.context import Context

    return Context(Call(tool, {}, Caller("mcp"), []))


# ------------------------------------------------------------------ effects


def test_hints_count_only_where_they_are_stricter(servers: Servers) -> None:
    app = servers.make_app()
    assert [tool.behavior.destructive for tool in app.catalog] == [True] * len(list(app.catalog))
    refused = app.call("add", a=1, b=2).error
    assert refused is not None and refused.code == "E1010"


def test_trusted_server(servers: Servers) -> None:
    app = servers.make_app(trusted=True)
    assert app.call("add", a=1, b=2).unwrap() == {"sum": 3}
    assert app.call("echo").error is not None


def test_declared_effects(servers: Servers) -> None:
    app = servers.make_app(annotations={"echo": ReadOnly | OpenWorld})
    assert app.call("echo", text="x").ok
    assert not app.call("fail").ok
    assert servers.make_app(annotations=ReadOnly).call("add").unwrap() == {"sum": 0}


# ------------------------------------------------------------------ the list of tools


def test_list_starts_no_server(servers: Servers, era: str) -> None:
    names = [tool.name for tool in servers.make_app(era).catalog]
    assert servers.starts == 1
    again = servers.make_app(era)
    assert [tool.name for tool in again.catalog] == names
    assert servers.starts == 1
    assert again.options(yes=True).call("add", a=1).unwrap() == {"sum": 1}
    assert servers.starts == 2


def test_list_depends_on_the_files_of_the_command(servers: Servers) -> None:
    script = servers.folder / "server.py"
    shutil.copy(SERVER, script)
    list(servers.make_app(script=script).catalog)
    script.write_text(SERVER.read_text().replace('tool("fail")', 'tool("fail"), tool("extra")'))
    assert servers.make_app(script=script).find("extra") is not None
    assert servers.starts == 2


def test_old_list_is_corrected_by_the_next_call(servers: Servers) -> None:
    provider = servers.make()
    list(provider.tools())
    known = provider._cache().load()
    assert known is not None
    provider._cache().save(known.replace(tools=[t for t in known.tools if t["name"] != "echo"]))
    app = servers.make_app()
    assert app.find("echo") is None
    assert app.options(yes=True).call("add", a=1).ok
    wait_until(lambda: len((provider._cache().load() or known.replace(tools=())).tools) > 13)
    assert servers.make_app().find("echo") is not None


def test_server_of_another_era_replaces_the_first_one(servers: Servers) -> None:
    script = servers.folder / "server.py"
    shutil.copy(SERVER, script)
    provider = servers.make(script=script)
    list(provider.tools())
    known = provider._cache().load()
    assert known is not None and known.version == "2025-11-25"
    provider._cache().save(known.replace(version="2026-07-28"))
    assert servers.make_app(script=script).options(yes=True).call("add").unwrap() == {"sum": 0}


def test_selection(servers: Servers) -> None:
    provider = servers.make(only=["a*", "ecco"], exclude=["ask"])
    assert [tool.name for tool in provider.tools()] == ["add"]
    assert "did you mean" in provider.problems["ecco"]


def test_invalid_schema_is_reported(servers: Servers) -> None:
    provider = servers.make()
    assert "broken" not in [tool.name for tool in provider.tools()]
    assert "must describe an object" in provider.problems["broken"]
    listed = [{"name": "a", "inputSchema": "x"}, {"name": "b", "inputSchema": {"type": "text"}}]
    assert provider._make_tools([*listed, {"name": "c"}])[0].name == "c"
    assert "must be a JSON object" in provider.problems["a"]
    assert "the name of a JSON type" in provider.problems["b"]


def test_check_asks_the_server_although_its_list_is_known(servers: Servers, tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    shutil.copy(SERVER, script)
    list(servers.make(script=script).tools())
    provider = servers.make(script=script)
    provider.check()
    script.write_text("raise SystemExit('the disk is full')\n")
    os.utime(script, (1, 1))
    with pytest.raises(DependencyError, match="the disk is full"):
        servers.make(script=script).check()


def test_changed_list(servers: Servers, era: str) -> None:
    app = servers.make_app(era)
    provider = servers.providers[0]
    changes: list[int] = []
    before = len(list(provider.tools()))
    provider.watch(lambda: changes.append(1))
    assert app.options(yes=True).call("change").unwrap() == "changed"
    wait_until(lambda: changes)
    assert len(list(provider.tools())) == before + 1


class ListingSession:
    """A session whose list of tools is an exception."""

    version = "2025-11-25"
    server_info: dict[str, Any] = {}

    def __init__(self, failure: Exception) -> None:
        self.failure = failure

    def list_tools(self, deadline: float) -> Any:
        raise self.failure

    def close(self, grace: float) -> None: ...

    def output_tail(self) -> dict[str, Any]:
        return {}


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        (TimeoutError(), "did not list its tools in time"),
        (ServerGone("it ended"), "failed: it ended"),
        (RpcFailure(-1, "no"), "it cannot list its tools: no"),
    ],
)
def test_list_that_fails(servers: Servers, failure: Exception, text: str) -> None:
    session: Any = ListingSession(failure)
    with pytest.raises(DependencyError, match=text):
        servers.make()._read_list(session, 0.0)


def test_server_without_tools(servers: Servers) -> None:
    provider = servers.make()
    session: Any = ListingSession(RpcFailure(-32601, "Method not found"))
    assert provider._read_list(session, 0.0)
    assert list(provider.tools()) == []
    assert provider._make_tools([{"inputSchema": {}}]) == []
    assert provider.problems == {"?": "a tool has no name"}


# ------------------------------------------------------------------ servers that fail


def failure(servers: Servers, *words: str, **options: Any) -> str:
    app = servers.make_app(*words, **options)
    assert list(app.catalog) == []
    return "\n".join(problem.message for problem in app.catalog.problems.values())


def test_program_that_is_not_installed(servers: Servers) -> None:
    provider = MCPProvider("no-such-program --flag")
    with pytest.raises(Exception, match="'no-such-program' is not installed"):
        provider.tools()
    with pytest.raises(Exception, match="its folder /nowhere does not exist"):
        servers.make(cwd="/nowhere").tools()


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        ("exit", "it ended .exit 1.. It has printed: cannot start: no licence"),
        ("noise", "it prints text that is not MCP. It has printed: Welcome to the server!"),
        ("old", "speaks version '1999-01-01' of MCP, which is not supported"),
    ],
)
def test_server_that_does_not_start(servers: Servers, fault: str, text: str) -> None:
    with pytest.raises(Exception, match=text):
        servers.make(fault).tools()
    assert fault == "noise" or text.partition(".")[0][:9] in failure(servers, fault)
    wait_until(lambda: not any(map(is_running, servers.pids)))


def test_silent_server(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_provider, "START_TIMEOUT_SECONDS", 0.3)
    with pytest.raises(Exception, match="did not answer in time after its start"):
        servers.make("silent").tools()
    wait_until(lambda: not any(map(is_running, servers.pids)))


@pytest.mark.parametrize("seconds", [0.05, 0.3])
def test_program_that_is_no_server(
    servers: Servers, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    """It prints text and stays open: it is not waited for as long as a slow server."""
    monkeypatch.setattr(server_session, "NOISE_SECONDS", seconds)
    code = "import sys; print('hello', flush=True); sys.stdin.read()"
    provider = MCPProvider([sys.executable, "-c", code], name="odd")
    text = "odd failed: it prints text that is not MCP, and does not answer. .*printed: hello"
    with pytest.raises(DependencyError, match=text) as caught:
        provider.tools()
    assert caught.value.details == {"stdout": "hello"}


def test_old_server_with_a_banner_ignores_the_probe(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_session, "NOISE_SECONDS", 0.3)
    code = """
import json, sys
print("Welcome!", flush=True)
for line in sys.stdin:
    message = json.loads(line)
    answers = {
        "initialize": {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {}},
        "tools/list": {"tools": [{"name": "a", "inputSchema": {"type": "object"}}]},
    }
    if message["method"] in answers:
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": answers[message["method"]]}
        print(json.dumps(answer), flush=True)
"""
    provider = MCPProvider([sys.executable, "-c", code], name="old")
    assert [tool.name for tool in provider.tools()] == ["a"]
    provider.close()


def test_server_with_a_banner(servers: Servers) -> None:
    assert servers.make_app("banner").options(yes=True).call("add", a=2).unwrap() == {"sum": 2}


def test_server_that_ends_at_the_probe(servers: Servers) -> None:
    assert servers.make_app("strict").options(yes=True).call("add", a=2).unwrap() == {"sum": 2}
    assert servers.starts == 2


def test_call_that_ends_the_server(servers: Servers, era: str) -> None:
    app = servers.make_app(era)
    error = app.options(yes=True).call("die").error
    assert error is not None and error.code == "E4040" and not error.is_retryable
    assert "it ended (exit 3). The call may have had effects" in error.message
    assert error.details == {"stderr": "fatal: the disk is full"}
    assert app.options(yes=True).call("add", a=1).unwrap() == {"sum": 1}
    assert servers.starts == 2


def test_only_read_only_calls_are_repeated(servers: Servers) -> None:
    error = servers.make_app().options(yes=True).call("die_once").error
    assert error is not None and error.code == "E4040"
    servers.log_file.with_name("server.log.died").unlink()
    assert servers.make_app(trusted=True).call("die_once").unwrap() == "alive"
    assert servers.log().count("call die_once") == 3


def test_server_that_was_killed_between_calls(servers: Servers) -> None:
    app = servers.make_app()
    assert app.options(yes=True).call("add").ok
    os.kill(servers.pids[0], signal.SIGKILL)
    session = servers.providers[0]._session
    assert session is not None
    session.ended.wait(60)
    assert app.options(yes=True).call("echo").ok
    assert servers.starts == 2


def test_message_that_is_too_large(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    from tooli.providers.mcp_client import server_process

    monkeypatch.setattr(server_process, "MAX_MESSAGE_BYTES", 1 << 20)
    app = servers.make_app()
    error = app.options(yes=True).call("large").error
    assert error is not None and "a message of more than 1 MB" in error.message
    assert app.options(yes=True).call("add").ok


def test_timeout_cancels_the_call(servers: Servers, era: str) -> None:
    app = servers.make_app(era, timeout=1.5)  # long enough for a busy machine to send the call
    error = app.options(yes=True).call("hang").error
    assert isinstance(error and error.to_exception(), TimeoutExceeded)
    wait_until(lambda: "cancelled hang" in servers.log())
    assert servers.starts == 1


def test_server_that_hangs_is_replaced(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_provider, "HEALTH_SECONDS", 0.3)
    app = servers.make_app(timeout=30)
    assert app.options(yes=True).call("add").ok
    os.kill(servers.pids[0], signal.SIGSTOP)
    error = app.options(yes=True, timeout=0.2).call("add").error
    assert error is not None and error.code == "E4050"
    wait_until(lambda: not is_running(servers.pids[0]))
    assert app.options(yes=True).call("add").ok


# ------------------------------------------------------------------ questions


def test_question_that_nobody_can_answer(servers: Servers, era: str) -> None:
    app = servers.make_app(era)
    error = app.options(yes=True).call("ask").error
    assert error is not None and error.code == "E2102"
    assert json.loads(error.details["result"]) == {"action": "decline"}
    error = app.options(yes=True).call("sample").error
    assert error is not None and error.details["asked"] == ["sampling/createMessage"]


def test_elicitation(servers: Servers, era: str) -> None:
    peer = AnsweringPeer({"elicitation/create": FORM_ANSWER})
    assert json.loads(call_with(servers.make_app(era), "ask", peer)) == FORM_ANSWER
    (question,) = peer.asked
    assert question.params()["message"] == "The MCP server fake asks: Who are you?"
    assert question.params()["requestedSchema"]["required"] == ["name"]


def test_sampling(servers: Servers, era: str) -> None:
    answer = {"role": "assistant", "content": {"type": "text", "text": "hello"}, "model": "m"}
    peer = AnsweringPeer({"sampling/createMessage": answer})
    assert json.loads(call_with(servers.make_app(era), "sample", peer)) == answer
    (question,) = peer.asked
    assert question.params()["maxTokens"] == 7 and question.params()["temperature"] == 0.5


def test_progress_and_log(servers: Servers, era: str) -> None:
    peer = AnsweringPeer()
    assert call_with(servers.make_app(era), "steps", peer) == "done"
    assert peer.reports == [(1, 2, "s1"), (2, 2, "s2")]
    assert peer.logs == [("warning", "almost done")]


def test_call_waits_for_the_answer_of_a_stateless_client(servers: Servers, era: str) -> None:
    app = servers.make_app(era)
    given: dict[str, object] = {}
    answers = {"elicitation/create": FORM_ANSWER}
    with pytest.raises(InputRequired) as caught:
        call_with(app, "ask", RepeatingPeer(answers, given))
    with pytest.raises(InputRequired):  # a call of its own, which asks as well
        call_with(app, "ask", RepeatingPeer(answers, {}))
    (key,) = caught.value.questions
    given[key] = FORM_ANSWER
    assert json.loads(call_with(app, "ask", RepeatingPeer(answers, given))) == FORM_ANSWER
    expected = 2 if era == "handshake" else 3  # the stateless server is asked again
    assert servers.log().count("call ask") == expected


def test_calls_that_ask_at_the_same_time(servers: Servers) -> None:
    app = servers.make_app()
    peers = [AnsweringPeer({"elicitation/create": FORM_ANSWER}) for _ in range(2)]
    with ThreadPoolExecutor(4) as pool:
        others = [pool.submit(call_with, app, "add", None, a=n) for n in range(8)]
        asked = pool.submit(call_with, app, "ask", peers[0])
        assert json.loads(asked.result()) == FORM_ANSWER
        assert [other.result() for other in others] == [{"sum": n} for n in range(8)]


def test_two_questions_that_cannot_be_told_apart_are_refused(servers: Servers) -> None:
    app = servers.make_app()
    hung = AnsweringPeer({"elicitation/create": FORM_ANSWER})
    from tooli.providers.mcp_client import server_session

    assert app.find("ask") is not None
    with ThreadPoolExecutor(2) as pool, pytest.MonkeyPatch.context() as patch:
        patch.setattr(server_session, "ATTRIBUTION_SECONDS", 0.2)
        hanging = pool.submit(app.options(yes=True).call, "hang")
        wait_until(lambda: "call hang" in servers.log())
        answer = json.loads(call_with(app, "ask", hung))
        assert "several calls" in answer["message"] and not hung.asked
        os.kill(servers.pids[0], signal.SIGKILL)
        assert not hanging.result().ok


# ------------------------------------------------------------------ processes


def test_environment(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_TOKEN", "hidden-1")
    monkeypatch.setenv("OTHER_TOKEN", "given-2")
    env = {"PLAIN": "@scope", "TOKEN": "env:OTHER_TOKEN"}
    app = servers.make_app(env=env)
    found = json.loads(call_with(app, "environment"))
    assert "SOME_TOKEN" not in found and "OTHER_TOKEN" not in found
    assert (found["PLAIN"], found["TOKEN"]) == ("@scope", "given-2")
    assert found["PATH"] == os.environ["PATH"]
    stored = "".join(p.read_text() for p in (servers.folder / "state" / "mcp-tools").iterdir())
    assert "given-2" not in stored


def test_server_that_repeats_its_secrets(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_TOKEN", "given-secret")
    monkeypatch.setenv("REGION", "eu-central")
    app = servers.make_app(env={"API_TOKEN": "env:OTHER_TOKEN", "REGION": "env:REGION"})
    result = invoke(app, "environment", "--yes", "--json")
    assert "given-secret" not in result.stdout + result.stderr
    assert "eu-central" in result.stdout


def test_missing_secret(servers: Servers) -> None:
    provider = servers.make(env={"TOKEN": "env:NO_SUCH_VARIABLE"})
    with pytest.raises(Exception, match="'env:NO_SUCH_VARIABLE' cannot be used") as caught:
        provider.tools()
    assert getattr(caught.value, "code", "") == "E2000"


@pytest.mark.parametrize("fault", ["handshake", "stubborn"])
def test_close_ends_the_server(servers: Servers, fault: str) -> None:
    app = servers.make_app(fault)
    assert app.options(yes=True).call("add").ok
    servers.providers[0].close()
    assert not is_running(servers.pids[0])
    servers.providers[0].close()


@pytest.mark.parametrize("ending", ["exit", "SIGTERM", "SIGKILL"])
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills the children as well")
def test_server_ends_with_this_process(servers: Servers, tmp_path: Path, ending: str) -> None:
    code = f"""
    import sys, time
    from tooli import Tooli
    from tooli.providers import MCPProvider
    app = Tooli("app")
    command = [sys.executable, "-S", "-E", {str(SERVER)!r}, "stubborn"]
    app.add_provider(MCPProvider(command, env={{"FAKE_LOG": {str(servers.log_file)!r}}}))
    assert app.options(yes=True).call("add").ok
    print("ready", flush=True)
    if {ending!r} != "exit":
        time.sleep(600)
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        (pid,) = servers.pids
        if ending != "exit":
            process.send_signal(getattr(signal, ending))
        process.wait()
    wait_until(lambda: not is_running(pid))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_process_starts_a_server_of_its_own(servers: Servers) -> None:
    app = servers.make_app()
    assert app.options(yes=True).call("add").ok
    provider = servers.providers[0]
    provider._pid = -1  # as in a forked process, whose threads are gone
    provider.close()  # that of the parent goes on
    assert is_running(servers.pids[0])
    assert app.options(yes=True).call("add").ok
    assert servers.starts == 2
    os.kill(servers.pids[0], signal.SIGKILL)


# ------------------------------------------------------------------ definitions


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"command_or_url": ""}, "must be a text, or a list of words"),
        ({"command_or_url": []}, "must be a text, or a list of words"),
        ({"command_or_url": ["a", 1]}, "must be a text, or a list of words"),
        ({"command_or_url": "a 'b"}, "No closing quotation"),
        ({"command_or_url": "http://"}, "is not an http or https URL"),
        ({"command_or_url": "https://u:p@h/mcp"}, "a user name or a password"),
        ({"command_or_url": "a", "headers": {}}, "headers= are for URLs"),
        ({"command_or_url": "http://h/", "env": {}}, "are for commands"),
        ({"command_or_url": "http://h/", "headers": {"Host": "x"}}, "cannot be|can be set"),
        ({"command_or_url": "http://h/", "headers": {"X": "a\nb"}}, "control character"),
        ({"command_or_url": "a", "env": {"A=B": "x"}}, "invalid variable"),
        ({"command_or_url": "a", "timeout": 0}, "must be more than 0"),
        ({"command_or_url": "a", "only": "add"}, "must be a list of names"),
    ],
)
def test_invalid_definitions(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(DefinitionError, match=text):
        MCPProvider(**arguments)


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("npx -y @modelcontextprotocol/server-memory", "server-memory"),
        ("uvx mcp-server-git@1.2 --repository .", "mcp-server-git"),
        (["/usr/bin/python3", "-m", "my_server"], "my_server"),
        ("my-server --flag", "my-server"),
        ("https://example.com:8443/mcp", "example.com:8443"),
    ],
)
def test_default_name(target: Any, name: str) -> None:
    assert MCPProvider(target).name == name


def test_unanswered_error_is_an_approval_error() -> None:
    from tooli.providers.mcp_client.caller_questions import unanswered_error

    assert isinstance(unanswered_error("The server", {"a"}, None), ApprovalRequired)
