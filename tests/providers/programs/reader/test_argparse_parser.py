from __future__ import annotations

import argparse
import optparse
import re
from typing import Any

from tooli.providers.programs.reader.argparse_parser import (
    describe_argparse,
    describe_getopt,
    describe_optparse,
)


def params_of(parser: argparse.ArgumentParser) -> dict[str, Any]:
    (level,) = describe_argparse(parser, "p")["levels"]
    return {(p["flags"] or [p["name"]])[0]: p for p in level["params"]}


def test_actions() -> None:
    parser = argparse.ArgumentParser(prog="p")
    parser.add_argument("--version", action="version", version="1")
    parser.add_argument("a", type=int, help="The %(dest)s of %(prog)s (%(type)s).")
    parser.add_argument("rest", nargs=argparse.REMAINDER, metavar="COMMAND")
    parser.add_argument("--on", action="store_true")
    parser.add_argument("--off", dest="on", action="store_false")
    parser.add_argument("--mode", action="store_const", const=5)
    parser.add_argument("--color", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("-v", "--verbose", action="count", default=0)
    parser.add_argument("--tag", action="append", nargs=2, default=["x"])
    parser.add_argument("--more", action="extend", nargs="+")
    parser.add_argument("--level", choices=[1, 2], type=int, required=True)
    parser.add_argument("--hidden", help=argparse.SUPPRESS, default=argparse.SUPPRESS)
    parser.add_argument("--maybe", nargs="?", const="x")
    found = params_of(parser)
    assert found["a"]["help"] == "The a of p (int)." and found["a"]["required"]
    assert (found["rest"]["nargs"], found["rest"]["required"]) == ("*", False)
    assert found["rest"]["help"] == "COMMAND" and found["rest"]["is_remainder"]
    assert not found["--on"]["is_const"] and found["--off"]["is_const"]
    assert found["--mode"]["is_const"] and found["--mode"]["action"] == "flag"
    assert (found["--color"]["off"], found["--color"]["default"]) == (["--no-color"], True)
    assert found["-v"]["action"] == "count"
    assert (found["--tag"]["multiple"], found["--tag"]["nargs"]) == (True, 2)
    assert (found["--more"]["multiple"], found["--more"]["nargs"]) == (False, "+")
    assert found["--level"]["schema"] == {"type": "integer", "enum": [1, 2]}
    assert found["--hidden"]["hidden"] and found["--hidden"]["default"] is None
    assert found["--maybe"]["optional_value"]
    assert "--version" not in found and "-h" not in found


def test_types() -> None:
    parser = argparse.ArgumentParser(prog="p")
    parser.add_argument("--number", type=float)
    parser.add_argument("--port", type=int, choices=range(1, 65536))
    parser.add_argument("--pattern", type=re.compile, choices=["a"], help="%(choices)s %(nope)s")
    parser.add_argument("--when", type=str, metavar="{auto,never}")
    parser.add_argument("--flag", type=bool)
    parser.add_argument("--odd", type=len, default=object())
    found = {flag: p["schema"] for flag, p in params_of(parser).items()}
    assert found == {
        "--number": {"type": "number"},
        "--port": {"type": "integer", "minimum": 1, "maximum": 65535},
        "--pattern": {"type": "string", "x-note": "One of: a"},
        "--when": {"type": "string", "enum": ["auto", "never"]},
        "--flag": {"type": "string", "x-note": "Any text but an empty one means yes."},
        "--odd": {"type": "string"},
    }


def test_subparsers() -> None:
    parser = argparse.ArgumentParser(prog="p", description="%(prog)s does it.")
    parser.add_argument("--quiet", action="store_true")
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--a")
    group.add_argument("--b")
    commands = parser.add_subparsers()
    commands.add_parser("add", aliases=["a"], help="Add to %(prog)s.")
    inner = commands.add_parser("db", description="The database.").add_subparsers()
    inner.add_parser("list", help=argparse.SUPPRESS)
    found = describe_argparse(parser, "p")
    assert found["help"] == "p does it."
    assert [command["words"] for command in found["commands"]] == [["add"], ["db", "list"]]
    assert found["commands"][0]["help"] == "Add to p add."
    assert found["commands"][1]["levels"] == [0, 2, 3]
    assert found["levels"][0]["exclusive"] == [{"required": True, "params": [1, 2]}]


def test_optparse() -> None:
    parser = optparse.OptionParser(usage="%prog [options] FILE", description="Do it.", prog="p")
    parser.add_option("-o", "--output", default="x", help="Where (%default).")
    parser.add_option("--size", type="int", default="3", nargs=2)
    parser.add_option("--kind", type="choice", choices=["a", "b"], action="append")
    parser.add_option("-v", action="count", dest="verbose")
    parser.add_option("--on", action="store_true")
    parser.add_option("--off", action="store_false", dest="on", help=optparse.SUPPRESS_HELP)
    other = optparse.OptionGroup(parser, "Others")
    other.add_option("--other", action="callback", callback=print)
    parser.add_option_group(other)
    parser.disable_interspersed_args()
    found = describe_optparse(parser, "p")
    (level,) = found["levels"]
    params = {p["name"]: p for p in level["params"]}
    assert found["help"] == "Do it." and level["is_interspersed"] is False
    assert params["output"]["help"] == "Where (x)."
    assert params["output"]["flags"] == ["--output", "-o"]
    assert (params["size"]["nargs"], params["size"]["default"]) == (2, None)
    assert params["kind"]["multiple"] and params["kind"]["schema"]["enum"] == ["a", "b"]
    assert params["verbose"]["action"] == "count"
    assert params["--other"]["action"] == "flag"
    assert params["arguments"]["nargs"] == "*" and "FILE" in params["arguments"]["help"]
    hidden = [p for p in level["params"] if p["flags"] == ["--off"]]
    assert hidden[0]["hidden"] and hidden[0]["is_const"] and hidden[0]["help"] == ""


def test_getopt() -> None:
    found = describe_getopt("+ab:h", ["long", "value=", "help"], True, "p")
    (level,) = found["levels"]
    assert [(p["name"], p["action"]) for p in level["params"]] == [
        ("long", "flag"),
        ("value", "value"),
        ("a", "flag"),
        ("b", "value"),
        ("arguments", "value"),
    ]
    assert level["is_interspersed"] is False
    assert describe_getopt("a", [], True, "p")["levels"][0]["is_interspersed"]
