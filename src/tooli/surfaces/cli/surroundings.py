"""A run among its surroundings: who seems to be calling, and what is set outside the line."""

from __future__ import annotations

import os

from tooli.adapt import BEHAVIOUR

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.adapt import Behaviour
    from tooli.config.layers import Word
    from tooli.detect import ExecutionContext
    from tooli.surfaces.cli.main import Session


def manner_here() -> Behaviour:
    """What whoever seems to be calling gets."""
    from tooli.detect import detect_execution_context

    return BEHAVIOUR[detect_execution_context().category]


def look_around(session: Session, own: Any, furnished: bool) -> None:
    """Take what is set into account; a command that shows it shows what is wrong, too.

    `own` is the house of the app that was started: a built-in command has one of its own.
    """
    tool = session.line.tool
    inspects = tool is not None and getattr(tool.fn, "tooli_inspects", False)
    if furnished or inspects or own.policy != own.declared:
        furnish(session, own)
        if inspects:
            session.faults = ()


# ------------------------------------------------------------------ settings


def furnish(session: Session, own: Any) -> None:
    """Give the line what is set elsewhere, where it says nothing itself; tighten the policy."""
    from tooli.config.keys import KEYS
    from tooli.config.layers import Word, settle
    from tooli.config.policy import rules_of

    line = session.line
    flags = dict(line.options)
    if flags.pop("no_color", None):
        flags["color"] = "never"
    settings = settle(
        own.name,
        flags=flags,
        callers=_names,
        defaults={
            "output": Word(own.default_output, "default", _by_author(own.default_output, "auto")),
            "security_policy": Word(own.declared, "default", _by_author(own.declared, "standard")),
            **(_suited() if session.marked else {}),
        },
    )
    own.settled = settings
    if own.policy != settings.get("security_policy"):
        own.policy = settings.get("security_policy")
        own.prepared.clear()
    own.rules = rules_of(settings)
    for name, word in settings.said().items():
        elsewhere = word.layer != "flag" and word.origin != "TOOLI_OUTPUT"
        if elsewhere and not KEYS[name].secures and name not in line.options:
            line.options[name] = word.value
            line.settled.add(name)
    session.faults = [one for one in settings.faults if one.origin != "TOOLI_OUTPUT"]
    if session.standalone and "work_dir" in own.rules:
        _go_to(session, own.rules["work_dir"], settings.said()["work_dir"])


def _go_to(session: Session, folder: str, word: Word) -> None:
    """Run in the folder that is set: the process is this command's alone, or a server's."""
    from tooli.config.places import move_to
    from tooli.config.policy import no_folder

    try:
        move_to(folder)
    except OSError as failure:
        session.faults = [*session.faults, no_folder(word, failure.strerror)]


def _names() -> list[str]:
    """What sections for callers go by: the caller's name, then its kind."""
    from tooli.detect import detect_execution_context

    context = detect_execution_context()
    return [name for name in (context.caller_id, str(context.category)) if name]


def _by_author(said: str, usual: str) -> str:
    return "default" if said == usual else "the app's own"


def _suited() -> dict[str, Any]:
    """What the table gives the caller beside the app's own defaults."""
    from tooli.config.layers import Word
    from tooli.detect import detect_execution_context

    category = detect_execution_context().category
    manner, origin = BEHAVIOUR[category], f"default for {category}"
    suited = {"timeout": manner.timeout, "color": manner.color}
    usual = {"timeout": None, "color": "auto"}
    return {
        name: Word(value, "default", origin)
        for name, value in suited.items()
        if value != usual[name]
    }


# ------------------------------------------------------------------ suiting the caller


def suit(session: Session) -> int | None:
    """Before anything runs: choose colours, give a hint, refuse settings that are wrong.

    The exit code, where they are.
    """
    said = session.line.options
    if session.faults:
        from tooli.surfaces.cli.argv import QUESTIONS

        if QUESTIONS.isdisjoint(said):
            from tooli.config.layers import faulty
            from tooli.surfaces.cli.answers import fail

            session.line.problems.clear()
            return fail(session, faulty(session.faults))
        for fault in session.faults:
            _tell(f"Warning: {fault}")
    color = said.get("color", session.manner.color if session.manner is not None else "auto")
    if session.standalone and said.get("no_color"):
        os.environ["NO_COLOR"] = "1"
    elif session.standalone:
        if color == "never" and ("color" in said or not os.environ.get("FORCE_COLOR")):
            os.environ["NO_COLOR"] = "1"
        elif color == "always":
            os.environ.pop("NO_COLOR", None)
            os.environ["FORCE_COLOR"] = "1"
    if said.get("verbose") and not said.get("quiet"):
        from tooli.detect import detect_execution_context

        _hint(detect_execution_context())
    return None


def _hint(context: ExecutionContext) -> None:
    """A word to an agent that can only be guessed at."""
    from tooli.detect import POSSIBLE, SURE

    for one in context.candidates:
        if one.category == "ai_agent" and POSSIBLE <= one.confidence < SURE:
            seen = ", ".join(one.signals)
            _tell(
                f"tooli: this may be an agent (confidence {one.confidence:.2f}: {seen}). "
                "Set TOOLI_CALLER to its name to be recognised for sure."
            )
            return


def _tell(text: str) -> None:
    """A line on stderr; a folder's name or a variable in it is nothing for a terminal to obey."""
    from tooli.call.cleaning import clean_line
    from tooli.call.model import Terms
    from tooli.surfaces.cli.channel import complain

    complain(clean_line(text, Terms()))
