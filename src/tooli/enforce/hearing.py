"""Hearing: what a function says on its way, in another process, and what is done about it.

    warning, meta      for the envelope
    text               for what stands in the place of stdout or stderr
    progress, log, ask, let go     for the client

Where that process is not trusted, each of them is looked at first: its kind, its shape, how much
it is. What cannot be honest ends the call.
"""

from __future__ import annotations

import sys

from tooli.enforce.frames import LARGEST, dumps, garbled, unpack

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tooli.call.model import Call, Runner
    from tooli.call.peer import Question

ANSWERS = ("value", "stream", "item", "done", "error")
"""What is kept until somebody asks for it."""
MOST = 1000
"""Warnings, and acts beyond its word, that are taken from a process that is not trusted."""
LONGEST = 10_000
"""Characters of each."""


class Hearing:
    """What a process says that is trusted."""

    def __init__(self, call: Call, say: Callable[[bytes], None]) -> None:
        self.call = call
        self.say = say  # to the process, in answer to a question

    def hear(self, kind: Any, what: Any) -> bool:
        """Do what there is to do; False for what somebody waits for."""
        if kind in ANSWERS:
            return False
        _HEARD[kind](self, self.open(kind, what))
        return True

    def open(self, kind: str, what: Any) -> Any:
        """What was said, with the values in it unpacked."""
        if kind in ("meta", "ask"):
            return unpack(what)
        return (what[0], unpack(what[1])) if kind == "log" else what

    def warn(self, text: str) -> None:
        """A warning of the function's."""
        self.call.warnings.append(text)

    def note(self, said: dict[str, Any]) -> None:
        """Something about the call, for `meta`."""
        if self.call.meta is not None:
            self.call.meta.update(said)

    def write(self, said: tuple[str, str]) -> None:
        """A text for an object in the place of stdout or stderr."""
        if said[0] in ("stdout", "stderr"):
            getattr(sys, said[0]).write(said[1])

    def progress(self, said: tuple[float, float | None, str | None]) -> None:
        """How far the call has come."""
        if self.call.peer is not None:
            self.call.peer.progress(*said)

    def log(self, said: tuple[str, Any]) -> None:
        """What is going on."""
        if self.call.peer is not None:
            self.call.peer.log(*said)

    def let_go(self, _: None) -> None:
        """The client may leave and come back."""
        if self.call.peer is not None:
            self.call.peer.let_go()

    def ask(self, questions: dict[str, Question]) -> None:
        """A question for the client; a Pause ends the call, and with it the process."""
        if self.call.peer is None:
            return
        try:
            said: Any = self.call.peer.ask(questions)
        except Exception as exc:
            said = exc
        data = dumps(said)
        self.say(len(data).to_bytes(8, "big") + data)


_HEARD: dict[str, Callable[[Any, Any], None]] = {
    "warning": Hearing.warn,
    "meta": Hearing.note,
    "text": Hearing.write,
    "progress": Hearing.progress,
    "log": Hearing.log,
    "ask": Hearing.ask,
    "let go": Hearing.let_go,
}
"""What a function says on its way, and what is done about it."""


# ------------------------------------------------------------------ from behind walls


class Wary(Hearing):
    """What a process says that runs what nobody trusts."""

    def __init__(self, call: Call, say: Callable[[bytes], None]) -> None:
        super().__init__(call, say)
        self._warnings = 0
        self._printed = 0
        self._held = False  # what holds it is known: it is said before the function runs

    def hear(self, kind: Any, what: Any) -> bool:
        """The same, for what is known, in shape and not too much."""
        if type(kind) is not str or not (kind in _HEARD or kind in ANSWERS):
            raise garbled("there is no such message")
        if kind == "warning":
            self._warnings += 1
            if self._warnings > MOST:
                return True
        if kind == "text" and self._printed > LARGEST:
            return True
        return super().hear(kind, what)

    def open(self, kind: str, what: Any) -> Any:
        """What was said, once it is known to be that."""
        try:
            return _OPENED[kind](self, what)
        except (TypeError, ValueError, KeyError, AttributeError):
            raise garbled(f"a {kind} that is none") from None

    def warning(self, text: Any) -> str:
        """A text, whatever it was."""
        if self._warnings == MOST:
            return f"the command has more than {MOST} warnings: the rest is left out"
        return str(text)[:LONGEST]

    def about(self, packed: Any) -> dict[str, Any]:
        """What holds the function, and what it did beyond its word; nothing else is its to say."""
        said: Any = unpack(packed, wary=True)
        known: dict[str, Any] = {}
        if "enforcement" in said and not self._held:
            self._held = True
            known["enforcement"] = _text(said["enforcement"])
        watched: Any = sys.modules.get("tooli.enforce.watched")
        if watched is not None and watched.SEEN in said and _is_watched(self.call.runner, watched):
            known[watched.SEEN] = [_act(one) for one in said[watched.SEEN][:MOST]]
        return known

    def text(self, said: Any) -> tuple[str, str]:
        """Where to, and what; not for ever."""
        name, text = said
        self._printed += len(text)
        if self._printed > LARGEST:
            self.call.warnings.append("the command printed too much: the rest is left out")
            return "nowhere", ""
        return name, str.__str__(text)

    def done(self, said: Any) -> tuple[Any, Any, str | None]:
        """Numbers, and a text."""
        done, total, message = said
        if not (type(done) in (int, float) and type(total) in (int, float, type(None))):
            raise TypeError
        return done, total, None if message is None else _text(message)

    def told(self, said: Any) -> tuple[str, Any]:
        """A level, and data."""
        level, packed = said
        return _text(level), unpack(packed, wary=True)

    def questions(self, packed: Any) -> dict[str, Question]:
        """Questions by their names."""
        from tooli.call.peer import Question

        found: Any = unpack(packed, wary=True)
        for name, one in found.items():
            if not isinstance(one, Question):
                raise TypeError
            _text(name)
        return found

    def nothing(self, _: Any) -> None:
        """Nothing is said with it."""


_OPENED: dict[str, Callable[[Any, Any], Any]] = {
    "warning": Wary.warning,
    "meta": Wary.about,
    "text": Wary.text,
    "progress": Wary.done,
    "log": Wary.told,
    "ask": Wary.questions,
    "let go": Wary.nothing,
}


def _is_watched(runner: Runner | None, watched: Any) -> bool:
    """Whether anybody looks at what the function does: nobody else can tell of that."""
    while runner is not None and not isinstance(runner, watched.Watched):
        runner = runner.inner
    return runner is not None


def _text(said: Any) -> str:
    return str.__str__(said)[:LONGEST]


def _act(said: Any) -> list[str]:
    """Something that was done beyond a command's word: the capability, of what, the code."""
    capability, target, code = said
    if code not in ("E2003", "E2005"):
        raise TypeError
    return [_text(capability), _text(target), code]


def checked_error(packed: Any) -> tuple[str, Any, str | None]:
    """An error from there, as it would be packed by somebody honest; raises one that is."""
    try:
        return _checked(*packed)
    except (TypeError, ValueError, KeyError, AttributeError):
        raise garbled("an error that is none") from None


def _checked(name: Any, said: Any, trace: Any) -> tuple[str, Any, str | None]:
    if name == "exit":
        if type(said) not in (int, str):
            raise TypeError
        return "exit", said, None
    texts = (name, said["code"], said["category"], said["message"], trace or "")
    if not all([type(text) is str for text in texts]):
        raise TypeError
    details: Any = said.get("details")
    field: Any = said.get("field")
    if type(details) not in (dict, type(None)) or type(field) not in (str, type(None)):
        raise TypeError
    code: Any = said.get("exit_code")
    fields: dict[str, Any] = {
        **{key: said[key] for key in ("code", "category", "message")},
        "field": field,
        "suggestion": _suggestion(said.get("suggestion")),
        "is_retryable": bool(said.get("is_retryable")),
        "details": details,
        "exit_code": code if type(code) is int and 0 < code < 256 else None,
    }
    return (name if name.isidentifier() else "Exception"), fields, trace


def _suggestion(said: Any) -> dict[str, Any] | None:
    if not said:
        return None
    from tooli.errors import ACTIONS, APPLICABILITY

    argv, texts = said.get("argv"), [said.get(name) for name in ("fix", "example")]
    if said["action"] not in ACTIONS or said.get("applicability") not in APPLICABILITY:
        raise TypeError
    if type(texts[0]) is not str or type(texts[1]) not in (str, type(None)):
        raise TypeError
    if argv is not None and not all([type(word) is str for word in argv]):
        raise TypeError
    return {
        name: said[name]
        for name in ("action", "fix", "example", "argv", "applicability")
        if name in said
    }
