"""Whatever a tool does to stdin and stdout, the protocol's stream stays clean.

One thing cannot be kept from the client: a tool that ends the process with `os._exit` ends
the server, and the pending calls go unanswered.
"""

from __future__ import annotations

import pytest
from tests.integration.mcp.talk import HANDSHAKE_VERSION, STATELESS_VERSION, Talk, talk

NOISE = ["print", "write", "stdout", "buffer", "child", "shell", "fork", "thread"]
DAMAGE = ["replace", "close-stdout", "close"]


@pytest.fixture(
    scope="module", params=[HANDSHAKE_VERSION, STATELESS_VERSION, f"{HANDSHAKE_VERSION} SDK"]
)
def line(request: pytest.FixtureRequest):
    version, _, handed = request.param.partition(" ")
    with talk(version=version) as conversation:
        if handed:
            conversation.result("resources/list")
        yield conversation


@pytest.mark.parametrize("how", NOISE)
def test_noise_never_reaches_the_client(line: Talk, how: str) -> None:
    assert line.value("noisy", {"how": how}) == how  # Talk refuses whatever is no message
    assert line.value("add", {"a": 1}) == 2
    assert line.call("shout", {"word": "x"})["content"][0]["text"] == "X"
    assert line.heard == []


@pytest.mark.parametrize("version", [HANDSHAKE_VERSION, STATELESS_VERSION])
@pytest.mark.parametrize("how", DAMAGE)
def test_a_tool_that_spoils_stdout_does_not_spoil_the_stream(how: str, version: str) -> None:
    with talk(version=version) as line:
        assert line.value("noisy", {"how": how}) == how
        assert line.call("shout", {"word": "x"})["isError"] is False
        assert line.value("add", {"a": 1}) == 2
        assert line.end() == 0


def test_noise_goes_to_stderr() -> None:
    with talk() as line:
        for how in ("print", "write", "child", "shell", "fork"):
            line.value("noisy", {"how": how})
        line.end()
        assert line.err.count(b"noise\n") == 6


def test_a_tool_that_reads_stdin_finds_it_empty(line: Talk) -> None:
    assert line.value("noisy", {"how": "stdin"}) == "('', b'')"


def test_a_tool_may_end_the_process() -> None:
    with talk() as line:
        line.begin("noisy", {"how": "end"})
        assert line.rest() == []
        assert line.process.wait(60) == 7


def test_printing_calls_at_the_same_time_keep_their_texts_apart() -> None:
    with talk() as line:
        given = {line.begin("shout", {"word": f"w{i}"}): f"W{i}" for i in range(200)}
        for one, text in given.items():
            assert line.answer_to(one)["result"]["content"][0]["text"] == text
