"""Random commands, and random command lines for them.

    commands() ──▶ Command ── source ──▶ a real function, once with Typer's Option
                      │                  and once with ours
                      ╰── lines() ──▶ Line: the arguments of the command, and the same
                                      arguments mixed with the framework's flags

A command is drawn as source text, because tooli reads code objects. Arguments are drawn from
pools that are made once per command (valid texts, unusual texts, each spelling of a flag), so
that one draw gives one piece and a failing example is short.
"""

from __future__ import annotations

import enum
import os
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from tests.example_count import example_count

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# ------------------------------------------------------------------ number and seed of examples

FUZZ_SEED = os.environ.get("TOOLI_FUZZ_SEED", "")
"""Seed of the examples. By default every run has the same examples."""


def fuzz_example_count(usual: int) -> int:
    """Return the number of examples; TOOLI_FUZZ_EXAMPLES overrides it."""
    return int(os.environ.get("TOOLI_FUZZ_EXAMPLES", example_count(usual)))


def run_examples(
    count: int, name: str, given: Callable[..., Any], check: Callable[..., None]
) -> None:
    """Run a check on random examples. The name is the seed."""
    setup = settings(
        max_examples=count,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],  # a failure names one small command and one line
        print_blob=False,
    )
    seed(f"{name}{FUZZ_SEED}")(setup(given(check)))()


# ------------------------------------------------------------------ the types


class Color(str, enum.Enum):
    RED = "red"
    GREEN = "Green"
    STRASSE = "Straße"


class Level(enum.Enum):
    LOW = 1
    HIGH = 10


class Rank(enum.IntEnum):
    FIRST = 1
    SECOND = 2


class Mixed(enum.Enum):
    """Values of several types, some of which have the same text."""

    WORD = "a"
    LOUD = "A"
    NUMBER = 1
    TEXT = "1"
    HALF = 0.5
    YES = True


class Lenient(enum.Enum):
    """Accepts more values by `_missing_`."""

    ONE = "one"
    TWO = "two"

    @classmethod
    def _missing_(cls, value: object) -> Lenient | None:
        return cls.ONE if value in ("uno", 1) else None


def make_files(home: Path) -> None:
    """Create the files that the paths below name. The tests run in this folder."""
    (home / "file.txt").write_text("text")
    (home / "dir").mkdir()
    (home / "link").symlink_to("file.txt")
    (home / "broken").symlink_to("nowhere")


# ------------------------------------------------------------------ texts and defaults

_NUMERIC = (
    *("1_0", " 7", "7 ", "+7", "007", "1.0", "1.5", "1e5", "1E2", "nan", "inf", "-inf", "NaN"),
    *("Infinity", "-Infinity", "٣", "７", "²", "½", "0x10", "1__0", "_1", "1.", ".5", "-.5"),
    *("-0", "-0.0", "1e400", "9" * 18, "9" * 19, "9" * 30, "9" * 4301, "0.1" + "0" * 30),
    *("", " ", "-", "--5", "abc", "None", "true", "1,000", "1\n", "1\u00a0", "−5", "e", "1e", "0"),
    *("12345678901234567", "0.30000000000000004", "9007199254740993", "1.7976931348623157e309"),
)
_UNUSUAL_TEXTS = (
    *("", " ", "-", "--", "-5", "a=b", "é", "日本", "\udc80", "x\udcff", "@file", "{}", "="),
)


@dataclass(frozen=True)
class Family:
    """One kind of value: valid texts, unusual texts, and defaults as source text."""

    valid: tuple[str, ...]
    unusual: tuple[str, ...]
    defaults: tuple[str, ...]
    unusual_defaults: tuple[str, ...]
    categories: frozenset[str] = frozenset()  # "number", "choice", "path": the settings that apply


def _choice(valid: str, unusual: str, defaults: str, unusual_defaults: str) -> Family:
    return Family(
        tuple(valid.split()),
        (*unusual.split(), *_UNUSUAL_TEXTS),
        tuple(defaults.split()),
        tuple(unusual_defaults.split()),
        frozenset(["choice"]),
    )


FAMILIES: dict[str, Family] = {
    "str": Family(
        ("x", "hello", "a b", "7", "true", "a=b"),
        (*_UNUSUAL_TEXTS, "1.0", "None", "\t", "a\nb", "ß", "x" * 300),
        ("'d'", "''", "'two words'"),
        ("5", "1.5", "True", "Color.RED", "Level.LOW", "Path('p')", "b'bytes'", "['a']", "(1, 2)"),
    ),
    "int": Family(
        ("0", "1", "5", "-3", "42", "100"),
        _NUMERIC,
        ("0", "5", "-3", "100"),
        ("'5'", "'x'", "2.0", "2.5", "True", "' 7'", "Rank.FIRST", "10**30", "''", "float('nan')"),
        frozenset(["number"]),
    ),
    "float": Family(
        ("0", "1.5", "-2", "3.25", "100", "-0.5"),
        _NUMERIC,
        ("0.0", "1.5", "-2.0", "100.0"),
        ("1", "'1.5'", "'x'", "True", "float('nan')", "float('inf')", "2**60", "10**400"),
        frozenset(["number"]),
    ),
    "bool": Family(
        ("true", "false"),
        (
            *("1", "0", "yes", "no", "on", "off", "t", "f", "y", "n", "TRUE", "truE", " True "),
            *("", " ", "2", "maybe", "None", "é", "Y\n", "\udc80", "-1", "1.0"),
        ),
        ("False", "True"),
        ("0", "1", "'true'", "'x'", "2", "''", "1.0"),
    ),
    "Path": Family(
        ("file.txt", "dir", "missing", "dir/new"),
        (
            *("", ".", "/", "..", "-", "./file.txt", "dir/", "file.txt/", "a//b", "link", "broken"),
            *("dir/../file.txt", "x" * 300, "é", "\udc80", " ", "~", "file.txt/x", "/dev/null"),
        ),
        ("Path('file.txt')", "Path('dir')", "Path('missing')"),
        ("'file.txt'", "'dir/'", "''", "5", "b'file.txt'", "Path('')"),
        frozenset(["path"]),
    ),
    "Color": _choice(
        "red Green", "RED green rot Straße strasse STRASSE", "Color.RED", "'red' 'x' 5"
    ),
    "Level": _choice("1 10", "2 LOW 01 1.0 １", "Level.LOW", "1 '10' 'x' Rank.FIRST True"),
    "Rank": _choice("1 2", "FIRST 3 01", "Rank.FIRST", "1 '2' 9 True 2.0"),
    "Mixed": _choice("a A", "1 0.5 True true TRUE .5", "Mixed.WORD Mixed.NUMBER", "'a' 1 '1' True"),
    "Lenient": _choice("one two", "uno ONE three", "Lenient.ONE", "'two' 'uno' 1"),
    "Literal['fast', 'slow']": _choice("fast slow", "FAST fas", "'fast' 'slow'", "'FAST' 'x' 5"),
    "Literal['a', 'A']": _choice("a A", "b ß", "'a' 'A'", "'b'"),
    "Literal[1, 2]": _choice("1 2", "3 01 1.0", "1 2", "'1' 3 True 1.0"),
    "Literal['a', 1]": _choice("a 1", "A 01", "'a' 1", "'1' True"),
    "datetime": Family(
        ("2024-01-02", "2024-01-02T03:04:05", "2024-01-02 03:04:05"),
        (
            *(
                "2024-01-02T03:04:05Z",
                "2024-01-02T03:04",
                "20240102",
                "1700000000",
                "-1",
                "now",
                "",
            ),
            *("2024-13-01", "2024-01-02T03:04:05.123456", "2024-01-02T03:04:05+02:00", "1e3", "é"),
        ),
        ("datetime(2024, 1, 2)",),
        ("'2024-01-02'", "'x'", "5"),
    ),
    "UUID": Family(
        ("12345678-1234-5678-1234-567812345678", "12345678123456781234567812345678"),
        (
            *("{12345678-1234-5678-1234-567812345678}", "urn:uuid:" + "1" * 32, "x", "", "1" * 31),
            *(" 12345678-1234-5678-1234-567812345678", "12345678-1234-5678-1234-56781234567G"),
            *("1234-5678" * 4, "12345678-1234-5678-1234-567812345678 ", "1" * 16),
        ),
        ("UUID(int=5)",),
        ("'" + "1" * 32 + "'", "'x'", "5"),
    ),
}
_ALL_FAMILIES = tuple(FAMILIES)
_COMMON = ("str", "int", "float", "bool", "Path", "Color", "Level", "Literal['fast', 'slow']")
_TUPLES = (
    *(("int", "str"), ("float", "Path"), ("bool", "bool"), ("Color", "int"), ("str", "str", "int")),
    ("Literal['fast', 'slow']", "int"),
)

# ------------------------------------------------------------------ parameters

TYPER = tuple(map(int, version("typer").split(".")[:2]))
"""The version of Typer. Older ones do not support all definitions: before 0.27 names are in lower
case, before 0.26 a list argument has no default."""

_NAMES = (
    *("a", "b", "n", "name", "names", "x_y", "_u", "v2", "from_"),
    *(("Case",) if TYPER >= (0, 27) else ()),
    *("output", "limit", "verbose", "json", "fields", "tooli_json"),
)
_SHORT = ("-a", "-b", "-n", "-N", "-v", "-q", "-o", "-x", "-1", "-é", "-?")
_LONG = (
    *("--bee", "--bee-x", "--foo_bar", "--output", "--json", "--x", "-long", "-nn", "--quiet"),
    *("--Bee", "--no-bee", "--tooli-yes", "--a.b", "--timeout"),
)
_VARIABLES = ("'FUZZ_ONE'", "'FUZZ_TWO'", "['FUZZ_NO', 'FUZZ_ONE']")
_HELP_SETTINGS = ("hidden=True", "help='Help.'", "show_default=False", "metavar='WORD'")
_UNUSUAL_FLAGS = ("+p", "/s", "++plus", "---three")


@dataclass(frozen=True)
class Parameter:
    """One parameter: its source text, and the arguments that give it a value."""

    name: str
    families: tuple[str, ...]
    container: str = ""  # "list", "set" or "tuple" if it takes several values
    optional: str = ""  # the syntax that allows None: "Optional" or "|"
    kind: str = "option"
    style: str = "annotated"  # "bare", "annotated", "default"
    decls: tuple[str, ...] = ()
    default: str | None = None
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def annotation(self) -> str:
        if len(self.families) > 1:
            text = f"tuple[{', '.join(self.families)}]"
        else:
            [text] = self.families
            text = {"": text, "tuple": f"tuple[{text}, ...]"}.get(
                self.container, f"{self.container}[{text}]"
            )
        return {"": text, "|": f"{text} | None"}.get(self.optional) or f"Optional[{text}]"

    @property
    def source(self) -> str:
        settings = [f"{name}={value}" for name, value in self.settings]
        info_class = self.kind.capitalize()
        if self.style == "annotated":
            info = ", ".join([*map(repr, self.decls), *settings])
            text = f"{self.name}: Annotated[{self.annotation}, {info_class}({info})]"
            return text if self.default is None else f"{text} = {self.default}"
        if self.style == "default":
            first = "..." if self.default is None else self.default
            info = ", ".join([first, *map(repr, self.decls), *settings])
            return f"{self.name}: {self.annotation} = {info_class}({info})"
        text = f"{self.name}: {self.annotation}" if self.style == "bare" else self.name
        return text if self.default is None else f"{text} = {self.default}"

    @property
    def has_default(self) -> bool:
        """True if the parameter has a default in Python. The next ones then need one, too."""
        return self.default is not None or self.style == "default"

    @property
    def required(self) -> bool:
        return self.default is None and "default_factory" not in dict(self.settings)

    @property
    def counts(self) -> bool:
        return "count" in dict(self.settings)

    @property
    def is_flag(self) -> bool:
        return self.kind == "option" and (
            self.counts or (self.families == ("bool",) and not self.container)
        )

    @cached_property
    def flags(self) -> tuple[str, ...]:
        """All flags of the option."""
        if self.kind != "option":
            return ()
        plain = self.name.replace("_", "-")
        default = f"--{plain}/--no-{plain}" if self.is_flag and not self.counts else f"--{plain}"
        found: list[str] = []
        for decl in self.decls or (default,):
            found += [part.strip() for part in decl.split("/")] if decl[:1] != "/" else [decl]
        return tuple(flag for flag in found if flag)

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """The environment variables that the parameter reads."""
        names = eval(dict(self.settings).get("envvar", "()"))
        return (names,) if isinstance(names, str) else tuple(names)

    def texts(self, *, unusual: bool = False) -> list[tuple[str, ...]]:
        """Return the texts of one value: one text, or one for each item of a tuple."""
        pools = [FAMILIES[f].unusual if unusual else FAMILIES[f].valid for f in self.families]
        if len(pools) == 1:
            return [(text,) for text in pools[0]]
        longest = max(map(len, pools))
        rows = [tuple(pool[i % len(pool)] for pool in pools) for i in range(longest)]
        if unusual:  # one unusual text in an otherwise valid tuple
            for i in range(len(pools)):
                valid = [FAMILIES[f].valid[0] for f in self.families]
                for text in pools[i]:
                    rows.append((*valid[:i], text, *valid[i + 1 :]))
        return rows

    def pieces(self, *, unusual: bool = False) -> list[tuple[str, ...]]:
        """Return the arguments that set the parameter, in every spelling."""
        if self.kind == "argument":
            texts = self.texts(unusual=unusual)
            return texts if unusual else [row for row in texts if not any(t[0] == "-" for t in row)]
        if self.is_flag:
            return [(f"{flag}=1" if unusual else flag,) for flag in self.flags]
        found: list[tuple[str, ...]] = []
        texts = self.texts(unusual=unusual)
        for flag in self.flags:
            for i, (first, *others) in enumerate(texts):
                found.append((flag, first, *others))
                equals = "" if len(flag) == 2 and i % 2 and first else "="
                found.append((f"{flag}{equals}{first}", *others))
        return found


@dataclass(frozen=True)
class Command:
    """A command to test: its parameters, and the environment that it runs in."""

    parameters: tuple[Parameter, ...]
    environment: tuple[tuple[str, str], ...] = ()
    postponed: bool = False  # `from __future__ import annotations`

    @property
    def source(self) -> str:
        parts: list[str] = []
        has_default = has_star = False
        for parameter in self.parameters:
            if has_default and not parameter.has_default and not has_star:
                has_star = True
                parts.append("*")
            has_default = has_default or parameter.has_default
            parts.append(parameter.source)
        items = ", ".join(f"{p.name!r}: {p.name}" for p in self.parameters)
        future_import = "from __future__ import annotations\n" if self.postponed else ""
        function = f"def command({', '.join(parts)}) -> dict:\n    return {{{items}}}\n"
        return future_import + function

    @cached_property
    def flags(self) -> frozenset[str]:
        return frozenset(flag for p in self.parameters for flag in p.flags)

    def __repr__(self) -> str:
        variables = "".join(f"{name}={text!r} " for name, text in self.environment)
        return f"\n{variables}{self.source}"


def build_function(command: Command, option: object, argument: object) -> object:
    """Return the function of a command, with Typer's Option and Argument or with tooli's."""
    import typing

    namespace: dict[str, object] = {
        **{c.__name__: c for c in (Color, Level, Rank, Mixed, Lenient, Path, datetime, UUID)},
        **{name: getattr(typing, name) for name in ("Annotated", "Literal", "Optional")},
        "Option": option,
        "Argument": argument,
        "factory": factory,
        "__name__": __name__,
    }
    exec(compile(command.source, "<command>", "exec"), namespace)
    return namespace["command"]


def factory(value: object) -> object:
    """Return a default_factory that returns a value."""
    return lambda: value


def _mostly(common: object, rare: object, share: int = 6) -> st.SearchStrategy:
    """Draw from the common strategy, and once in `share` + 1 times from the rare one."""
    return st.integers(0, share).flatmap(lambda n: rare if n == share else common)


@st.composite
def _parameters(draw: st.DrawFn, name: str, taken: set[str]) -> Parameter:
    families = draw(
        _mostly(
            _mostly(st.sampled_from(_COMMON), st.sampled_from(_ALL_FAMILIES), 4).map(
                lambda f: (f,)
            ),
            st.sampled_from(_TUPLES),
        )
    )
    container = ""
    if len(families) == 1:
        rare = st.sampled_from(("set", "tuple"))
        container = draw(_mostly(st.just(""), _mostly(st.just("list"), rare, 8), 3))
    optional = draw(_mostly(st.just(""), st.sampled_from(("Optional", "|")), 4))
    kind = draw(st.sampled_from(("option", "option", "argument")))
    style = draw(st.sampled_from(("annotated", "default", "bare")))
    default = draw(_defaults(families, container, optional))
    if style == "bare":
        kind = "argument" if default is None else "option"
        if len(families) == 1 and not container and not optional and default not in (None, "None"):
            style = draw(_mostly(st.just("bare"), st.just("unannotated"), 12))
        parameter = Parameter(name, families, container, optional, kind, style, (), default)
        return _unless_taken(parameter, taken)
    settings = draw(_settings(families, container, kind, default))
    if "default_factory" in settings:
        default = None
    sorted_settings = tuple(sorted(settings.items()))
    parameter = Parameter(
        name, families, container, optional, kind, style, (), default, sorted_settings
    )
    if kind == "argument":
        return _without_list_default(parameter)
    return _unless_taken(replace(parameter, decls=draw(_decls(parameter, taken))), taken)


def _unless_taken(parameter: Parameter, taken: set[str]) -> Parameter:
    """Return the parameter, or make it an argument if one of its flags is taken."""
    if taken.isdisjoint(parameter.flags):
        taken.update(parameter.flags)
        return parameter
    settings = tuple((k, v) for k, v in parameter.settings if k != "count")
    parameter = replace(parameter, kind="argument", style="annotated", decls=(), settings=settings)
    return _without_list_default(parameter)


def _without_list_default(parameter: Parameter) -> Parameter:
    """Return an argument without the default that Typer did not support before 0.26."""
    if TYPER >= (0, 26) or not (parameter.container or len(parameter.families) > 1):
        return parameter
    settings = tuple((k, v) for k, v in parameter.settings if k != "default_factory")
    return replace(parameter, default=None, settings=settings)


@st.composite
def _defaults(
    draw: st.DrawFn, families: tuple[str, ...], container: str, optional: str
) -> str | None:
    """Draw a default as source text; None for no default."""
    if draw(st.integers(0, 9)) < 4:
        return None
    unusual = draw(st.integers(0, 7)) == 0
    if draw(st.integers(0, 4 if optional else 9)) == 0:
        return "None"
    pools = [
        [*FAMILIES[f].defaults, *(FAMILIES[f].unusual_defaults if unusual else ())]
        for f in families
    ]
    if len(pools) > 1:
        row = [draw(st.sampled_from(pool)) for pool in pools]
        if unusual and draw(st.booleans()):
            return draw(st.sampled_from(("()", f"({row[0]},)", "'ab'", f"[{', '.join(row)}]")))
        return f"({', '.join(row)})"
    if not container:
        return draw(st.sampled_from(pools[0]))
    items = draw(st.lists(st.sampled_from(pools[0]), max_size=2))
    if unusual and TYPER >= (0, 26) and draw(st.booleans()):
        return draw(st.sampled_from(("'abc'", "5", f"({''.join(i + ',' for i in items)})")))
    return f"[{', '.join(items)}]"


@st.composite
def _settings(
    draw: st.DrawFn, families: tuple[str, ...], container: str, kind: str, default: str | None
) -> dict[str, str]:
    settings: dict[str, str] = {}
    categories = {category for f in families for category in FAMILIES[f].categories}
    if "number" in categories and draw(st.booleans()):
        unusual = ("1.0", "True") if "int" in families else ("0.5", "1.0", "-2.5")
        bounds = _mostly(st.integers(-5, 20).map(str), st.sampled_from(unusual))
        which = draw(st.sampled_from((("min",), ("max",), ("min", "max"))))
        for side in which:
            settings[side] = draw(bounds)
        if draw(st.integers(0, 3)) == 0:
            settings["clamp"] = "True"
    if "choice" in categories and draw(st.booleans()):
        settings["case_sensitive"] = draw(st.sampled_from(("False", "False", "True")))
    if "path" in categories and draw(st.booleans()):
        wanted = st.sampled_from(("exists", "file_okay", "dir_okay", "writable", "resolve_path"))
        for setting in draw(st.lists(wanted, max_size=2, unique=True)):
            settings[setting] = str("okay" not in setting)
    if families == ("int",) and not container and kind == "option" and draw(st.integers(0, 5)) == 0:
        settings["count"] = "True"
    if draw(st.integers(0, 4)) == 0:
        settings["envvar"] = draw(st.sampled_from(_VARIABLES))
    if draw(st.integers(0, 5)) == 0:
        name, _, value = draw(st.sampled_from(_HELP_SETTINGS)).partition("=")
        settings[name] = value
    if is_usual_default(default, families) and draw(st.integers(0, 7)) == 0:
        settings["default_factory"] = f"factory({default})"
    return settings


def is_usual_default(default: str | None, families: tuple[str, ...]) -> bool:
    """True if a default has the right type. The value of a factory is not converted by Typer."""
    usual = {"None", "", *(text for f in families for text in FAMILIES[f].defaults)}
    return default is not None and (
        default in usual or (default[0] in "[(" and usual.issuperset(default[1:-1].split(", ")))
    )


@st.composite
def _decls(draw: st.DrawFn, parameter: Parameter, taken: set[str]) -> tuple[str, ...]:
    """Draw explicit flags for an option that no other parameter uses."""
    if draw(st.integers(0, 2)) == 0:
        return ()
    plain = f"--{parameter.name.replace('_', '-')}"
    free = [flag for flag in (plain, *_LONG, *_SHORT, *_SHORT) if flag not in taken]
    if draw(st.integers(0, 15)) == 0:
        free = [flag for flag in _UNUSUAL_FLAGS if flag not in taken] or free
    flags = draw(st.lists(st.sampled_from(free), min_size=1, max_size=3, unique=True))
    if parameter.is_flag and not parameter.counts and len(flags) > 1:
        separator = draw(st.sampled_from(("/", "/", " / ", "apart", "no")))
        if separator == "no":
            return (f" /{flags[0]}",)
        if separator != "apart":
            return (f"{flags[0]}{separator}{flags[1]}", *flags[2:])
    return tuple(flags)


@st.composite
def commands(draw: st.DrawFn) -> Command:
    """Draw a command with up to five parameters."""
    names = draw(st.lists(st.sampled_from(_NAMES), max_size=5, unique=True))
    taken: set[str] = {"--help"}
    parameters: list[Parameter] = []
    has_list_argument = False
    for name in names:
        parameter = draw(_parameters(name, taken))
        if parameter.kind == "argument" and parameter.container:
            if has_list_argument:
                continue
            has_list_argument = True
        parameters.append(parameter)
    environment: dict[str, str] = {}
    for parameter in parameters:
        for variable in parameter.variables:
            if draw(st.booleans()):
                texts = draw(st.sampled_from(parameter.texts(unusual=draw(st.integers(0, 3)) == 0)))
                separator = os.pathsep if "Path" in parameter.families else " "
                text = separator.join(texts * (1 + bool(parameter.container)))
                environment[variable] = text.encode("utf-8", "surrogateescape").decode(
                    "utf-8", "surrogateescape"
                )
    return Command(tuple(parameters), tuple(environment.items()), draw(st.booleans()))


# ------------------------------------------------------------------ lines

_NEUTRAL_FLAGS = (
    *(("--json",), ("--quiet",), ("-q",), ("-v",), ("-vv",), ("-qv",), ("--verbose",)),
    *(("--output", "json"), ("--output=json",), ("-o", "json"), ("-ojson",), ("--jsonl",)),
    *(("--yes",), ("--no-input",), ("--response-format", "concise"), ("--print0",)),
    *(("--tooli-json",), ("--tooli-output", "json"), ("--tooli-quiet",), ("--tooli-output=json",)),
)
"""Framework flags that do not change the result of the command."""
_EFFECTIVE_FLAGS = (
    *(("--output", "xml"), ("--json=1",), ("--quiet=",), ("--limit", "3"), ("--timeout=3",)),
    *(("--output=",), ("-oxml",), ("--tooli-nope",), ("--dry-run",), ("--response-format", "x")),
    *(("--tooli-limit", "3"), ("-qz",), ("--null",), ("--jsno",), ("--tooli-json=1",)),
)
"""Framework flags that change the result, or that are invalid."""
_NOISE = (
    *(("--zzz",), ("--zzz=1",), ("-z",), ("-zz",), ("-",), ("--",), ("--",), ("",), ("word",)),
    *(("-5",), ("-1.5",), ("--=",), ("-=",), ("---",), ("--=x",), ("surplus", "words"), ("+x",)),
    *(("/y",), ("-é",), ("--日本",), ("\udc80",), ("-\udc80",), ("--name.part", "x"), ("-a=1",)),
)


@dataclass(frozen=True)
class Line:
    """A command line: `argv` with the framework's flags, and `plain_argv` without them.

    `plain_argv` is None if a framework flag is invalid or changes the result.
    """

    argv: tuple[str, ...]
    plain_argv: tuple[str, ...] | None = field(compare=False)


class Pool:
    """The pieces from which the lines of one command are drawn."""

    def __init__(self, command: Command) -> None:
        own = command.flags
        self.parameters = command.parameters
        self.valid = {p.name: p.pieces() for p in command.parameters}
        self.unusual = {
            p.name: p.pieces(unusual=True) or self.valid[p.name] for p in command.parameters
        }
        self.short = [w for p in command.parameters if p.is_flag for w in p.flags if len(w) == 2]
        self.noise = [*_NOISE, *((w,) for w in self._near_flags()), *((w,) for w in own)]
        self.noise += [piece for pieces in self.valid.values() for piece in pieces]
        self.noise += [piece for pieces in self.unusual.values() for piece in pieces[:40]]
        self.neutral_flags = [flag for flag in _NEUTRAL_FLAGS if _is_framework_flag(flag[0], own)]
        self.complete_pieces = {
            piece
            for p in command.parameters
            if p.kind == "option"
            for piece in (*self.valid[p.name], *self.unusual[p.name])
        }

    def _near_flags(self) -> list[str]:
        """Return texts that resemble flags: abbreviated, misspelled, in capitals, joined."""
        found = [f"-{''.join(word[1] for word in self.short)}", *(f"{w}z" for w in self.short)]
        for parameter in self.parameters:
            for word in parameter.flags:
                bare = word.lstrip("-+/")
                found += [word[:-1], f"{word}x", word.upper(), f"--no-{bare}", f"{word}="]
                found += [f"-{bare}", f"--{bare}", word.replace("-", "_"), f"--{bare[::-1]}"]
                found += [f"{flag}{bare}" for flag in self.short]
        return [word for word in found if len(word) > 1]


def _is_framework_flag(flag: str, own: frozenset[str]) -> bool:
    """True if a flag belongs to the framework, because the command does not define it."""
    if flag[:2] != "--":
        return not any(f"-{letter}" in own for letter in flag[1:]) and flag not in own
    return flag.partition("=")[0] not in own


def _is_complete(piece: tuple[str, ...], pool: Pool) -> bool:
    """True if a piece certainly does not consume the arguments after it."""
    return piece in pool.complete_pieces or not any(word[:1] in ("-", "+", "/") for word in piece)


@st.composite
def lines(draw: st.DrawFn, pool: Pool, prefixes: tuple[tuple[str, ...], ...]) -> Line:
    """Draw a line. The first of `prefixes` names the command; the others may be wrong."""
    prefix = draw(_mostly(st.just(prefixes[0]), st.sampled_from(prefixes), 14))
    mode = draw(st.sampled_from(("valid", "valid", "unusual", "noisy", "wild")))
    pieces: list[tuple[str, ...]] = []
    for parameter in pool.parameters:
        if not parameter.required and draw(st.booleans()):
            continue
        if mode == "wild" and draw(st.booleans()):
            continue
        source = pool.unusual if mode == "unusual" and draw(st.booleans()) else pool.valid
        times = 2 if parameter.container and draw(st.booleans()) else 1
        for _ in range(times):
            piece = draw(st.sampled_from(source[parameter.name]))
            at = len(pieces) if parameter.kind == "argument" else draw(st.integers(0, len(pieces)))
            pieces.insert(at, piece)
    if mode in ("noisy", "wild"):
        for piece in draw(st.lists(st.sampled_from(pool.noise), min_size=1, max_size=3)):
            pieces.insert(draw(st.integers(0, len(pieces))), piece)
    prefix_has_flags = any(word[:1] == "-" for word in prefix)
    line = draw(
        _insert_framework_flags(
            [prefix] if prefix_has_flags else [(word,) for word in prefix], pieces, pool
        )
    )
    if prefix != prefixes[0] and any(piece[0][:1] == "-" for piece in pieces):
        # Without the command, its flags may be read as framework flags.
        return Line(line.argv, None)
    return line


@st.composite
def _insert_framework_flags(
    draw: st.DrawFn, prefix: list[tuple[str, ...]], pieces: list[tuple[str, ...]], pool: Pool
) -> Line:
    """Insert framework flags between the pieces, where no piece can consume them."""
    all_pieces = [*prefix, *pieces]
    complete_count = next(
        (i for i, piece in enumerate(pieces) if not _is_complete(piece, pool)), len(pieces)
    )
    plain_argv: tuple[str, ...] | None = tuple(arg for piece in all_pieces for arg in piece)
    last_position = 0 if prefix and prefix[-1][-1][:1] == "-" else len(prefix) + complete_count
    is_effective = st.sampled_from((False, False, False, True))
    for changes_result in draw(st.lists(is_effective, max_size=2)):
        flag = draw(st.sampled_from(_EFFECTIVE_FLAGS if changes_result else pool.neutral_flags))
        if changes_result:
            plain_argv = None
        all_pieces.insert(draw(st.integers(0, last_position)), flag)
    return Line(tuple(arg for piece in all_pieces for arg in piece), plain_argv)


def is_equal(one: object, other: object) -> bool:
    """True if two values and the types of all their parts are equal. NaN equals NaN."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(is_equal(one[k], other[k]) for k in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(is_equal, one, other))
    if isinstance(one, (set, frozenset)) and isinstance(other, (set, frozenset)):
        return sorted(map(repr, one)) == sorted(map(repr, other))
    return repr(one) == repr(other) if isinstance(one, float) else one == other
