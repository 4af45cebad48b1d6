"""Seven layers of settings become one value each, with a word on where it came from."""

from __future__ import annotations

import os

from tooli.config.keys import KEYS, OTHERS, SECTIONS, Misfit, Scalar, strictest
from tooli.config.places import find
from tooli.config.reading import Block, Unreadable, read_file
from tooli.contract.record import Record

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from tooli.config.keys import Key
    from tooli.config.places import Place
    from tooli.errors import ToolError

LAYERS = ("flag", "environment", ".env", "project", "user", "system", "default")
"""Highest first."""


class Word(Record):
    """What one layer says about one setting, and where it says so."""

    value: Any
    layer: str
    origin: str


class Fault(Record):
    """Something wrong with a setting: where, and what."""

    origin: str
    message: str
    key: str | None = None

    def __str__(self) -> str:
        return f"{self.origin}: {self.message}"


def faulty(faults: Sequence[Fault]) -> ToolError:
    """All that is wrong with the settings, as one error."""
    from tooli.errors import InputError, Suggestion

    first = faults[0]
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return InputError(
        f"{first}{more}",
        code="E1011",
        field=first.key,
        suggestion=Suggestion("fix", f"Correct {first.origin}, or leave the setting out."),
        details={"errors": [{"where": one.origin, "message": one.message} for one in faults]},
        is_retryable=False,
    )


class Settings:
    """Every setting of a run: the word that holds, the words that were said, what is wrong."""

    def __init__(self) -> None:
        self.words: dict[str, list[Word]] = {}
        self.faults: list[Fault] = []
        self.files: list[Place] = []

    def get(self, name: str) -> Any:
        """The value that holds."""
        word = self.word(name)
        return word.value if word is not None else None

    def word(self, name: str) -> Word | None:
        """The word that holds: the highest layer's; of a security setting the strictest."""
        said = self.words.get(name)
        if not said:
            return None
        if not KEYS[name].secures:
            return said[0]
        value = strictest(KEYS[name], [word.value for word in said])
        if KEYS[name].merges in ("union", "each"):
            return Word(value, said[0].layer, ", ".join([word.origin for word in said]))
        return next(word for word in said if word.value == value)

    def said(self) -> dict[str, Word]:
        """The words that hold and are more than a default."""
        held = {name: word for name in self.words if (word := self.word(name)) is not None}
        return {name: word for name, word in held.items() if word.layer != "default"}

    def add(self, name: str, word: Word) -> None:
        """A further word, of the same layer or a lower one."""
        self.words.setdefault(name, []).append(word)


def settle(
    app: str,
    *,
    flags: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
    folder: str | None = None,
    callers: Callable[[], Sequence[str]] = tuple,
    defaults: Mapping[str, Word] | None = None,
) -> Settings:
    """The settings of a run of an app.

    `flags` is what the command line says, `callers` gives the caller's name and category where
    a file asks for them, and `defaults` is what holds where nobody says anything.
    """
    space = os.environ if env is None else env
    settings = Settings()
    for name, value in (flags or {}).items():
        if name in KEYS:
            settings.add(name, Word(value, "flag", KEYS[name].flag or name))
    _from_environment(settings, space)
    said = space.get("TOOLI_CONFIG", "").lower()
    if said not in ("", "on", "1", "true", "yes", "off", "0", "false", "no"):
        settings.faults.append(Fault("TOOLI_CONFIG", "it is on or off"))
    settings.files = find(space, folder)
    for place in settings.files:
        try:
            _from_file(settings, place, app, callers)
        except Unreadable as failure:
            settings.faults.append(Fault(_at(place.path, failure.line), str(failure)))
    _both_of_a_kind(settings)
    for name, key in KEYS.items():
        word = (defaults or {}).get(name) or Word(key.default, "default", "default")
        if word.value is not None:
            settings.add(name, word)
    return settings


def _at(path: str, line: int) -> str:
    return f"{path}:{line}" if line else path


def _both_of_a_kind(settings: Settings) -> None:
    paths = [place.path for place in settings.files if place.layer == "project"]
    if len(paths) > 1 and all([_says_something(path) for path in paths]):
        other = os.path.basename(paths[0])
        settings.faults.append(Fault(paths[1], f"{other} holds settings, too: keep one of them"))


def _says_something(path: str) -> bool:
    try:
        return bool(read_file(path).entries)
    except Unreadable:
        return True


# ------------------------------------------------------------------ variables


def _from_environment(settings: Settings, env: Mapping[str, str]) -> None:
    for name, key in KEYS.items():
        text = env.get(key.variable)
        if text:
            _take(settings, key, Scalar(text), "environment", key.variable)
            continue
        for variable, value in key.also:
            if env.get(variable):
                settings.add(name, Word(value, "environment", variable))
                break


def _take(settings: Settings, key: Key, scalar: Scalar, layer: str, origin: str) -> None:
    try:
        settings.add(key.name, Word(key.fit(scalar), layer, origin))
    except Misfit as failure:
        settings.faults.append(Fault(origin, str(failure), key.name))


# ------------------------------------------------------------------ files


def _from_file(
    settings: Settings, place: Place, app: str, callers: Callable[[], Sequence[str]]
) -> None:
    content = read_file(place.path)
    if place.layer == ".env":
        _from_dotenv(settings, place, content)
        return
    words: dict[str, list[tuple[Key, Scalar]]] = {}
    for section in _sections(settings, place, content, app, callers):
        for key, scalar in section:
            words.setdefault(key.name, []).append((key, scalar))
    for said in words.values():
        for key, scalar in said if said[0][0].secures else said[:1]:
            _take(settings, key, scalar, place.layer, _at(place.path, scalar.line))


def _sections(
    settings: Settings,
    place: Place,
    content: Block,
    app: str,
    callers: Callable[[], Sequence[str]],
) -> list[list[tuple[Key, Scalar]]]:
    """The sections of a file that hold for this run, the most particular first."""
    found: list[list[tuple[Key, Scalar]]] = []
    inner = {name: _inner(settings, place, content, name) for name in SECTIONS}
    names = list(callers()) if inner["callers"] else []
    for name, block in inner["callers"].items():
        said = _for_callers(settings, place, block)
        if name in names:
            found.insert(0 if name == names[0] else len(found), said)
    if app in inner["apps"]:
        found.append(_known(settings, place, inner["apps"][app]))
    found.append(_known(settings, place, content, SECTIONS))
    return found


def _for_callers(settings: Settings, place: Place, block: Block) -> list[tuple[Key, Scalar]]:
    """The settings of a section for callers, all checked: who calls next is nobody's guess.

    Who calls is what callers say of themselves, and that decides about no permission.
    """
    found: list[tuple[Key, Scalar]] = []
    for key, scalar in _known(settings, place, block):
        try:
            key.fit(scalar)
        except Misfit as failure:
            _fault(settings, place, scalar.line, str(failure), key.name)
            continue
        if key.secures:
            said = f"{key.name} holds whoever calls: say it outside of callers"
            _fault(settings, place, scalar.line, said, key.name)
        else:
            found.append((key, scalar))
    return found


def _inner(settings: Settings, place: Place, content: Block, name: str) -> dict[str, Block]:
    section = content.entries.get(name)
    if section is None:
        return {}
    if isinstance(section, Scalar):
        _fault(settings, place, section.line, f"{name} is a section of names, each with settings")
        return {}
    found: dict[str, Block] = {}
    for inner, block in section.entries.items():
        if isinstance(block, Block):
            found[inner] = block
        else:
            _fault(settings, place, block.line, f"{name}: {inner} is a section of settings")
    return found


def _known(
    settings: Settings, place: Place, block: Block, besides: tuple[str, ...] = ()
) -> list[tuple[Key, Scalar]]:
    """The settings of a section; what is none, and what is no value, is a fault."""
    found: list[tuple[Key, Scalar]] = []
    for name, value in block.entries.items():
        key = KEYS.get(name)
        if key is not None and isinstance(value, Scalar):
            found.append((key, value))
        elif key is not None:
            _fault(settings, place, value.line, f"{name} is {key.type}, not a section", name)
        elif name not in besides:
            from tooli.errors import nearest

            meant = nearest(name, (*KEYS, *besides))
            hint = f"; did you mean {meant!r}?" if meant else f": there are {', '.join(KEYS)}"
            _fault(settings, place, value.line, f"there is no setting {name[:60]!r}{hint}")
    return found


def _fault(
    settings: Settings, place: Place, line: int, message: str, key: str | None = None
) -> None:
    settings.faults.append(Fault(_at(place.path, line), message, key))


def _from_dotenv(settings: Settings, place: Place, content: Block) -> None:
    """A `.env` is shared with other programs: only what is close to a name of ours is a mistake."""
    by_variable = {key.variable: key for key in KEYS.values()}
    for name, scalar in content.entries.items():
        assert isinstance(scalar, Scalar)
        key = by_variable.get(name)
        if key is not None and scalar.text:
            _take(settings, key, scalar, place.layer, _at(place.path, scalar.line))
        elif key is None and name not in OTHERS:
            from tooli.errors import nearest

            meant = nearest(name[6:], [known.name for known in KEYS.values()])
            if meant is not None:
                message = f"{name} is no setting; did you mean {KEYS[meant].variable}?"
                _fault(settings, place, scalar.line, message)
