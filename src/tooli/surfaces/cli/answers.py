"""Questions about the app itself: help, schema, version, and lines that name no command."""

from __future__ import annotations

import os
import sys

from tooli.call.model import Ok
from tooli.call.repair import no_command_given, no_such_command
from tooli.errors import InputError, Suggestion
from tooli.surfaces.cli.argv import DOCUMENTS

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from tooli.call.model import Call
    from tooli.contract.tool import Tool
    from tooli.errors import ToolError
    from tooli.sources.local import House
    from tooli.surfaces.cli.argv import Line
    from tooli.surfaces.cli.main import Session


def answer(session: Session) -> int:
    """Answer a question; the exit code. `--schema` wins over help, help over version."""
    said = session.line.options
    if session.line.stray is not None or _lost(session):
        return _nowhere(session)
    if "schema" in said:
        return _raw(session, schema_of(session, said["schema"]))
    if not DOCUMENTS.isdisjoint(said):
        return _document(session, said)
    if "help_agent" in said:
        return _text(session, help_for_agents(session))
    if "help" in said:
        return _help(session)
    if session.house.version is None:
        session.line.problems.clear()
        error = InputError(f"{session.house.name} declares no version.", code="E1007")
        return fail(session, error)
    return _version(session)


def _lost(session: Session) -> bool:
    """Whether the question stands behind an option that nobody knows, before any command."""
    return session.line.tool is None and bool(session.line.problems)


def _nowhere(session: Session) -> int:
    from tooli.surfaces.cli.typer_lane import run_line

    if session.mode == "text" and not any(p.code == "E1007" for p in session.line.problems):
        return run_line(session)
    error, call = no_command(session)
    return fail(session, error, call)


def fail(session: Session, error: ToolError, call: Call | None = None) -> int:
    """Answer with an error; the exit code."""
    from tooli.call.model import Failed

    session.claim()
    return session.finish(Failed(error), call or call_without_tool(session))


def answer_nowhere(session: Session) -> int:
    """Answer a line that leads to no command; the exit code."""
    return fail(session, *no_command(session))


# ------------------------------------------------------------------ help


def _help(session: Session) -> int:
    if session.mode == "text" and session.line.options.get("output") != "plain":
        return _typer_help(session)
    if session.manner is not None and session.manner.help == "compact" and session.mode != "plain":
        return _text(session, help_for_agents(session))
    return _text(session, plain_help(session))


def _typer_help(session: Session) -> int:
    """A person's help is Typer's, with its panels."""
    from tooli.surfaces.cli.people import Writing
    from tooli.surfaces.cli.typer_lane import run_line

    line = session.line
    line.rest = [*line.rest[: line.depth], "--help"] if line.tool is not None else line.rest
    if line.tool is None:
        line.rest = [*line.rest, "--help"]
    with Writing(session):
        return run_line(session)


def plain_help(session: Session) -> str:
    """Help without boxes, as wide as the terminal."""
    from tooli.surfaces.cli.help import app_plainly, tool_plainly

    line = session.line
    prog = " ".join(session.caller().prog or (session.house.name,))
    if line.tool is None:
        return app_plainly(session.house, line.branch, prog, line.path, _width())
    words = () if session.app.tree().single is not None else line.path
    return tool_plainly(line.tool, prog, words, _width())


def _width() -> int:
    try:
        columns = int(os.environ.get("COLUMNS", ""))
    except ValueError:
        columns = 0
    if columns <= 0:
        try:
            columns = os.get_terminal_size().columns
        except (OSError, ValueError):
            columns = 80
    return max(30, columns or 80)


def help_for_agents(session: Session) -> str:
    """The contract in as few tokens as it takes."""
    from tooli.views.brief import app_for_agents, details_for_agents

    line = session.line
    if line.tool is not None:
        return details_for_agents(line.tool)
    return app_for_agents(session.house, _tools(line, session.house))


def _text(session: Session, text: str) -> int:
    """Text as it is; inside an envelope where the caller asked for JSON in so many words."""
    if session.machine and session.explicit and session.mode not in ("csv", "md"):
        session.claim()
        return session.finish(Ok(text), call_without_tool(session))
    return _write(session, text)


def _write(session: Session, text: str) -> int:
    from tooli.surfaces.cli.people import Writing

    with Writing(session):
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    return 0


def _version(session: Session) -> int:
    house = session.house
    if session.machine and session.explicit:
        session.claim()
        value = {"name": house.name, "version": house.version}
        return session.finish(Ok(value), call_without_tool(session))
    return _write(session, f"{house.name} {house.version}")


# ------------------------------------------------------------------ schema


def schema_of(session: Session, form: str) -> Any:
    """The schema of the command, or of every command of the app."""
    from tooli.views.schema import describe_app, describe_tool

    line = session.line
    if line.tool is not None:
        return describe_tool(line.tool, form)
    return describe_app(
        session.house.name, session.house.version, _tools(line, session.house), form
    )


def _tools(line: Line, house: House) -> Iterator[Tool]:
    """The tools below a place; one that cannot be loaded is named on stderr and left out."""
    from tooli.errors import DefinitionError
    from tooli.surfaces.cli.channel import complain

    for path, registration in line.branch.walk(line.path):
        try:
            yield registration.tool(path, house)
        except DefinitionError as mistake:
            complain(f"Warning: {'.'.join(path)} is left out: {mistake}")


def _raw(session: Session, document: Any) -> int:
    """A document that is JSON itself, without an envelope."""
    from tooli.call.envelope import encode
    from tooli.surfaces.cli.channel import Channel, is_terminal

    data = encode(document, [])
    if session.mode == "text" and is_terminal(sys.stdout):
        import json

        return _write(session, json.dumps(document, indent=2, ensure_ascii=False))
    session.channel = session.channel or Channel()
    session.emit(data)
    return 0


# ------------------------------------------------------------------ documents


def _document(session: Session, said: Mapping[str, Any]) -> int:
    """What is told about the whole app: the manifest, the list of commands, or a page to read."""
    from tooli.views.portrait import portray

    portrait = portray(session.app)
    if "agent_bootstrap" in said:
        from tooli.detect import detect_execution_context
        from tooli.views.bootstrap import bootstrap

        text = bootstrap(portrait, detect_execution_context().caller_id)
        return _text(session, text.rstrip("\n"))
    from tooli.views.manifest import discovery, manifest

    return _raw(session, manifest(portrait) if "agent_manifest" in said else discovery(portrait))


# ------------------------------------------------------------------ no command


def no_command(session: Session) -> tuple[ToolError, Call]:
    """The error of a line that names no command, an unknown one, or only a wrong flag."""
    line = session.line
    call = call_without_tool(session)
    if line.problems:
        first = line.problems[0]
        argv = None
        if isinstance(first.meant, str):
            argv = _mended(session, first.message, first.meant)
        advice = Suggestion(
            "retry_with_modified_input",
            f"Use {first.meant}." if first.meant else "See --help-agent for what there is.",
            example=" ".join(argv) if argv else None,
            argv=argv,
        )
        details = {"errors": [{"code": p.code, "message": p.message} for p in line.problems]}
        return (
            InputError(
                first.message,
                code=first.code,
                field=first.field,
                suggestion=advice,
                details=details,
            ),
            call,
        )
    prog = session.caller().prog or (session.house.name,)
    if line.stray is not None:
        return no_such_command(line.branch, line.stray, (*prog, *line.path)), call
    return no_command_given(line.branch), call


def _mended(session: Session, message: str, meant: str) -> list[str] | None:
    """The line with the wrong flag replaced by the one that was meant."""
    for i, word in enumerate(session.argv):
        name, equals, value = word.partition("=")
        if name and f" {name}" in message:
            words = [*session.argv]
            words[i] = f"{meant}={value}" if equals else meant
            return [*(session.caller().prog or (session.house.name,)), *words]
    return None


def call_without_tool(session: Session) -> Call:
    """A call of the app itself, for the envelope of an answer that no tool gives."""
    from tooli.call.model import Call
    from tooli.contract.tool import Tool

    line, house = session.line, session.house
    tool = line.tool or Tool(
        house.name, (), house.name, (), _nothing, (), frozenset(), version=house.version
    )
    return Call(tool, {}, session.caller(), session.warnings, policy=house.policy)


def _nothing() -> None:
    """What is run when nothing is."""
