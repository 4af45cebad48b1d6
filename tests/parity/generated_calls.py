"""Random calls of random commands, to make mistakes in.

    commands() of tests/lanes ──▶ Command ──▶ Intention ──▶ units of a command line
                                                       └──▶ arguments and options

Values are drawn from the valid ones of `FAMILIES`. A value may still be refused, for example
because of a bound of the parameter. Therefore a test first runs the call without a mistake.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.lanes.generators import FAMILIES, build_function, is_usual_default
from tests.parity.wrong_calls import (
    CHOICE,
    DAY,
    FLAG,
    INTEGER,
    NUMBER,
    OPTIONS,
    TEXT,
    Field,
    Intention,
    Unit,
    interleave,
    option_unit,
)

import tooli
from tooli import Tooli
from tooli.annotations import Destructive

if TYPE_CHECKING:
    from collections.abc import Mapping
    from random import Random

    from tests.lanes.generators import Command, Parameter
    from tests.parity.wrong_call_checks import Received

NAME = "command"
_KINDS = {"int": INTEGER, "float": NUMBER, "bool": FLAG, "datetime": DAY, "UUID": DAY}
_OPTION_NAMES = sorted(OPTIONS.keys() - {"filter", "fields"})  # these are for records


def is_usual(command: Command) -> bool:
    """True if defaults and bounds fit, and no variable changes the positions of arguments."""
    for parameter in command.parameters:
        if parameter.kind == "argument" and parameter.variables:
            return False
        if parameter.default is not None:
            if not is_usual_default(parameter.default, parameter.families):
                return False
        bounds = dict(parameter.settings)
        if "min" in bounds and "max" in bounds and eval(bounds["min"]) > eval(bounds["max"]):
            return False
    return True


def make_app(command: Command, received: Received) -> Tooli:
    """Return an app with the command. It also has other commands, whose names are near."""
    app = Tooli("shop")
    app.use(received.stage, before="approval")
    fn: Any = build_function(command, tooli.Option, tooli.Argument)
    app.command(NAME, annotations=Destructive)(fn)
    for name in ("commend", "other"):
        app.command(name)(_other)
    return app


def _other(word: str = "w") -> str:
    return word


def random_intention(random: Random, command: Command) -> Intention:
    """Return a random call of a command, which is valid in most cases."""
    fields = tuple(_field(command, parameter) for parameter in command.parameters)
    arguments: dict[str, Any] = {}
    has_gap = False
    for parameter in command.parameters:
        is_argument = parameter.kind == "argument"
        is_given = parameter.required or (random.random() < 0.5 and not (is_argument and has_gap))
        has_gap = has_gap or (is_argument and not is_given)
        if is_given:
            arguments[parameter.name] = _random_value(random, parameter)
    options = {name: OPTIONS[name](random) for name in _OPTION_NAMES if random.random() < 0.3}
    return Intention(NAME, arguments, options, fields)


def _field(command: Command, parameter: Parameter) -> Field:
    arguments = [each for each in command.parameters if each.kind == "argument"]
    return Field(
        parameter.name,
        _kind(parameter),
        position=arguments.index(parameter) if parameter in arguments else -1,
        required=parameter.required,
        is_list=bool(parameter.container) or len(parameter.families) > 1,
        values=tuple(_json_value(parameter, texts) for texts in parameter.texts()),
    )


def _kind(parameter: Parameter) -> str:
    [family, *others] = parameter.families
    if others:
        return ""
    if parameter.style == "unannotated":
        return TEXT
    is_choice = "choice" in FAMILIES[family].categories
    return CHOICE if is_choice else _KINDS.get(family, TEXT)


def _random_value(random: Random, parameter: Parameter) -> Any:
    rows = parameter.texts()
    if parameter.container:
        chosen = [random.choice(rows) for _ in range(random.randrange(1, 3))]
        return [_json_value(parameter, row) for row in chosen]
    return _json_value(parameter, random.choice(rows))


def _json_value(parameter: Parameter, texts: tuple[str, ...]) -> Any:
    convert = {"int": int, "float": float, "bool": lambda text: text == "true"}
    values = [
        convert.get(family, str)(text)
        for family, text in zip(parameter.families, texts, strict=True)
    ]
    return values if len(values) > 1 else values[0]


# ------------------------------------------------------------------ command lines


def as_units(random: Random, intention: Intention, command: Command) -> list[Unit]:
    """Return the words of a command line in a random order and spelling."""
    positional: list[Unit] = []
    optional: list[Unit] = []
    for parameter, field in zip(command.parameters, intention.fields, strict=True):
        if parameter.name not in intention.arguments:
            continue
        value = intention.arguments[parameter.name]
        for item in value if parameter.container else [value]:
            texts = tuple(map(_text, item if isinstance(item, list) else [item]))
            unit = Unit(parameter.name, texts, field.kind, is_required=field.required)
            if parameter.kind == "argument":
                positional.append(unit)
            else:
                optional.append(_with_flag(random, parameter, unit, item))
    optional += _framework_units(random, intention.options, command)
    name = Unit("", (NAME,))
    if any(word[:1] == "-" for unit in positional for word in unit.words):
        return [name, *optional, Unit("", ("--",)), *positional]
    return [name, *interleave(random, positional, optional)]


def _with_flag(random: Random, parameter: Parameter, unit: Unit, value: Any) -> Unit:
    flag = random.choice(parameter.flags)
    if parameter.is_flag:
        times = max(1, min(value, 3)) if parameter.counts else 1
        return unit.replace(words=(flag,) * times, kind="")
    if flag[:1] != "-":  # the mistakes do not know such flags
        unit = unit.replace(kind="", is_required=False)
    first, *others = unit.words
    if not others and (first[:1] == "-" or random.random() < 0.4) and flag[:2] == "--":
        return unit.replace(words=(f"{flag}={first}",))
    return unit.replace(words=(flag, *unit.words))


def _framework_units(random: Random, options: Mapping[str, Any], command: Command) -> list[Unit]:
    units: list[Unit] = []
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        flag = f"--tooli-{flag[2:]}" if flag in command.flags else flag
        if flag not in command.flags:
            units.append(option_unit(random, name, flag, value))
    return units


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
