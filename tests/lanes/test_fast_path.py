"""The fast path and the Typer path give the same result, which is that of plain Typer.

Every example is one random command and many random lines for it. Each line goes

    through the fast path        our own parser and conversion
    through the Typer path       the same app, run by Typer
    to a plain `typer.Typer`     the same function; the line without the framework's flags

and all three must call the function with the same values, or fail for the same reason. Lines
that the fast path leaves to Typer are counted, and must stay the exception.

    TOOLI_FUZZ_SEED=7 TOOLI_FUZZ_EXAMPLES=2000 pytest tests/lanes/test_fast_path.py
"""

from __future__ import annotations

import contextlib
import io
import json
import os
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest import mock

import pytest
import typer
from hypothesis import assume, event, given
from hypothesis import strategies as st
from tests.example_count import example_count
from tests.lanes.generators import (
    FUZZ_SEED,
    TYPER,
    Command,
    Line,
    Pool,
    build_function,
    commands,
    fuzz_example_count,
    is_equal,
    lines,
    make_files,
    run_examples,
)
from typer.main import get_command

import tooli
from tooli import cli
from tooli.cli import CommandOutput, read_invocation, run_invocation, typer_values
from tooli.cli import argv as argv_module
from tooli.core.call import Failed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tooli.core.call import Call, Outcome

LINES = 40
EXAMPLES = fuzz_example_count(100)
FORMS: dict[str, tuple[tuple[str, ...], ...]] = {
    "single": ((),),
    "light": ((),),
    "pair": (("command",), ("comand",), (), ("", "command"), ("-z",)),
    "nested": (("grp", "command"), ("grp",), ("grp", "nope"), ("gpr", "command"), ("grp", "-z")),
    "hooked": (
        *(("command",), ("--num", "5", "command"), ("-n5", "command"), ("-fn", "5", "command")),
        *(("--num=", "command"), ("--two", "a", "b", "command"), ("--two=a", "b", "command")),
        *(("-fx", "command"), ("--no-flag", "command"), ("-n",), ("--nun=5", "command")),
    ),
}
"""The forms of an app, each with the arguments that may precede those of its command.

`light` uses tooli's own Option and Argument. `hooked` has a callback, so that only Typer can run
it. For such an app, tooli's parser only removes the framework's flags from the line.
"""


def test_enough_command_lines_are_compared() -> None:
    assert FUZZ_SEED or LINES * EXAMPLES * len(FORMS) >= example_count(20_000)


# ------------------------------------------------------------------ the three parsers


@pytest.fixture(autouse=True, scope="module")
def make_calls_deterministic() -> Iterator[None]:
    """Give all plans the same token, and start no process for a timeout."""
    with (
        mock.patch("tooli.stages.plans.encode_plan_token", lambda *_: "token"),
        mock.patch("tooli.stages.timeout.can_fork", lambda: False),
    ):
        yield


class LineResult(NamedTuple):
    """The result of a line."""

    ok: bool
    value: Any = None
    exit_code: int = 0
    code: str | None = None
    field: str | None = None


class RecordedOutput(CommandOutput):
    """An output that keeps the outcome instead of writing it."""

    outcome: Outcome

    def __init__(self, app: Any, argv: list[str], command: Any = None) -> None:
        self.used_typer = False
        with mock.patch.object(argv_module, "convert_with_typer", self.convert_with_typer):
            super().__init__(read_invocation(app, argv, "prog", False, command))

    def take_stdout(self, *, capture: bool = False) -> None:
        pass

    def write_outcome(self, outcome: Outcome, call: Call) -> int:
        self.outcome = outcome
        return 0

    def convert_with_typer(self, param: Any, raw: Any) -> Any:
        self.used_typer = True
        return typer_values.convert_with_typer(param, raw)

    def result(self) -> LineResult:
        run_invocation(self)
        if isinstance(self.outcome, Failed):
            error = self.outcome.error
            return LineResult(False, None, error.exit_code, error.code, error.field)
        return LineResult(True, self.outcome.value)


_CODES = {
    "MissingParameter": "E1002",
    "NoSuchOption": "E1004",
    "BadOptionUsage": "E1006",
    "BadArgumentUsage": "E1006",
    "BadParameter": "E1003",
}


def run_plain_typer(command: Any, argv: tuple[str, ...]) -> LineResult:
    """Return the result of plain Typer with the matching error code; a crash has no code."""
    try:
        return LineResult(True, command.main(list(argv), prog_name="prog", standalone_mode=False))
    except Exception as exc:
        if not hasattr(exc, "format_message"):
            return LineResult(False)
        code = _CODES.get(type(exc).__name__)
        if code is None:
            message = str(getattr(exc, "message", exc))
            code = "E1005" if message.startswith("Got unexpected extra") else "E1001"
        return LineResult(False, None, 2, code, getattr(getattr(exc, "param", None), "name", None))


# ------------------------------------------------------------------ apps


def _other(word: str = "w") -> str:
    return word


def _callback(
    num: int = typer.Option(1, "--num", "-n"),
    flag: bool = typer.Option(False, "--flag/--no-flag", "-f"),
    two: tuple[str, str] = typer.Option(("a", "b"), "--two"),
) -> None:
    pass


_TEXTUAL = not hasattr(typer.core, "RuntimeParam")
"""Older versions of Typer treat parameters without an annotation as text."""
_CALLBACK_PARAMS = ("num", "flag", "two")


def make_app(form: str, make: Callable[..., Any], fn: Any) -> Any:
    """Return an app of a form with the function as its command."""
    app = make()
    if form == "hooked":
        app.callback()(_callback)
    if form != "nested":
        app.command()(fn)
        if form == "pair":
            app.command("other")(_other)
        return app
    group = make()
    group.command()(fn)
    group.command("other")(_other)
    app.add_typer(group, name="grp")
    app.command("top")(_other)
    return app


def make_tooli_app(form: str, command: Command) -> Any:
    """Return a Tooli app with the command."""
    source = tooli if form == "light" else typer
    fn = build_function(command, source.Option, source.Argument)
    return make_app(form, lambda: tooli.Tooli("prog", default_output="json"), fn)


def make_typer_command(form: str, command: Command) -> Any:
    """Return the command of plain Typer; None if Typer does not support its types."""
    if any(p.container in ("set", "tuple") for p in command.parameters):
        return None
    if form == "light" and _TEXTUAL and any(p.style == "unannotated" for p in command.parameters):
        return None
    try:
        return get_command(
            make_app(form, typer.Typer, build_function(command, typer.Option, typer.Argument))
        )
    except (AssertionError, RuntimeError):
        return None


# ------------------------------------------------------------------ the comparison


class Tally:
    """Counts the lines, and which path handled them."""

    def __init__(self) -> None:
        self.lines = self.deferred = self.converted = self.plain = self.succeeded = 0

    def __repr__(self) -> str:
        return str(vars(self))


def compare(form: str, command: Command, drawn: list[Line], tally: Tally) -> None:
    """Assert that the fast path, the Typer path and plain Typer agree about each line."""
    tally.lines += len(drawn)
    app = make_tooli_app(form, command)
    before = [run_fast_path(app, line.argv, tally) for line in drawn]
    typer_command = get_command(app)
    plain_command = make_typer_command(form, command)
    for line, fast in zip(drawn, before, strict=True):
        slow = RecordedOutput(app, list(line.argv), typer_command).result()
        plain = (
            run_plain_typer(plain_command, line.plain_argv)
            if plain_command and line.plain_argv is not None and not has_long_name(line.plain_argv)
            else None
        )
        about = (
            f"about{command!r}\n{form}: {list(line.argv)!r}\n"
            f"\nfast  {fast}\nslow  {slow}\nplain {plain}"
        )
        if fast is not None:
            assert is_same_result(fast, slow), f"the paths disagree {about}"
        if plain is not None:
            tally.plain += 1
            tally.succeeded += plain.ok
            assert agrees_with_plain_typer(fast or slow, plain), f"Typer disagrees {about}"
    for line, fast in zip(
        drawn[:3], before, strict=False
    ):  # after Typer has registered the commands
        again = run_fast_path(app, line.argv)
        assert again == fast or is_same_result(again, fast), f"{command!r}{line}: {again} {fast}"


def run_fast_path(app: Any, argv: tuple[str, ...], tally: Tally | None = None) -> LineResult | None:
    """Return the result of the fast path; None if it leaves the line to Typer."""
    output = RecordedOutput(app, list(argv))
    needs_typer = cli._needs_typer(output.invocation)
    result = None if needs_typer else output.result()
    if tally is not None:
        tally.deferred += needs_typer
        tally.converted += output.used_typer
        event("deferred" if needs_typer else "converted" if output.used_typer else "fast")
    return result


def is_same_result(one: LineResult | None, other: LineResult | None) -> bool:
    """True if two paths agree."""
    if one is None or other is None:
        return one is other
    return one[0] == other[0] and one[2:] == other[2:] and is_equal(one.value, other.value)


def has_long_name(argv: tuple[str, ...]) -> bool:
    """True if a word is too long for the name of a file. Only Typer accepts such a path."""
    return any(len(word.encode("utf-8", "surrogatepass")) > 255 for word in argv)


def agrees_with_plain_typer(ours: LineResult, plain: LineResult) -> bool:
    """True if tooli agrees with plain Typer, which names the parameter only for invalid values."""
    if plain.ok or ours.ok:
        return plain.ok == ours.ok and is_equal(ours.value, plain.value)
    if plain.code is None or ours.code == "E1007":
        return True  # Typer crashed, or tooli reads `-output` as `-o utput`
    if ours.code == "E1001" and plain.field in _CALLBACK_PARAMS:
        return True  # the callback of plain Typer failed before it looked for the command
    field = (ours.field or "").partition(".")[0]  # tooli also names the item of a list
    return plain.code == ours.code and (plain.field is None or plain.field == field)


# ------------------------------------------------------------------ the tests


@pytest.fixture(autouse=True, scope="module")
def fuzz_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("lanes")
    make_files(folder)
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("TOOLI_", "FUZZ_"))}
    before = os.getcwd()
    os.chdir(folder)
    with mock.patch.dict(os.environ, kept, clear=True):
        yield
    os.chdir(before)


class Example(NamedTuple):
    """A command, and lines for it."""

    command: Command
    lines: list[Line]

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self.command))


@st.composite
def examples(draw: st.DrawFn, form: str, count: int = LINES) -> Example:
    command = draw(commands())
    drawn = lines(Pool(command), FORMS[form])
    return Example(command, draw(st.lists(drawn, min_size=count, max_size=count)))


@pytest.mark.parametrize("form", FORMS)
def test_fast_path_agrees_with_typer(form: str) -> None:
    tally = Tally()

    def check_example(example: Example) -> None:
        command, drawn = example
        with mock.patch.dict(os.environ, dict(command.environment)):
            compare(form, command, drawn, tally)

    run_examples(EXAMPLES, f"lanes_{form}", given(examples(form)), check_example)
    print(form, tally)
    assert tally.lines >= EXAMPLES * LINES
    if form != "hooked":
        left = tally.deferred + tally.converted
        assert left <= 0.4 * tally.lines, f"the fast path leaves too much to Typer: {tally}"
    share = 0.5 if TYPER >= (0, 29) else 0.25  # older versions support fewer types
    assert tally.plain >= share * tally.lines, f"too few lines were run with plain Typer: {tally}"
    assert tally.succeeded >= 0.3 * tally.plain, f"too few lines were valid: {tally}"


@pytest.mark.parametrize("form", ["single", "nested"])
def test_fast_path_and_typer_print_the_same(form: str) -> None:
    """The app and Typer's command print the same text."""

    def check_output(example: Example) -> None:
        command, drawn = example
        assume(not any("Literal" in p.annotation[1:] for p in command.parameters))
        with mock.patch.dict(os.environ, dict(command.environment)):
            app, other = make_tooli_app(form, command), make_tooli_app(form, command)
            typer_command = get_command(other)
            for line in drawn:
                fast, slow = (
                    _run_and_capture(app, line.argv),
                    _run_and_capture(typer_command.main, line.argv),
                )
                assert fast == slow, f"{command!r}\n{list(line.argv)}"

    run_examples(
        fuzz_example_count(40), f"documents_{form}", given(examples(form, 10)), check_output
    )


def _run_and_capture(run: Callable[..., Any], argv: tuple[str, ...]) -> tuple[list[Any], Any]:
    """Return the printed JSON documents without their durations, and the returned value."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        code = run(list(argv), prog_name="prog", standalone_mode=False)
    documents = [json.loads(line) for line in out.getvalue().splitlines() if line]
    for document in documents:
        if "meta" in document:
            del document["meta"]["duration_ms"]
    return documents, repr(code)
