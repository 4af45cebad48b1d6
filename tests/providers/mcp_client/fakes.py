"""Apps with providers of fake MCP servers, and callers that can be asked."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tooli import Tooli
from tooli.core.call import Call, Caller
from tooli.core.peer import InputRequired, Peer
from tooli.pipeline.context import Context
from tooli.providers import MCPProvider

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tooli.core.peer import Question

SERVER = Path(__file__).with_name("fake_server.py")
PATIENCE = 60.0


class Servers:
    """Makes providers of the fake server, and reads what the servers have logged."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log_file = folder / "server.log"
        self.providers: list[MCPProvider] = []

    def make(self, *words: str, script: Path = SERVER, **options: Any) -> MCPProvider:
        """Return a provider of the fake server."""
        env = {"FAKE_LOG": str(self.log_file), **options.pop("env", {})}
        command = [sys.executable, "-S", "-E", str(script), *words]
        provider = MCPProvider(command, **{"name": "fake", "env": env, **options})
        self.providers.append(provider)
        return provider

    def make_app(self, *words: str, **options: Any) -> Tooli:
        """Return an app with the tools of the fake server."""
        app = Tooli("app")
        app.add_provider(self.make(*words, **options))
        return app

    def log(self) -> list[str]:
        """Return the lines that the servers have logged."""
        return self.log_file.read_text().splitlines() if self.log_file.exists() else []

    @property
    def starts(self) -> int:
        """How many servers were started."""
        return sum(line.startswith("start") for line in self.log())

    @property
    def pids(self) -> list[int]:
        """The processes of the servers."""
        return [int(line.split()[1]) for line in self.log() if line.startswith("start")]

    def close(self) -> None:
        """End all servers."""
        for provider in self.providers:
            provider.close()


def wait_until(condition: Callable[[], object]) -> None:
    """Wait until a condition is true; fail after a minute."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


def is_running(pid: int) -> bool:
    """True if a process exists and has not ended."""
    try:
        os.kill(pid, 0)
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


class AnsweringPeer(Peer):
    """A client that answers questions, and notes what it gets."""

    def __init__(self, answers: Mapping[str, object] | None = None) -> None:
        self.answers = answers or {}
        self.asked: list[Question] = []
        self.reports: list[tuple[Any, ...]] = []
        self.logs: list[tuple[str, object]] = []

    def supports(self, method: str) -> bool:
        return method in self.answers

    def ask(self, questions: Mapping[str, Question]) -> Mapping[str, object]:
        self.asked += questions.values()
        return {key: self.answers[question.method] for key, question in questions.items()}

    def progress(self, done: float, total: float | None, message: str | None) -> None:
        self.reports.append((done, total, message))

    def log(self, level: str, data: object) -> None:
        self.logs.append((level, data))


class RepeatingPeer(AnsweringPeer):
    """A client of a stateless version: its call ends with the questions, and comes again."""

    def __init__(self, answers: Mapping[str, object], given: dict[str, object]) -> None:
        super().__init__(answers)
        self.given = given

    def has_answer(self, key: str) -> bool:
        return key in self.given

    def ask(self, questions: Mapping[str, Question]) -> Mapping[str, object]:
        if not all(key in self.given for key in questions):
            raise InputRequired(questions)
        return {key: self.given[key] for key in questions}


def call_with(app: Tooli, name: str, peer: Peer | None = None, **arguments: Any) -> Any:
    """Call the function of a tool with a client, without the stages."""
    tool = app.find(name)
    assert tool is not None
    call = Call(tool, arguments, Caller("mcp"), [], peer=peer)
    return tool.fn(**arguments, tooli_context=Context(call))
