"""Give command lines to the parser of a program, in the program's interpreter.

It writes the description of the parser, reads a list of requests, and writes the parsed values.
The callbacks and functions of the program do not run.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

UNSET = "(not set)"


def run(reader_folder: str, request: dict[str, Any]) -> None:
    """Run the program until it parses, and answer the requests on stdin."""
    import types

    package = types.ModuleType("program_reader")
    package.__path__ = [reader_folder]
    sys.modules["program_reader"] = package
    from program_reader import capture  # type: ignore[import-not-found]

    requests, answers = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    originals: list[tuple[Any, str, Any]] = []
    for name in ("__init__", "parse_known_args", "parse_args"):
        originals.append((argparse.ArgumentParser, name, getattr(argparse.ArgumentParser, name)))

    class Runner(capture.Capture):  # type: ignore[misc]
        def _patches(self) -> Any:
            def keep(patch: Any) -> Any:
                def run_patch(module: Any) -> None:
                    for name in ("BaseCommand", "Command"):
                        owner = getattr(module, name, None)
                        if owner is not None and "core" in module.__name__:
                            for method in ("main", "make_context"):
                                if hasattr(owner, method):
                                    originals.append((owner, method, getattr(owner, method)))
                    patch(module)

                return run_patch

            return {name: keep(patch) for name, patch in super()._patches().items()}

        def _patch_optparse(self) -> None:
            import optparse

            originals.append(
                (optparse.OptionParser, "parse_args", optparse.OptionParser.parse_args)
            )
            super()._patch_optparse()

        def finish(self, kind: str, parser: Any) -> None:
            if kind == "typer":
                import typer.main

                parser, kind = typer.main.get_command(parser), "click"
            description = {"kind": kind, **capture.describe(kind, parser, self.prog)}
            write(answers, description)
            for owner, name, original in originals:
                setattr(owner, name, original)
            with os.fdopen(requests) as lines:
                asked = json.load(lines)
            write(answers, [answer(kind, parser, item) for item in asked])
            os._exit(0)

    sys.argv = [request.get("path") or request["prog"], *request["arguments"]]
    runner = Runner(request["prog"], answers)
    runner.install()
    try:
        capture.run_program(request)
    except BaseException as failure:
        runner.give_up(f"{type(failure).__name__}: {failure}")
    runner.give_up("it ended")


def write(output: int, value: Any) -> None:
    data = json.dumps(value, default=str).encode() + b"\n"
    while data:
        data = data[os.write(output, data) :]


def answer(kind: str, parser: Any, item: dict[str, Any]) -> Any:
    """Return the value of one parameter after parsing a command line, or the error."""
    errors = io.StringIO()
    os.environ.update(item["env"])
    try:
        with redirect_stderr(errors), redirect_stdout(io.StringIO()):
            found = PARSERS[kind](parser, list(item["argv"]), item)
    except BaseException as failure:
        text = f"{failure} {errors.getvalue()[-300:]}"
        return {"error": f"{type(failure).__name__}: {text}"}
    return {"value": plain(found)}


def parse_click(command: Any, argv: list[str], item: dict[str, Any]) -> Any:
    parent, name = None, item["prog"]
    for depth in range(item["depth"] + 1):
        for param in command.params:
            param.callback, param.expose_value = None, True
        for param in command.get_params(command.context_class(command, info_name=name)):
            param.callback = None
        context = command.make_context(name, argv, parent=parent)
        if depth == item["level"]:
            return context.params.get(item["name"], UNSET)
        argv = [*getattr(context, "_protected_args", []), *context.args]
        name, command, argv = command.resolve_command(context, argv)
        parent = context
    return UNSET


def parse_argparse(parser: Any, argv: list[str], item: dict[str, Any]) -> Any:
    accept_any_text(parser)
    namespace, rest = parser.parse_known_args(argv)
    return f"rest {rest}" if rest else getattr(namespace, item["name"], UNSET)


def accept_any_text(parser: Any) -> None:
    """Replace the types of the program, which refuse or change samples, by text."""
    for action in parser._actions:
        known = action.type in (None, str, int, float) or isinstance(action.type, argparse.FileType)
        if not known and action.choices is None:
            action.type = str
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                accept_any_text(child)


def parse_optparse(parser: Any, argv: list[str], item: dict[str, Any]) -> Any:
    found = parser.parse_args(argv)
    values, rest = found if isinstance(found, tuple) else (found, parser.largs or [])
    return list(rest) if item["name"] == "arguments" else getattr(values, item["name"], UNSET)


def parse_cyclopts(app: Any, argv: list[str], item: dict[str, Any]) -> Any:
    command, bound, *_ = app.parse_args(argv, exit_on_error=False, print_error=False)
    del command
    found = bound.arguments
    for name, value in found.items():
        if name == item["name"] or name.strip("_") == item["name"].strip("_"):
            return value
    return UNSET


PARSERS = {
    "click": parse_click,
    "argparse": parse_argparse,
    "optparse": parse_optparse,
    "cyclopts": parse_cyclopts,
}


def plain(value: Any) -> Any:
    """Return a value as JSON."""
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    for attribute in ("name", "value"):
        found = getattr(value, attribute, None)
        if isinstance(found, str):
            return found
    return str(value)


if __name__ == "__main__":
    run(sys.argv[1], json.loads(sys.argv[2]))
