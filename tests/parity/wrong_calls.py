"""Generate random calls, and make one or two mistakes in each.

    Intention ──▶ words of a command line ──▶ mistake ──▶ wrong words
              └─▶ arguments and options   ──▶ mistake ──▶ wrong arguments and options

`Mistake.touched` has the names of the parameters and options whose value a mistake hides. A
correction may change these. It must keep all others.
"""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING, Any

from tooli.core import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    LineMistake: TypeAlias = Callable[[Random, list["Unit"], set[str]], list["Unit"] | None]

KINDS = ("small", "medium", "large")
COLORS = ("crimson", "turquoise", "violet")
NOT_NUMBERS = ("ten", "1O", "12x", "", "x", "1.5.2", "None", "3,5")
WORDS = ("desk", "oak table", "-lamp", "42", "blue", "small", "a=b", "true", "über", "<b>bold", "3")

INTEGER, NUMBER, TEXT, FLAG, DAY = "integer number text flag day".split()
KIND, COLOR, CHOICE = "kind color choice".split()
CHOICES = (KIND, COLOR, CHOICE)


VALUES: dict[str, Callable[[Random], Any]] = {
    INTEGER: lambda random: random.randrange(1, 90),
    NUMBER: lambda random: random.choice((0.5, 12.5, 99.0, 3.25)),
    TEXT: lambda random: random.choice(WORDS),
    FLAG: lambda random: random.random() < 0.7,
    KIND: lambda random: random.choice(KINDS),
    COLOR: lambda random: random.choice(COLORS),
    DAY: lambda random: f"2026-0{random.randrange(1, 10)}-11",
}


class Field(Record):
    """A parameter of a command of the app: `position` is that of an argument, or -1."""

    name: str
    kind: str
    position: int = -1
    required: bool = False
    is_list: bool = False
    fields: tuple[Field, ...] = ()  # of an object
    values: tuple[Any, ...] = ()  # valid ones, instead of those of the kind

    @property
    def is_argument(self) -> bool:
        return self.position >= 0


COMMANDS: dict[str, tuple[Field, ...]] = {
    "add": (
        Field("name", TEXT, 0, required=True),
        Field("count", INTEGER, 1),
        Field("price", NUMBER),
        Field("kind", KIND),
        Field("labels", TEXT, is_list=True),
        Field("gift", FLAG),
        Field("until", DAY),
    ),
    "move": (
        Field("target", TEXT, required=True),
        Field("color", COLOR),
        Field("depth", INTEGER),
        Field("force", FLAG),
        Field("sources", TEXT, 0, required=True, is_list=True),
    ),
    "rows": (Field("pattern", TEXT, 0), Field("kind", KIND), Field("maximum", INTEGER)),
    "pair": (
        Field("left", INTEGER, 0, required=True),
        Field("right", INTEGER, 1, required=True),
        Field("scale", NUMBER),
    ),
    "order": (
        Field(
            "order",
            "object",
            required=True,
            fields=(
                Field("sku", TEXT, required=True),
                Field("amount", INTEGER, required=True),
                Field("express", FLAG),
                Field("kind", KIND),
            ),
        ),
        Field("priority", INTEGER),
    ),
    "ship": (
        Field("street", TEXT, required=True),
        Field("parcels", INTEGER, required=True),
        Field("kind", KIND),
        Field("insured", FLAG),
    ),
    "taken": (
        Field("limit", INTEGER),
        Field("dry_run", FLAG),
        Field("filter", TEXT),
        Field("word", TEXT, 0),
    ),
}
"""The parameters of each command of `wrong_calls_app.py`."""

OPTIONS: dict[str, Callable[[Random], Any]] = {
    "dry_run": lambda random: True,
    "yes": lambda random: True,
    "limit": lambda random: random.randrange(1, 50),
    "max_items": lambda random: random.randrange(1, 50),
    "timeout": lambda random: random.choice((5, 30, 2.5)),
    "idempotency_key": lambda random: random.choice(("key-1", "k2", "--k")),
    "filter": lambda random: random.choice(("size > 10", "name == 'desk'")),
    "fields": lambda random: random.choice(("name", "name,size")),
}


class Intention(Record):
    """A call that is right."""

    command: str
    arguments: dict[str, Any]
    options: dict[str, Any]
    fields: tuple[Field, ...]  # the parameters of the command


class Unit(Record):
    """Some words of a command line that belong together: a parameter, an option, a command."""

    name: str
    words: tuple[str, ...]
    kind: str = ""  # of the value; "" if there is none
    is_option: bool = False  # of the framework
    is_required: bool = False


def random_intention(random: Random) -> Intention:
    """Return a random valid call."""
    command = random.choice(sorted(COMMANDS))
    arguments = _random_fields(random, COMMANDS[command])
    names = [name for name in OPTIONS if random.random() < 0.3]
    if command != "rows":
        names = [name for name in names if name not in ("filter", "fields")]
    options = {name: OPTIONS[name](random) for name in names}
    return Intention(command, arguments, options, COMMANDS[command])


def _random_fields(random: Random, fields: Sequence[Field]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    has_gap = False
    for field in fields:
        is_given = field.required or (random.random() < 0.5 and not (field.is_argument and has_gap))
        has_gap = has_gap or (field.is_argument and not is_given)
        if is_given:
            values[field.name] = random_value(random, field)
    return values


def random_value(random: Random, field: Field) -> Any:
    """Return a random valid value of a parameter."""
    if field.fields:
        return _random_fields(random, field.fields)
    if field.values:
        value = random.choice(field.values)
        return [value] if field.is_list and not isinstance(value, list) else value
    make = VALUES[field.kind]
    return [make(random) for _ in range(random.randrange(1, 4))] if field.is_list else make(random)


# ------------------------------------------------------------------ command lines


def as_units(random: Random, intention: Intention) -> list[Unit]:
    """Return the words of a command line in a random order and spelling."""
    fields = intention.fields
    own = {f"--{field.name.replace('_', '-')}" for field in fields}
    positional: list[Unit] = []
    optional: list[Unit] = []
    for field in fields:
        if field.name not in intention.arguments:
            continue
        value = intention.arguments[field.name]
        if field.is_argument:
            for text in value if field.is_list else [value]:
                positional.append(
                    Unit(field.name, (str(text),), field.kind, is_required=field.required)
                )
        elif field.fields:
            optional += [
                _option_unit(random, f"--{field.name}.{part.name}", value[part.name], part, field)
                for part in field.fields
                if part.name in value
            ]
        else:
            flag = f"--{field.name.replace('_', '-')}"
            for item in value if field.is_list else [value]:
                optional.append(_option_unit(random, flag, item, field, field))
    for name, value in intention.options.items():
        flag = f"--{name.replace('_', '-')}"
        flag = f"--tooli-{flag[2:]}" if flag in own else flag
        if name == "fields" and random.random() < 0.5:
            flag = "--select"
        optional.append(option_unit(random, name, flag, value))
    units = [Unit("", (intention.command,)), *interleave(random, positional, optional)]
    if any(unit.words[0][:1] == "-" for unit in positional):
        units = [units[0], *optional, Unit("", ("--",)), *positional]
    return units


def option_unit(random: Random, name: str, flag: str, value: Any) -> Unit:
    """Return the words of a framework option."""
    words = (flag,) if value is True else _with_value(random, flag, str(value))
    kind = "" if value is True else INTEGER if isinstance(value, int) else TEXT
    return Unit(name, words, kind, is_option=True)


def interleave(random: Random, left: Sequence[Unit], right: Sequence[Unit]) -> list[Unit]:
    """Return both lists mixed; the units of `left` keep their order."""
    others = [*right]
    random.shuffle(others)
    result = [*left]
    for unit in others:
        result.insert(random.randrange(len(result) + 1), unit)
    return result


def _option_unit(random: Random, flag: str, value: Any, field: Field, owner: Field) -> Unit:
    if field.kind == FLAG and "." not in flag:
        word = flag if value else f"--no-{flag[2:]}"
        return Unit(owner.name, (word,))
    text = str(value).lower() if isinstance(value, bool) else str(value)
    words = _with_value(random, flag, text)
    return Unit(owner.name, words, field.kind, is_required=field.required)


def _with_value(random: Random, flag: str, text: str) -> tuple[str, ...]:
    is_joined = text[:1] == "-" or random.random() < 0.4
    return (f"{flag}={text}",) if is_joined else (flag, text)


class Mistake(Record):
    """A wrong command line, or wrong arguments and options."""

    label: str
    touched: frozenset[str]
    words: tuple[str, ...] = ()
    arguments: dict[str, Any] = {}
    options: dict[str, Any] = {}


def misspell(random: Random, text: str) -> str:
    """Return a text with one or two letters changed, in the ways in which people misspell."""
    for _ in range(random.choice((1, 1, 1, 2))):
        i = random.randrange(len(text))
        match random.randrange(5):
            case 0:
                text = text[:i] + text[i + 1 :] or text
            case 1:
                text = text[:i] + text[i] + text[i:]
            case 2:
                text = text[:i] + text[i + 1 : i + 2] + text[i : i + 1] + text[i + 2 :]
            case 3:
                text = text[:i] + random.choice("abcdeiorst") + text[i + 1 :]
            case _:
                text = text.replace("-", random.choice(("_", "")), 1) if "-" in text else text + "s"
    return text


def wrong_line(random: Random, right: Sequence[Unit]) -> Mistake | None:
    """Return a command line with one mistake, or with two."""
    units = list(right)
    labels: list[str] = []
    touched: set[str] = set()
    # An accepted mistake, such as a missing word, changes what a line means. It is the only one.
    count = random.choice((1, 1, 1, 2))
    for _ in range(count):
        label, make = random.choice(LINE_MISTAKES if count == 1 else REPORTED_MISTAKES)
        changed = make(random, units, touched)
        if changed is not None:
            units = changed
            labels.append(label)
    if not labels:
        return None
    words = [word for unit in units for word in unit.words]
    return Mistake(" + ".join(labels), frozenset(touched), words=tuple(words))


def _pick(
    random: Random, units: Sequence[Unit], is_wanted: Callable[[Unit], bool]
) -> tuple[int, Unit] | None:
    found = [(i, unit) for i, unit in enumerate(units) if is_wanted(unit)]
    return random.choice(found) if found else None


def _replaced(units: Sequence[Unit], i: int, *new: Unit) -> list[Unit]:
    return [*units[:i], *new, *units[i + 1 :]]


def _is_flag(unit: Unit) -> bool:
    return unit.words[0][:2] == "--" and len(unit.words[0]) > 3


def _has_one_dash(unit: Unit) -> bool:
    return unit.words[0][:1] == "-" and not _is_flag(unit)


def _split(unit: Unit) -> tuple[str, str | None]:
    """Return the flag of a unit, and its value."""
    flag, equals, value = unit.words[0].partition("=")
    return flag, value if equals else unit.words[1] if len(unit.words) > 1 else None


def _has_one_value(unit: Unit) -> bool:
    return _split(unit)[1] is not None and len(unit.words) < 3


def _with_flag(unit: Unit, flag: str) -> Unit:
    _, equals, value = unit.words[0].partition("=")
    first = f"{flag}={value}" if equals else flag
    return unit.replace(words=(first, *unit.words[1:]))


def _misspelled_flag(random: Random, units: list[Unit], touched: set[str]) -> list[Unit] | None:
    found = _pick(random, units, _is_flag)
    if found is None:
        return None
    i, unit = found
    flag, _ = _split(unit)
    touched.add(unit.name)
    return _replaced(units, i, _with_flag(unit, "--" + misspell(random, flag[2:])))


def _single_dash(random: Random, units: list[Unit], touched: set[str]) -> list[Unit] | None:
    found = _pick(random, units, lambda unit: _is_flag(unit) and "." not in _split(unit)[0])
    if found is None:
        return None
    i, unit = found
    touched.add(unit.name)
    return _replaced(units, i, _with_flag(unit, _split(unit)[0][1:]))


def _wrong_value(random: Random, units: list[Unit], touched: set[str]) -> list[Unit] | None:
    kinds = (INTEGER, NUMBER, DAY)
    found = _pick(random, units, lambda unit: unit.kind in kinds and not _has_one_dash(unit))
    if found is None:
        return None
    i, unit = found
    touched.add(unit.name)
    return _replaced(units, i, _with_text(unit, random.choice(NOT_NUMBERS)))


def _with_text(unit: Unit, text: str) -> Unit:
    if not _is_flag(unit):
        return unit.replace(words=(text,))
    return unit.replace(words=(f"{_split(unit)[0]}={text}",))


def _wrong_choice(random: Random, units: list[Unit], touched: set[str]) -> list[Unit] | None:
    found = _pick(random, units, lambda unit: unit.kind in CHOICES and not _has_one_dash(unit))
    if found is None:
        return None
    i, unit = found
    touched.add(unit.name)
    value = _split(unit)[1] or ""
    is_near = value and random.random() < 0.7
    text = misspell(random, value) if is_near else random.choice(("blue", "42", "x"))
    return _replaced(units, i, _with_text(unit, text))


def _surplus_word(random: Random, units: list[Unit], touched: set[str]) -> list[Unit] | None:
    word = random.choice((*WORDS, *KINDS, "7", "violet", "--nothing", "--dry", "-x"))
    touched.add("*")  # it may be the value of any parameter
    i = random.randrange(1, len(units) + 1)
    return [*units[:i], Unit("", (word,)), *units[i:]]


def _missing(random: Random, units: list[Unit], touched: set[str]) -> list[Unit] | None:
    found = _pick(random, units, lambda unit: unit.is_required)
    if found is None:
        return None
    touched.update(("*", found[1].name))
    return _replaced(units, found[0])


def _value_without_flag(random: Random, units: list[Unit], touched: set[str]) -> list[Unit] | None:
    found = _pick(random, units, lambda unit: _is_flag(unit) and _split(unit)[1] is not None)
    if found is None:
        return None
    i, unit = found
    touched.update(("*", unit.name))
    return _replaced(units, i, unit.replace(words=(_split(unit)[1] or "",)))


def _flag_without_value(random: Random, units: list[Unit], touched: set[str]) -> list[Unit] | None:
    found = _pick(
        random,
        units,
        lambda unit: _is_flag(unit) and _split(unit)[1] is not None and len(unit.words) < 3,
    )
    if found is None:
        return None
    i, unit = found
    touched.update(("*", unit.name))
    if i + 1 < len(units):  # the next word becomes its value
        touched.add(units[i + 1].name)
    return _replaced(units, i, unit.replace(words=(_split(unit)[0],)))


def _flag_with_value(random: Random, units: list[Unit], touched: set[str]) -> list[Unit] | None:
    found = _pick(random, units, lambda unit: _is_flag(unit) and _split(unit)[1] is None)
    if found is None:
        return None
    i, unit = found
    touched.add(unit.name)
    text = random.choice(("true", "True", "1", "on", "maybe", "x", "3"))
    return _replaced(units, i, unit.replace(words=(f"{unit.words[0]}={text}",)))


def _misspelled_command(random: Random, units: list[Unit], touched: set[str]) -> list[Unit] | None:
    touched.add("command")
    return _replaced(units, 0, Unit("", (misspell(random, units[0].words[0]),)))


def _wrong_expression(random: Random, units: list[Unit], touched: set[str]) -> list[Unit] | None:
    found = _pick(random, units, lambda unit: unit.name in ("filter", "fields") and unit.is_option)
    if found is None:
        return None
    i, unit = found
    touched.add(unit.name)
    text = random.choice(("size >", "nme == 'x'", "nam", "size => 3", "siez > 10"))
    return _replaced(units, i, _with_text(unit, text))


REPORTED_MISTAKES: tuple[tuple[str, LineMistake], ...] = (
    ("misspelled flag", _misspelled_flag),
    ("misspelled flag", _misspelled_flag),
    ("one dash", _single_dash),
    ("wrong value", _wrong_value),
    ("wrong choice", _wrong_choice),
    ("flag with value", _flag_with_value),
    ("wrong expression", _wrong_expression),
)
"""Mistakes that are always errors."""
LINE_MISTAKES = (
    *REPORTED_MISTAKES,
    ("surplus word", _surplus_word),
    ("missing", _missing),
    ("value without flag", _value_without_flag),
    ("flag without value", _flag_without_value),
    ("misspelled command", _misspelled_command),
)


# ------------------------------------------------------------------ arguments in JSON


def wrong_arguments(random: Random, intention: Intention) -> Mistake | None:
    """Return arguments and options with one mistake, or with two."""
    arguments, options = _copy(intention.arguments), dict(intention.options)
    labels: list[str] = []
    touched: set[str] = set()
    for _ in range(random.choice((1, 1, 1, 2))):
        label, make = random.choice(ARGUMENT_MISTAKES)
        if make(random, arguments, options, touched, intention.fields):
            labels.append(label)
    if not labels:
        return None
    text = " + ".join(labels)
    return Mistake(text, frozenset(touched), arguments=arguments, options=options)


def _copy(value: Any) -> Any:
    return json.loads(json.dumps(value))


def _any_object(
    random: Random, arguments: dict[str, Any], fields: Sequence[Field]
) -> tuple[str, dict[str, Any], Sequence[Field]]:
    """Return the arguments, or an object in them: its name, the object and its fields."""
    nested = [f for f in fields if f.fields and isinstance(arguments.get(f.name), dict)]
    if nested and random.random() < 0.5:
        return nested[0].name, arguments[nested[0].name], nested[0].fields
    return "", arguments, fields


def _misspelled_name(
    random: Random,
    arguments: dict[str, Any],
    options: dict[str, Any],
    touched: set[str],
    fields: Sequence[Field],
) -> bool:
    owner, holder, _ = _any_object(random, arguments, fields)
    if not holder:
        return False
    name = random.choice(sorted(holder))
    wrong = misspell(random, name)
    if wrong in holder or any(wrong == field.name for field in fields):
        return False
    touched.add(owner or name)
    holder[wrong] = holder.pop(name)
    return True


def _misspelled_option(
    random: Random,
    arguments: dict[str, Any],
    options: dict[str, Any],
    touched: set[str],
    fields: Sequence[Field],
) -> bool:
    """Misspell an option among the arguments, where MCP and Python take it."""
    names = sorted(options.keys() - {field.name for field in fields})
    if not names:
        return False
    name = random.choice(names)
    wrong = misspell(random, name)
    if wrong in arguments:
        return False
    touched.add(name)
    arguments[wrong] = options.pop(name)
    return True


def _wrong_type(
    random: Random,
    arguments: dict[str, Any],
    options: dict[str, Any],
    touched: set[str],
    fields: Sequence[Field],
) -> bool:
    owner, holder, parts = _any_object(random, arguments, fields)
    names = [f.name for f in parts if f.name in holder and f.kind not in (TEXT, "object")]
    if not names:
        return False
    name = random.choice(names)
    touched.add(owner or name)
    is_list = any(field.name == name and field.is_list for field in parts)
    others = ({"b": 2},) if is_list else ([1],)
    holder[name] = random.choice(("ten", *others, {"a": 1}, "maybe", "1O"))
    return True


def _wrong_choice_value(
    random: Random,
    arguments: dict[str, Any],
    options: dict[str, Any],
    touched: set[str],
    fields: Sequence[Field],
) -> bool:
    owner, holder, parts = _any_object(random, arguments, fields)
    names = [f.name for f in parts if f.name in holder and f.kind in CHOICES]
    names = [name for name in names if isinstance(holder[name], str)]
    if not names:
        return False
    name = random.choice(names)
    touched.add(owner or name)
    is_near = random.random() < 0.7 and holder[name]
    holder[name] = misspell(random, holder[name]) if is_near else random.choice(("blue", "x"))
    return True


def _surplus_name(
    random: Random,
    arguments: dict[str, Any],
    options: dict[str, Any],
    touched: set[str],
    fields: Sequence[Field],
) -> bool:
    owner, holder, _ = _any_object(random, arguments, fields)
    name = random.choice(("colour", "verbose", "force_it", "dry", "no", "o"))
    if name in holder:
        return False
    touched.update(("*", owner))
    holder[name] = random.choice((True, "x", 3, None, ["a"]))
    return True


def _missing_name(
    random: Random,
    arguments: dict[str, Any],
    options: dict[str, Any],
    touched: set[str],
    fields: Sequence[Field],
) -> bool:
    owner, holder, parts = _any_object(random, arguments, fields)
    names = [f.name for f in parts if f.required and f.name in holder]
    if not names:
        return False
    name = random.choice(names)
    touched.add(owner or name)
    del holder[name]
    return True


def _wrong_option(
    random: Random,
    arguments: dict[str, Any],
    options: dict[str, Any],
    touched: set[str],
    fields: Sequence[Field],
) -> bool:
    if not options:
        return False
    name = random.choice(sorted(options))
    touched.add(name)
    wrong = {"filter": ("size >", "nme == 'x'"), "fields": ("nam", "nme,size")}
    wrong["idempotency_key"] = ("a b", "")
    options[name] = random.choice(wrong.get(name, ("maybe", "size >", -1)))
    return True


ARGUMENT_MISTAKES: tuple[
    tuple[
        str,
        Callable[[Random, dict[str, Any], dict[str, Any], set[str], Sequence[Field]], bool],
    ],
    ...,
] = (
    ("misspelled name", _misspelled_name),
    ("misspelled option", _misspelled_option),
    ("wrong type", _wrong_type),
    ("wrong choice", _wrong_choice_value),
    ("surplus name", _surplus_name),
    ("missing", _missing_name),
    ("wrong option", _wrong_option),
)
