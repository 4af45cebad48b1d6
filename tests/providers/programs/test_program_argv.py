from __future__ import annotations

from typing import Any

import pytest
from tests.providers.programs.test_program_commands import describe, flag, param

from tooli.errors import InputError
from tooli.inputs.secret import SecretInput
from tooli.providers.programs.program_argv import build_command_line, check_value
from tooli.providers.programs.program_commands import ProgramCommand, parse_program


def command(*params: dict[str, Any], style: str = "argparse", **level: Any) -> ProgramCommand:
    described = describe(*params, style=style, **level)
    return parse_program(described).commands[0]


def words(found: ProgramCommand, **arguments: Any) -> list[str]:
    return list(build_command_line(found, arguments).words)


OPTIONS = [
    param("long", "--long"),
    param("short", "-s"),
    param("many", "--many", multiple=True),
    param("pair", "--pair", nargs=2, schema={"type": "number"}),
    param("list", "--list", nargs="*"),
    param("maybe", "--maybe", nargs="?", optional_value=True),
    param("on", "--on", schema={"type": "boolean"}),
    flag("yes", "--yes", off=["-n", "--no-yes"]),
    flag("fast", "-f"),
    param("count", "-v", action="count", schema={}),
]


def test_options() -> None:
    found = command(*OPTIONS)
    assert words(found) == ["go"]
    assert words(found, long="-x=1", short="-y") == ["go", "--long=-x=1", "-s=-y"]
    assert words(found, long="", many=["a", "-b"]) == ["go", "--long=", "--many=a", "--many=-b"]
    assert words(found, yes=True, fast=False, count=2) == ["go", "--yes", "-v", "-v"]
    assert words(found, yes=False, fast=True) == ["go", "--no-yes", "-f"]
    assert words(found, on=True) == ["go", "--on=true"]
    assert words(found, pair=[-1.5, 2.0]) == ["go", "--pair", "-1.5", "2"]
    assert words(found, maybe=True) == ["go", "--maybe"]
    assert words(found, maybe="-z") == ["go", "--maybe=-z"]
    assert words(found, list=["a", "b"], long="c") == ["go", "--list", "a", "b", "--long=c"]


def test_options_of_click_and_optparse() -> None:
    for style in ("click", "optparse"):
        found = command(*OPTIONS, style=style)
        assert words(found, long="-x", short="-y") == ["go", "--long=-x", "-s", "-y"]
    short = command(param("color", "-c", optional_value=True), style="click")
    assert words(short, color="-x") == ["go", "-c-x"]


def test_arguments() -> None:
    found = command(param("a", required=True), param("b", nargs="?"), param("c", nargs="*"))
    assert words(found, a="x", b="y", c=["z", "w"]) == ["go", "x", "y", "z", "w"]
    assert words(found, a="-x", c=[]) == ["go", "--", "-x"]
    assert words(found, a="-") == ["go", "-"]
    with pytest.raises(InputError, match="'c' can only be given together with 'b'"):
        words(found, a="x", c=["z"])
    after = command(param("files", "--files", nargs="+"), param("a", required=True))
    assert words(after, files=["1"], a="x") == ["go", "--files", "1", "--", "x"]


def test_optional_arguments_before_required_ones() -> None:
    params = [param("method", nargs="?"), param("url", required=True)]
    assert words(command(*params), url="x") == ["go", "x"]
    with pytest.raises(InputError, match="together with 'method'"):
        words(command(*params, style="click"), url="x")


def test_other_prefixes_and_order() -> None:
    plus = command(param("a"), prefixes="+-")
    assert words(plus, a="+x") == ["go", "--", "+x"]
    first = command(param("a", nargs="*"), style="optparse", is_interspersed=False)
    assert words(first, a=["install", "-r"]) == ["go", "install", "-r"]
    assert words(first, a=["-r"]) == ["go", "--", "-r"]
    extra = command(param("a"), takes_extra=True)
    assert words(extra, a="-x", extra_arguments=["--y"]) == ["go", "--", "-x", "--y"]


def test_groups() -> None:
    described = describe(param("a"), above=[param("name", "--name"), param("l", "-l", nargs="*")])
    found = parse_program(described).commands[0]
    assert words(found, a="1", name="n") == ["--name=n", "go", "1"]
    assert words(found, l=["x"]) == ["-l", "x", "--", "go"]


def test_words_that_the_program_would_misread() -> None:
    found = command(param("a"), param("p", "--p", nargs=2), file_prefixes="@")
    for arguments in ({"p": ["-x", "b"]}, {"p": ["@x", "b"]}, {"a": "@x"}):
        with pytest.raises(InputError, match="the program would"):
            words(found, **arguments)
    assert words(found, p=["-1", "-.5"]) == ["go", "--p", "-1", "-.5"]
    for style, arguments in (("cyclopts", {"s": "-x"}), ("argparse", {"a": "--"})):
        short = command(param("s", "-s"), param("a"), style=style)
        with pytest.raises(InputError, match="for an option"):
            words(short, **arguments)
    assert words(command(param("s", "-s"), style="cyclopts"), s="-1") == ["go", "-s", "-1"]
    assert words(command(param("a"), style="click"), a="--") == ["go", "--", "--"]
    numbered = command(param("p", "--p", nargs=2), flag("one", "-1"))
    with pytest.raises(InputError, match="for an option"):  # argparse reads -1 as the flag
        words(numbered, p=["-1", "2"])
    with pytest.raises(InputError, match="NUL"):
        words(found, a="x\0")
    with pytest.raises(InputError, match="not valid Unicode"):
        words(found, a="\ud800")


def test_defaults_and_secrets() -> None:
    asked = command(param("user", "--user", sends_default=True, default="root"))
    assert words(asked) == ["go", "--user=root"]
    secret = command(param("token", "--token", envvar="TOKEN"), param("pw", "--pw", secret=True))
    line = build_command_line(secret, {"token": SecretInput("t"), "pw": SecretInput("p")})
    assert (line.words, line.env) == (("go", "--pw=p"), {"TOKEN": "t"})


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "string"}, "x", 1),
        ({"type": "integer"}, 1, True),
        ({"type": "integer", "minimum": 1, "maximum": 2}, 2, 3),
        ({"type": "integer", "minimum": 1}, 1, 0),
        ({"type": "number", "exclusiveMinimum": 1}, 1.5, 1),
        ({"type": "number", "exclusiveMaximum": 1}, 0, 1),
        ({"type": "boolean"}, True, 1),
        ({"type": "string", "enum": ["a"]}, "a", "b"),
        ({"anyOf": [{"type": "integer"}, {"const": True}]}, True, False),
        ({"type": "array", "items": {"type": "string"}}, ["a"], [1]),
        ({"type": "array", "items": {"type": "string"}}, [], "a"),
        ({"type": "array", "items": {"type": "string"}, "minItems": 1}, ["a"], []),
        (
            {"type": "array", "prefixItems": [{"type": "integer"}], "minItems": 1, "maxItems": 1},
            [1],
            [1, 2],
        ),
    ],
)
def test_values(schema: dict[str, Any], good: Any, bad: Any) -> None:
    check_value(schema, good, "field")
    with pytest.raises(InputError, match="'field'") as caught:
        check_value(schema, bad, "field")
    assert caught.value.code == "E1003"
