"""Prove the command lines of a program: arguments → argv → its own parser → the same values."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import tooli
from tooli.errors import ToolError
from tooli.inputs.secret import SecretInput
from tooli.providers.programs.program_argv import build_command_line
from tooli.providers.programs.program_commands import (
    ProgramCommand,
    ProgramParam,
    parse_program,
)

READER = Path(tooli.__file__).parent / "providers/programs/reader"
RUNNER = Path(__file__).with_name("parser_runner.py")


class RoundTrip:
    """The parameters of a program: how many arrive as they were given, and which do not."""

    def __init__(self, python: str, request: dict[str, Any], sample_file: str) -> None:
        self.sample_file = sample_file
        self.kind = ""
        self.right = 0
        self.total = 0
        self.wrong: list[str] = []
        argv = [python, str(RUNNER), str(READER), json.dumps(request)]
        with subprocess.Popen(
            argv,
            cwd=Path(sample_file).parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            description = json.loads(process.stdout.readline() or '{"error": "nothing"}')
            if "error" in description:
                process.kill()
                self.error = str(description["error"])
                return
            self.error = ""
            self.kind = description["kind"]
            checks = list(self._checks(description))
            out, _ = process.communicate(json.dumps([check["request"] for check in checks]), 120)
            for check, found in zip(checks, json.loads(out), strict=True):
                self._compare(check, found)

    def _checks(self, description: dict[str, Any]) -> Any:
        program = parse_program(description)
        raw_levels = description["levels"]
        for command, raw in zip(program.commands, description["commands"], strict=True):
            for position, level in enumerate(command.levels):
                is_last = position == len(command.levels) - 1
                if not is_last and command is not program.commands[0]:
                    continue  # the options of a group are checked once
                for param in level.params:
                    self.total += 1
                    raw_param = find_raw(param, level, raw_levels[raw["levels"][position]])
                    try:
                        yield self._check(program.prog, command, param, position, raw_param)
                    except ToolError as error:
                        self.wrong.append(f"{command.words} {param.name}: {error.message}")

    def _check(
        self, prog: str, command: ProgramCommand, param: ProgramParam, level: int, raw_param: Any
    ) -> dict[str, Any]:
        arguments = {p.name: self._sample(p) for p in command.params() if p.required}
        for other in command.levels[level].params:
            if other is param:
                break
            if other.is_argument and param.is_argument and other.name not in arguments:
                arguments[other.name] = self._sample(other)
        group = next((w for w in ("Exactly one of: ", "At most one of: ") if w in param.help), None)
        if group:
            for name in param.help.partition(group)[2].rstrip(".").split(", "):
                arguments.pop(name, None)
        for p in command.params():  # one of a group whose options exclude each other
            if "Exactly one of" in p.help and p.name not in arguments and not group:
                arguments[p.name] = self._sample(p)
                break
        value = arguments[param.name] = self._sample(param)
        line = build_command_line(command, arguments)
        request = {
            "argv": list(line.words),
            "env": dict(line.env),
            "prog": prog,
            "depth": len(command.levels) - 1,
            "level": level,
            "name": raw_param["name"],
        }
        return {"request": request, "param": param, "value": value, "const": raw_param["is_const"]}

    def _sample(self, param: ProgramParam) -> Any:
        found = sample(param.json_schema(), self.sample_file, param)
        return SecretInput(found) if param.is_secret and not param.envvar else found

    def _compare(self, check: dict[str, Any], found: dict[str, Any]) -> None:
        value, got = check["value"], found.get("value", "(error)")
        if isinstance(value, SecretInput):
            value = value.reveal()
        expected = [str(item) for item in flat(value)]
        tail = [str(item) for item in flat(got)][-len(expected) :] if expected else []
        is_right = "error" not in found and (
            got == value or tail == expected or (check["const"] and got not in (None, "(not set)"))
        )
        if is_right or (check["param"].action == "count" and got):
            self.right += 1
        else:
            self.wrong.append(f"{check['request']['argv']} -> {found} instead of {value!r}")


def find_raw(param: ProgramParam, level: Any, raw_level: Any) -> Any:
    """Return the description of a parameter, which has its name in the program."""
    if param.flags:
        return next(p for p in raw_level["params"] if set(param.flags) == set(p["flags"]))
    arguments = [p for p in level.params if p.is_argument]
    return [p for p in raw_level["params"] if not p["flags"]][arguments.index(param)]


def sample(schema: dict[str, Any], file: str, param: ProgramParam) -> Any:
    """Return a value that is valid for a schema."""
    if "anyOf" in schema:
        return sample(schema["anyOf"][0], file, param)
    if "enum" in schema:
        return schema["enum"][-1]
    if "prefixItems" in schema:
        return [sample(item, file, param) for item in schema["prefixItems"]]
    kind = schema.get("type")
    if kind == "array":
        count = schema.get("minItems") or 2
        found = [sample(schema["items"], file, param) for _ in range(count)]
        # argparse takes no word that begins with a dash in an option of several words
        takes_several = bool(param.flags) and param.nargs != 1
        return [_undash(item) for item in found] if takes_several else found
    if kind in ("integer", "number"):
        low = schema.get("minimum") or (1 if param.action == "count" else None)
        low = low or schema.get("minimum", schema.get("exclusiveMinimum", 2) + 1)
        return min(low, schema.get("maximum", low))
    if kind == "boolean":
        return True
    if isinstance(param.default, str) and param.default and not param.multiple:
        return param.default  # it is valid for a type of the program
    is_path = param.reads_stdin or any(w in param.name for w in ("file", "path", "dir"))
    if "dir" in param.name and not param.reads_stdin:
        return str(Path(file).parent)
    return file if is_path else "-abc"


def _undash(value: Any) -> Any:
    if isinstance(value, list):
        return [_undash(item) for item in value]
    return value.lstrip("-") if isinstance(value, str) else value


def flat(value: Any) -> list[Any]:
    if isinstance(value, list):
        return [inner for item in value for inner in flat(item)]
    return [value]
