"""The fast lane and the Typer lane mean the same, and both mean what plain Typer means.

Every example is one random command and many random lines for it. Each line goes

    through the fast lane        read_line, bind
    through the Typer lane       the same app, the door that Typer opens
    to a plain `typer.Typer`     the same function; the line without the framework's flags

and all three must give the function the same values, or refuse for the same reason.

    TOOLI_FUZZ_SEED=7 TOOLI_FUZZ_EXAMPLES=2000 pytest tests/lanes/test_fast_lane.py
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest import mock

import pytest
import typer
from hypothesis import HealthCheck, event, given, seed, settings
from hypothesis import strategies as st
from tests.lanes.generators import Command, Line, Pool, build, commands, lines, make_home
from typer.main import get_command

import tooli
from tooli.call.model import Failed
from tooli.surfaces.cli.main import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tooli.call.model import Call, Outcome

LINES = 40
EXAMPLES = int(os.environ.get("TOOLI_FUZZ_EXAMPLES", "130"))
SEED = os.environ.get("TOOLI_FUZZ_SEED")
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
"""How an app can be built, and what may stand before the words of its command."""


def test_there_are_enough_lines() -> None:
    if SEED is None:
        assert LINES * EXAMPLES * len(FORMS) >= 20_000


# ------------------------------------------------------------------ three engines


class Verdict(NamedTuple):
    """What became of a line."""

    ok: bool
    value: Any = None
    exit_code: int = 0
    code: str | None = None
    field: str | None = None


class Recorded(Session):
    """A session that keeps its outcome to itself."""

    judged = False
    outcome: Outcome

    def claim(self, *, capture: bool = False) -> None:
        pass

    def finish(self, outcome: Outcome, call: Call) -> int:
        self.outcome = outcome
        return 0

    def judge(self, param: Any, words: Any) -> Any:
        self.judged = True
        return super().judge(param, words)

    def verdict(self) -> Verdict:
        self.run()
        if isinstance(self.outcome, Failed):
            error = self.outcome.error
            return Verdict(False, None, error.exit_code, error.code, error.field)
        return Verdict(True, self.outcome.value)


_CODES = {
    "MissingParameter": "E1002",
    "NoSuchOption": "E1004",
    "BadOptionUsage": "E1006",
    "BadArgumentUsage": "E1006",
    "BadParameter": "E1003",
}


def ask_plain_typer(command: Any, words: tuple[str, ...]) -> Verdict:
    """Typer's own answer, and what it means in our codes; a crash has none."""
    try:
        return Verdict(True, command.main(list(words), prog_name="prog", standalone_mode=False))
    except Exception as exc:
        name = type(exc).__name__
        if not hasattr(exc, "format_message"):
            return Verdict(False)
        code = _CODES.get(name)
        if code is None:
            said = str(getattr(exc, "message", exc))
            code = "E1005" if said.startswith("Got unexpected extra") else "E1001"
        param = getattr(exc, "param", None)
        return Verdict(False, None, 2, code, getattr(param, "name", None))


def agree(one: object, other: object) -> bool:
    """Equal, and of equal types all the way down; NaN is NaN, and -0.0 is not 0.0."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(agree(one[k], other[k]) for k in one)  # type: ignore
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(agree, one, other))  # type: ignore
    if isinstance(one, float):
        return repr(one) == repr(other)
    return one == other


# ------------------------------------------------------------------ apps


def _other(word: str = "w") -> str:
    return word


def _hook(
    num: int = typer.Option(1, "--num", "-n"),
    flag: bool = typer.Option(False, "--flag/--no-flag", "-f"),
    two: tuple[str, str] = typer.Option(("a", "b"), "--two"),
) -> None:
    pass


_HOOKS = _hook.__code__.co_varnames


def arrange(form: str, make: Callable[..., Any], fn: Any) -> Any:
    """An app of that form around the function."""
    app = make()
    if form == "hooked":
        app.callback()(_hook)
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


def make_tooli() -> Any:
    return tooli.Tooli("prog", default_output="json")


def plain_command(form: str, command: Command) -> Any:
    """Plain Typer's command; None where Typer does not know the types, or mistakes them."""
    if any(p.many in ("set", "tuple") for p in command.parameters):
        return None
    try:
        return get_command(
            arrange(form, typer.Typer, build(command, typer.Option, typer.Argument))
        )
    except (AssertionError, RuntimeError, TypeError):
        return None


# ------------------------------------------------------------------ the comparison


class Tally:
    """How many lines there were, and who decided them."""

    def __init__(self) -> None:
        self.lines = self.aside = self.judged = self.plain = self.good = 0

    def __repr__(self) -> str:
        return str(vars(self))


def compare(form: str, command: Command, drawn: list[Line], tally: Tally) -> None:
    """Ask all three, line by line."""
    maker = tooli.Option if form == "light" else typer.Option, (
        tooli.Argument if form == "light" else typer.Argument
    )
    app = arrange(form, make_tooli, build(command, *maker))
    before = [_fast(app, line.words, tally) for line in drawn]
    opened = get_command(app)
    oracle = plain_command(form, command)
    for line, fast in zip(drawn, before, strict=True):
        slow = Recorded(app, list(line.words), "prog", False, opened).verdict()
        plain = ask_plain_typer(oracle, line.plain) if oracle and line.plain is not None else None
        shown = f"{command!r}\n{form}: {list(line.words)!r}\n\nfast  {fast}\nslow  {slow}\nplain {plain}"
        if fast is not None:
            assert same_verdict(fast, slow), f"the lanes disagree about{shown}"
        if plain is not None:
            tally.plain += 1
            tally.good += plain.ok
            assert as_plain_typer(fast or slow, plain), f"Typer disagrees about{shown}"
    for line, fast in zip(drawn[:3], before, strict=False):
        again = _fast(app, line.words, None)
        assert (again is None) == (fast is None), f"{command!r}{line.words}: real apps step aside"
        assert again is None or same_verdict(again, fast), f"{command!r}{line.words}: {again} {fast}"


def _fast(app: Any, words: tuple[str, ...], tally: Tally | None) -> Verdict | None:
    """The fast lane's verdict; None where it steps aside."""
    session = Recorded(app, list(words), "prog", False)
    aside = session._for_typer()
    verdict = None if aside else session.verdict()
    if tally is not None:
        tally.lines += 1
        tally.aside += aside
        tally.judged += session.judged
        event("aside" if aside else "judged" if session.judged else "fast")
    return verdict


def same_verdict(one: Verdict, other: Verdict) -> bool:
    """Whether two lanes say the same."""
    return one[0] == other[0] and one[2:] == other[2:] and agree(one.value, other.value)


def as_plain_typer(ours: Verdict, plain: Verdict) -> bool:
    """Whether we say what plain Typer says; it names the parameter only for bad values."""
    if plain.ok or ours.ok:
        return plain.ok == ours.ok and agree(ours.value, plain.value)
    if plain.code is None or (ours.code == "E1001" and plain.field in _HOOKS):
        return True  # it crashed; or its callback stopped before it looked for a command
    named = plain.code in ("E1002", "E1003")
    return plain.code == ours.code and (not named or plain.field == ours.field)


# ------------------------------------------------------------------ the tests


@pytest.fixture(autouse=True, scope="module")
def _home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    home = tmp_path_factory.mktemp("lanes")
    make_home(home)
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("TOOLI_", "LANE_"))}
    before = os.getcwd()
    os.chdir(home)
    with mock.patch.dict(os.environ, kept, clear=True):
        yield
    os.chdir(before)


@st.composite
def examples(draw: st.DrawFn, form: str) -> tuple[Command, list[Line]]:
    command = draw(commands())
    drawn = lines(Pool(command), FORMS[form])
    return command, draw(st.lists(drawn, min_size=LINES, max_size=LINES))


def try_form(form: str) -> Tally:
    """Compare the lanes on random apps of one form."""
    tally = Tally()

    def run(example: tuple[Command, list[Line]]) -> None:
        command, drawn = example
        with mock.patch.dict(os.environ, dict(command.environment)):
            compare(form, command, drawn, tally)

    run.__name__ = run.__qualname__ = f"run_{form}"
    quietly = settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=SEED is None,
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    test = quietly(given(examples(form))(run))
    if SEED is not None:
        test = seed(f"{SEED}{form}")(test)
    test()
    return tally


@pytest.mark.parametrize("form", FORMS)
def test_the_lanes_agree(form: str) -> None:
    tally = try_form(form)
    print(form, tally)
    assert tally.lines >= EXAMPLES * LINES
    assert tally.aside <= 0.4 * tally.lines, "the fast lane steps aside too often"
    assert tally.judged <= 0.2 * tally.lines, "the fast lane asks Typer too often"
    assert tally.plain >= 0.6 * tally.lines, "too few lines were put to plain Typer"
    assert tally.good >= 0.3 * tally.plain, "too few lines were right"
