from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest

from tooli.providers.programs.program_commands import InvalidDescription, parse_program


def param(name: str, *flags: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "flags": list(flags), "action": "value", "schema": {}, **fields}


def flag(name: str, *flags: str, **fields: Any) -> dict[str, Any]:
    return param(name, *flags, action="flag", **fields)


def describe(*params: dict[str, Any], above: Any = (), **level: Any) -> dict[str, Any]:
    root = {"style": "argparse", "params": list(above)}
    own = {"word": "go", "style": "argparse", "params": list(params), **level}
    command = {"words": ["go"], "levels": [0, 1], "help": "Go."}
    return {"kind": "argparse", "prog": "p", "levels": [root, own], "commands": [command]}


def schema(*params: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return parse_program(describe(*params, **fields)).commands[0].input_schema()


def test_schemas_of_parameters() -> None:
    found = schema(
        param("a", nargs="*", required=True, help="A."),
        param("b", "--b", schema={"type": "integer", "minimum": 1, "x": 1}, default=3),
        param("c", "-c", "--cc", multiple=True, items=[{"type": "string"}, {"type": "integer"}]),
        param("d", "--d", nargs=2, schema={"type": "number"}),
        param("e", "--e", nargs="+"),
        param("f", "--f", nargs="?", optional_value=True, schema={"enum": ["x", 1]}),
        param("g", "--g", action="count"),
        param("when", "--when", schema={"x-note": "Formats: Y"}),
        flag("h", "--h", required=True),
    )
    assert found["required"] == ["a", "h"]
    text = {"type": "string"}
    pair = {"type": "array", "prefixItems": [text, {"type": "integer"}], "minItems": 2}
    number = {"type": "number"}
    assert found["properties"] == {
        "a": {"type": "array", "items": text, "minItems": 1, "description": "A."},
        "b": {"type": "integer", "minimum": 1, "default": 3},
        "c": {"type": "array", "items": {**pair, "maxItems": 2}},
        "d": {"type": "array", "items": number, "minItems": 2, "maxItems": 2},
        "e": {"type": "array", "items": text, "minItems": 1},
        "f": {"anyOf": [{"type": "string", "enum": ["x", 1]}, {"const": True}]},
        "g": {"type": "integer", "minimum": 0, "maximum": 100},
        "when": {"type": "string", "description": "Formats: Y"},
        "h": {"type": "boolean"},
    }


def test_names_are_unique() -> None:
    found = schema(
        flag("level", "--fast", is_const=True),
        flag("level", "-s", "--slow", is_const=True),
        param("stdin"),
        param("größe", "--größe"),
        param("日本"),
        param("x"),
        param("X", "--x", action="flag"),
        above=[param("x", "-x"), param("x-y", "--xy"), param("go_x", "--go-x")],
    )
    names = ["fast", "slow", "stdin_2", "gr_e", "argument", "x", "X", "global_x", "x_y", "go_x"]
    assert list(found["properties"]) == names


def test_pairs_are_one_parameter() -> None:
    program = parse_program(
        describe(
            flag("color", "--color", help="Colors."),
            flag("color", "--no-color", is_const=True),
            flag("no_wait", "--no-wait"),
        )
    )
    color, wait = program.commands[0].params()
    assert (color.name, color.flags, color.off) == ("color", ("--color",), ("--no-color",))
    assert (wait.name, wait.off) == ("no_wait", ())


def test_options_that_exclude_each_other() -> None:
    groups = [{"required": True, "params": [0, 1]}, {"params": [2, 99, True]}]
    found = schema(
        flag("a", "--a", help="A."), flag("b", "--b"), flag("c", "--c"), exclusive=groups
    )
    texts = [p.get("description") for p in found["properties"].values()]
    assert texts == ["A. Exactly one of: a, b.", "Exactly one of: a, b.", "At most one of: c."]


def test_secrets() -> None:
    params = [
        param("api_token", "--api-token", default="x"),
        param("pw", "-p", secret=True),
        param("max_token", "--max-token", schema={"type": "integer"}),
        param("token_file", "--token-file"),
        flag("secret", "--secret"),
        param("token", "--tokens", multiple=True, nargs="*"),
    ]
    command = parse_program(describe(*params)).commands[0]
    assert [p.name for p in command.params() if p.is_secret] == ["api_token", "pw"]
    token = command.input_schema()["properties"]["api_token"]
    assert token == {"type": "string", "writeOnly": True}


def test_positional_arguments_and_standard_input() -> None:
    command = parse_program(
        describe(
            param("a", required=True),
            param("o", "--o"),
            param("b", nargs="*", schema={"x-stdin": True}),
            param("c", required=True),
        )
    ).commands[0]
    assert command.positional() == ["a", "b"] and command.takes_stdin()
    assert "stdin" in command.input_schema()["properties"]
    optional = parse_program(describe(param("a", nargs="?"), param("b", required=True)))
    assert optional.commands[0].positional() == ["a"]
    assert "stdin" in optional.commands[0].input_schema(takes_stdin=True)["properties"]


def test_extra_arguments() -> None:
    found = schema(param("a"), takes_extra=True)
    assert list(found["properties"]) == ["a", "extra_arguments"]


def test_words_of_programs_are_cleaned() -> None:
    text = "\x1b[31mred\x1b[0m\u202e hidden"
    program = parse_program({**describe(param("a", help=text, default=[text])), "help": text})
    (found,) = program.commands[0].params()
    assert (program.help, found.help, found.default) == ("red hidden", "red hidden", ["red hidden"])
    assert len(parse_program(describe(param("a", help="x" * 10**5))).commands[0].help) < 10


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"levels": {}}, "'levels' is not a list"),
        ({"levels": [1]}, "a level is not a JSON object"),
        ({"commands": [{"levels": [7], "words": []}]}, "unknown level"),
        ({"commands": [{"levels": [], "words": [1]}]}, "'words' is not a list of texts"),
        ({"commands": [{"levels": [], "words": ["a\0"]}]}, "'words' is not a list of texts"),
        ({"commands": [{}] * 6000}, "more than 5,000 items"),
        ({"kind": 1}, "'kind' is not a text"),
        ({"levels": [{"style": "shell"}]}, "'shell' is not a known kind"),
        ({"levels": [{"style": "click", "params": [{"action": "run"}]}]}, "not a known action"),
        (
            {"levels": [{"style": "click", "params": [{"action": "flag", "nargs": -1}]}]},
            "not a number of words",
        ),
    ],
)
def test_what_is_not_a_description(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidDescription, match=message):
        parse_program({**describe(param("a")), **change})


def test_damaged_descriptions_are_refused_or_read() -> None:
    original = describe(
        param("a", "--a", schema={"enum": ["x"]}, items=[{}]), flag("b", "--b"), exclusive=[{}]
    )
    random_values: list[Any] = [None, 1, -1, "x", [], {}, [None], {"a": 1}, True, 1.5, "\0"]
    chooser = random.Random(7)
    for _ in range(500):
        damaged = copy.deepcopy(original)
        node: Any = damaged
        while True:
            keys = list(node) if isinstance(node, dict) else list(range(len(node)))
            key = chooser.choice(keys)
            if chooser.random() < 0.4 or not isinstance(node[key], (dict, list)) or not node[key]:
                node[key] = chooser.choice(random_values)
                break
            node = node[key]
        try:
            for command in parse_program(damaged).commands:
                json.dumps(command.input_schema())
        except InvalidDescription:
            pass
