"""tooli.testing: helpers for the tests of users."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer

from tooli import Context, NotFoundError, Tooli
from tooli.annotations import Destructive
from tooli.errors import DefinitionError
from tooli.testing import (
    Case,
    Interface,
    InterfaceResponse,
    assert_envelope_snapshot,
    assert_examples,
    assert_help_snapshot,
    assert_parity,
    assert_schema_snapshot,
    interfaces,
    invoke,
    parity,
    register_interface,
    run,
)


def make_app(**settings: Any) -> Tooli:
    app = Tooli("shop", version="1.0", **settings)

    @app.command(examples=[{"args": ["tea", "--count", "2"], "description": "Two teas."}])
    def buy(item: str, count: int = 1) -> dict[str, Any]:
        """Buy something."""
        if item == "moon":
            raise NotFoundError("no moon")
        return {"item": item, "count": count}

    @app.command()
    def echo() -> str:
        """Print what is on stdin."""
        return sys.stdin.read()

    @app.command()
    def say(text: str) -> None:
        """Print."""
        print(text)

    @app.command()
    def count(n: int) -> Iterator[int]:
        """Count."""
        yield from range(n)

    @app.command()
    def world() -> dict[str, Any]:
        """Return what a process sees."""
        return {"argv": sys.argv, "env": dict(os.environ), "tty": sys.stdout.isatty()}

    @app.command()
    def spoil(how: str) -> int:
        """Fail in several ways."""
        return SPOILS[how]()

    @app.command(annotations=Destructive)
    def burn(ctx: Context) -> str:
        """Destroy."""
        return "ash"

    return app


def _exit() -> int:
    sys.exit("bye")


def _close() -> int:
    sys.stdout.close()
    sys.stderr.close()
    return 1


def _environment() -> int:
    os.environ["SPOILED"] = "1"
    os.environ.pop("PATH", None)
    sys.argv = ["spoiled"]
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise RuntimeError("after all that")


def _streams() -> int:
    sys.stdout = sys.stderr = sys.stdin = None  # type: ignore[assignment]
    raise ValueError("no streams")


SPOILS = {"exit": _exit, "close": _close, "environment": _environment, "streams": _streams}


# ------------------------------------------------------------------ invoke


def test_a_call_without_a_terminal_is_answered_in_json() -> None:
    done = invoke(make_app(), "buy", "tea", "--count", "2")
    assert done.ok
    assert done.exit_code == 0
    assert done.result == {"item": "tea", "count": 2}
    assert done.error is None
    assert done.envelope["meta"]["tool"] == "shop.buy"
    assert done.stderr == ""
    assert done.exception is None
    assert done.argv == ("shop", "buy", "tea", "--count", "2")


def test_a_failure_has_its_error_and_its_exit_code() -> None:
    done = invoke(make_app(), "buy", "moon")
    assert not done.ok
    assert done.exit_code == 10
    assert done.result is None
    assert done.error is not None
    assert done.error["code"] == "E3010"


def test_modes() -> None:
    app = make_app()
    assert invoke(app, "count", "3", mode="jsonl").lines == [0, 1, 2]
    assert invoke(app, "count", "3", mode="plain").stdout == "0\n1\n2\n"
    assert invoke(app, "say", "hi").stdout == "hi\n"
    assert invoke(app, "say", "hi", mode="json").result == "hi"


def test_stdin() -> None:
    assert invoke(make_app(), "echo", input="naïve").result == "naïve"
    assert invoke(make_app(), "echo", input=b"raw").result == "raw"
    assert invoke(make_app(), "echo", mode="json").envelope["ok"]


def test_the_process_of_the_tests_is_not_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TOOLI_CALLER", "TOOLI_OUTPUT", "CLAUDECODE", "CI", "AI_AGENT"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("MINE", "kept")
    world = invoke(make_app(), "world", env={"ADDED": "x", "MINE": None}, mode="json").result
    assert world["argv"] == ["shop", "world"]
    assert world["tty"] is False
    assert world["env"]["ADDED"] == "x"
    seen = {"TOOLI_CALLER", "CLAUDECODE", "CI", "AI_AGENT", "MINE"} & world["env"].keys()
    assert not seen
    assert os.environ["MINE"] == "kept"
    assert os.environ["TOOLI_CALLER"] == "1"


def test_a_test_can_say_who_calls() -> None:
    done = invoke(make_app(), "say", "hi", env={"TOOLI_CALLER": "robot"})
    assert done.result == "hi"
    assert done.envelope["meta"]["caller_id"] == "robot"


@pytest.mark.parametrize("how", SPOILS)
@pytest.mark.parametrize("mode", ["json", "text"])
def test_the_process_is_as_it_was(how: str, mode: str) -> None:
    before = _surroundings()
    invoke(make_app(), "spoil", how, mode=mode)
    assert _surroundings() == before


def test_a_framework_flag_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    before = _surroundings()
    assert invoke(make_app(), "buy", "tea", "--no-color", "--json").ok
    assert _surroundings() == before


def _surroundings() -> tuple[Any, ...]:
    streams = (sys.stdin, sys.stdout, sys.stderr)
    return (*streams, sys.argv, dict(os.environ), sys.excepthook, signal.getsignal(signal.SIGTERM))


def test_system_exit_stays_inside() -> None:
    done = invoke(make_app(), "spoil", "exit", mode="text")
    assert done.exit_code == 1
    assert "bye" in done.stderr


def test_an_exception_that_leaves_the_app_is_told_as_a_process_would() -> None:
    done = invoke(make_app(pretty_exceptions_enable=False), "spoil", "environment", mode="text")
    assert done.exit_code == 1
    assert isinstance(done.exception, RuntimeError)
    assert "after all that" in done.stderr


def test_an_answer_that_is_no_json_fails_the_test_and_is_shown() -> None:
    with pytest.raises(AssertionError, match=r"not JSON[\s\S]*hi"):
        _ = invoke(make_app(), "say", "hi").envelope


def test_more_than_one_document_is_no_envelope() -> None:
    with pytest.raises(AssertionError, match="not JSON"):
        _ = invoke(make_app(), "count", "2", mode="jsonl").envelope


def test_invoking_from_another_thread() -> None:
    done: list[Any] = []
    thread = threading.Thread(target=lambda: done.append(invoke(make_app(), "buy", "tea")))
    thread.start()
    thread.join()
    assert done[0].ok


async def test_invoking_inside_a_loop() -> None:
    assert invoke(make_app(), "buy", "tea").ok
    assert assert_parity(make_app(), Case("count", {"n": 2}))["result"] == [0, 1]


# ------------------------------------------------------------------ run

SCRIPT = """
import os, subprocess, sys
from tooli import Tooli

app = Tooli("script")

@app.command()
def noisy(code: int = 0) -> str:
    os.write(1, b"below Python\\n")
    subprocess.run([sys.executable, "-c", "print('a child')"])
    if code:
        os._exit(code)
    return sys.stdin.read()

@app.command()
def quiet() -> None: ...

app()
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


def test_a_real_process(script: Path) -> None:
    done = run(script, "noisy", mode="json", input="in")
    assert done.result == "in"
    assert "below Python" in done.stderr
    assert "a child" in done.stderr
    assert done.argv[0] == sys.executable


def test_any_program(script: Path) -> None:
    done = run(sys.executable, script.name, "noisy", "--code", "7", cwd=script.parent)
    assert done.exit_code == 7
    assert not done.ok


# ------------------------------------------------------------------ parity


def test_every_interface() -> None:
    names = [each.name for each in interfaces(make_app())]
    python, lines = ["call", "acall", "stream", "astream"], ["cli", "jsonl", "typer"]
    assert names == [*python, *lines, "http", "http-lines", "mcp", "mcp-stateless"]


def test_parity_gives_the_envelope_that_all_agree_on() -> None:
    envelope = assert_parity(make_app(), Case("buy", {"item": "tea", "count": 2}))
    assert envelope == {
        "ok": True,
        "result": {"item": "tea", "count": 2},
        "meta": {"tool": "shop.buy", "version": "1.0"},
    }


def test_options_go_through_every_interface() -> None:
    refused = assert_parity(make_app(), Case("burn"))
    assert refused["error"]["code"] == "E1010"
    assert assert_parity(make_app(), Case("burn", options={"yes": True}))["result"] == "ash"
    planned = assert_parity(make_app(), Case("burn", options={"dry_run": True}))
    assert planned["meta"]["dry_run"] is True


def test_a_difference_is_shown_with_the_interfaces_that_differ() -> None:
    app = Tooli("split")

    @app.command()
    def where(ctx: Context) -> str:
        return ctx.caller.surface

    with pytest.raises(AssertionError) as caught:
        assert_parity(app, Case("where"))
    text = str(caught.value)
    assert "--- call" in text
    assert "+++ cli" in text
    assert '-  "result": "python"' in text
    assert '+  "result": "cli"' in text
    assert "+++ acall" not in text


def test_a_stated_difference_is_left_out() -> None:
    app = make_app()
    case = Case("say", {"text": "hi"}, skip={"python": "it prints"})
    assert assert_parity(app, case)["result"] == "hi"


def test_words_go_through_command_lines_alone() -> None:
    case = Case("buy", argv=["tea", "--count=2"])
    assert assert_parity(make_app(), case)["result"] == {"item": "tea", "count": 2}


def test_a_case_that_no_interface_accepts_is_a_mistake() -> None:
    with pytest.raises(AssertionError, match="no interface accepts"):
        assert_parity(make_app(), Case("buy", argv=["x"], skip={"cli": "for no reason"}))


def test_a_new_interface_is_one_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parity, "_INTERFACES", list(parity._INTERFACES))

    @register_interface
    class Wrong(Interface):
        name, surface = "wrong", "wrong"

        def send_case(self, case: Case) -> InterfaceResponse:
            return InterfaceResponse({"ok": True, "result": "nonsense"}, 0)

    with pytest.raises(AssertionError, match=r"\+\+\+ wrong"):
        assert_parity(make_app(), Case("count", {"n": 1}))
    assert_parity(make_app(), Case("count", {"n": 1}, skip={"wrong": "it is"}))


def test_exit_codes_are_compared() -> None:
    with_code = parity._difference(
        interfaces(make_app())[0],
        InterfaceResponse({"ok": True}, 0),
        interfaces(make_app())[4],
        InterfaceResponse({"ok": True}, 1),
    )
    assert "exit code: 0 (call), 1 (cli)" in with_code


# ------------------------------------------------------------------ snapshots


def test_a_missing_snapshot_fails_and_says_how_to_make_it(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="TOOLI_UPDATE_SNAPSHOTS=1"):
        assert_schema_snapshot(make_app(), tmp_path / "schema.json")


def test_snapshots_are_written_and_then_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = [
        Case("buy", {"item": "tea"}),
        Case("buy", {"item": Path("x")}, {"dry_run": True}),
        Case("buy", {"item": "moon"}),
        Case("buy", argv=["a", "b"]),
    ]

    def check(**update: bool) -> None:
        assert_schema_snapshot(make_app(), tmp_path / "deep" / "schema.json", **update)
        assert_schema_snapshot(make_app(), tmp_path / "mcp.json", form="mcp", **update)
        assert_envelope_snapshot(make_app(), cases, tmp_path / "envelopes.json", **update)
        assert_help_snapshot(make_app(), tmp_path / "help.txt", **update)

    check(update=True)
    check()
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TOOLI_OUTPUT", "text")
    check()
    (tmp_path / "help.txt").unlink()
    monkeypatch.setenv("TOOLI_UPDATE_SNAPSHOTS", "1")
    check()
    assert "$ shop buy --help-agent\nbuy <item:str>" in (tmp_path / "help.txt").read_text()
    assert "duration_ms" not in (tmp_path / "envelopes.json").read_text()


def test_a_changed_contract_is_shown_as_a_diff(tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    assert_schema_snapshot(make_app(), path, update=True)
    app = make_app()

    @app.command()
    def more(extra: int) -> int:
        return extra

    with pytest.raises(AssertionError, match=r'\n\+ .*"name": "more"'):
        assert_schema_snapshot(app, path)


def test_help_of_groups_is_in_the_snapshot(tmp_path: Path) -> None:
    app, inner = make_app(), make_app()
    app.add_typer(inner, name="inner")
    assert_help_snapshot(app, tmp_path / "help.txt", update=True)
    pages = (tmp_path / "help.txt").read_text()
    assert "$ shop inner --help --plain\n" in pages
    assert pages.index("$ shop inner --help-agent") < pages.index("$ shop inner buy --help-agent")


# ------------------------------------------------------------------ examples


def test_examples_that_work() -> None:
    assert_examples(make_app())


def test_examples_are_not_run() -> None:
    app = Tooli("bomb")
    ran: list[int] = []

    @app.command(annotations=Destructive, examples=[{"args": ["--", "-1"], "description": "d"}])
    def explode(n: int, dry_run: Annotated[bool, typer.Option()] = False) -> int:
        ran.append(n)
        return n

    assert_examples(app)
    assert not ran


@pytest.mark.parametrize(
    ("example", "complaint"),
    [
        ({"args": ["tea", "--cuont", "2"], "description": "d"}, "cuont"),
        ({"args": ["tea", "--count", "two"], "description": "d"}, "E1003"),
        ({"args": [], "description": "d"}, "E1002"),
    ],
)
@pytest.mark.parametrize("alone", [True, False])
def test_examples_that_do_not_work(example: Any, complaint: str, alone: bool) -> None:
    app = Tooli("bad")

    @app.command(examples=[example])
    def buy(item: str, count: int = 1) -> str:
        return item

    if not alone:
        app.command("other")(buy)
    with pytest.raises(AssertionError, match=complaint):
        assert_examples(app)


@pytest.mark.parametrize(
    "example", [{"args": "tea", "description": "d"}, {"description": "d"}, "tea"]
)
def test_examples_with_a_wrong_shape_are_refused_at_registration(example: Any) -> None:
    app = Tooli("bad")
    with pytest.raises(DefinitionError, match="example"):

        @app.command(examples=[example])
        def buy(item: str, count: int = 1) -> str:
            return item


def test_the_process_goes_on_as_it_was() -> None:
    app = Tooli("one")

    @app.command()
    def add(a: int, b: int) -> int:
        return a + b

    before = gc.get_freeze_count()
    for mode in ("json", "jsonl", "text"):
        assert invoke(app, "1", "2", mode=mode).ok
    assert_parity(app, Case("add", {"a": 1, "b": 2}))
    assert gc.get_freeze_count() <= before
    assert gc.isenabled()
