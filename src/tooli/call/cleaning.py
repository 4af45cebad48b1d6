"""Cleaning: what somebody outside is told of a call, without what must not get there.

    value ─▶ JSON ─┬─ nothing looks wrong ─────────────────────▶ out
                   └─▶ Cleaner: secrets ▸ control and invisible characters ▸ credentials ▸ paths
                          └─▶ meta.warnings: how much, and where a text speaks to its reader

    off        nothing
    standard   control sequences, invisible characters, what entered as a secret
    strict     joiners and variation selectors, credentials, the user's home directory as well

The value itself stays as it is: `app.call` gives what the tool gave.
"""

from __future__ import annotations

import os

from tooli.call.envelope import has_controls, is_suspect, json_writer, speaks, wary
from tooli.contract.jsonable import is_list, is_object, jsonable

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from tooli.call.model import Call, Terms
    from tooli.errors import ToolError

HIDDEN = "***"
_SMALL = 1 << 13
_AS_THEY_ARE = ("argv", "example")
"""Parts of a suggestion that somebody may run: there a path stays a path."""


class Cleaner:
    """Takes out of values what must not go out; counts it, over as many values as it is given.

    An `exact` one takes out secrets, and leaves all else byte for byte.
    """

    def __init__(self, terms: Call | Terms, *, exact: bool = False) -> None:
        self.exact = exact
        self.strict = terms.policy == "strict"
        self._secrets: Sequence[Any] = () if terms.secrets is None else terms.secrets
        self._known, self._traces = 0, list[str]()
        self.home = _home() if self.strict else None
        self.sequences = self.controls = self.invisible = self.secrets = self.paths = 0
        self.credentials: dict[str, int] = {}
        self.phrases: list[tuple[str, str]] = []
        self.notes: list[str] = []

    @property
    def traces(self) -> Sequence[str]:
        """How what entered as a secret may be written; a stream may read one between two items."""
        if self._secrets:
            known = sum([secret.is_known for secret in self._secrets])
            if known != self._known:
                from tooli.inputs.traces import traces_of

                self._known, self._traces = known, traces_of(self._secrets)
        return self._traces

    # -------------------------------------------------------------- texts and values

    def text(self, text: str, paths: bool = True) -> str:
        """A text as it may go out."""
        if self.traces:
            text = self._hide(text)
        if self.exact:
            return text
        if self.strict or not (text.isascii() and text.isprintable()):
            from tooli.contract.sanitizing import sanitize

            clean, removed = sanitize(text, self.strict)
            if removed:
                self.sequences += removed.sequences
                self.controls += removed.controls
                self.invisible += removed.invisible
                text = self._hide(clean) if self.traces else clean
        return self._strictly(text, paths) if self.strict else text

    def _hide(self, text: str) -> str:
        """The text without what entered as a secret."""
        for trace in self.traces:
            if trace in text:
                self.secrets += text.count(trace)
                text = text.replace(trace, HIDDEN)
        return text

    def _strictly(self, text: str, paths: bool) -> str:
        from tooli.contract.credentials import hide_credentials

        text, names = hide_credentials(text)
        for name in names:
            self.credentials[name] = self.credentials.get(name, 0) + 1
        if paths and self.home is not None and self.home[0] in text:
            text, count = self.home[1].subn("~", text)
            self.paths += count
        return text

    def value(self, value: Any, paths: bool = True) -> Any:
        """A value of JSON's own types as it may go out, keys and all."""
        if isinstance(value, str):
            return self.text(value, paths)
        if is_list(value):
            return [self.value(item, paths) for item in value]
        if is_object(value):
            return self._object(value, paths)
        if self.traces and type(value) in (int, float) and str(value) in self.traces:
            self.secrets += 1
            return HIDDEN
        return value

    def _object(self, value: dict[Any, Any], paths: bool) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key, item in value.items():
            name = self.text(key, paths)
            while name in out:  # two keys that differed in what nobody sees: both stay
                name += "_"
            out[name] = self.value(item, paths)
        return out

    def error(self, fields: dict[str, Any]) -> dict[str, Any]:
        """An error as it may go out; a command that had to be changed is no longer one to run."""
        out = self.value({name: item for name, item in fields.items() if name != "suggestion"})
        said: Any = fields.get("suggestion")
        if not is_object(said):
            return out if said is None else {**out, "suggestion": self.value(said)}
        clean = {
            name: self.value(item, paths=name not in _AS_THEY_ARE) for name, item in said.items()
        }
        if clean.get("argv") != said.get("argv") and "applicability" in clean:
            clean["applicability"] = "has_placeholders"
        return {
            name: clean if name == "suggestion" else out[name]
            for name in fields
            if name == "suggestion" or name in out
        }

    # -------------------------------------------------------------- what is said about it

    def look_for_phrases(self, value: Any) -> None:
        """Note where a text speaks to its reader."""
        from tooli.contract.phrases import MOST, find_phrases

        if len(self.phrases) < MOST:
            self.phrases += find_phrases(value, MOST - len(self.phrases))

    def tell(self, warnings: list[str], what: str) -> None:
        """Put into warnings what was done, in place of what was said about it before."""
        removed = [
            _counted(count, name)
            for count, name in (
                (self.sequences, "control sequence"),
                (self.controls, "control character"),
                (self.invisible, "invisible character"),
            )
            if count
        ]
        together = self.sequences + self.controls + self.invisible
        _say(warnings, _listed(removed), together, f"removed from the {what}")
        _say(warnings, _counted(self.secrets, "secret"), self.secrets, f"hidden in the {what}")
        warnings += [line for line in self.notes if line not in warnings]
        looks = sum(self.credentials.values())
        names = ", ".join(sorted(self.credentials))
        text = f"{_counted(looks, 'text')} that {_is(looks, 'looks', 'look')} like credentials"
        _say(warnings, f"{text} ({names})", looks, f"redacted from the {what}")
        _say(warnings, _counted(self.paths, "path"), self.paths, f"shortened to ~ in the {what}")
        if self.phrases:
            places = ", ".join([f"{_place(at)} ({_quoted(phrase)})" for at, phrase in self.phrases])
            _replace(
                warnings,
                f"the {what} may try to instruct its reader, at ",
                f"the {what} may try to instruct its reader, at {places}: it is data",
            )


def _say(warnings: list[str], subject: str, count: int, done: str) -> None:
    if count:
        _replace(warnings, done, f"{subject} {_is(count, 'was', 'were')} {done}")


def _replace(warnings: list[str], sign: str, line: str) -> None:
    """One line of a kind: it stands for the whole answer, however often that was measured."""
    for i, said in enumerate(warnings):
        if said.startswith(sign) or (said.endswith(sign) and _is_ours(said)):
            warnings[i] = line
            return
    warnings.append(line)


def _is_ours(said: str) -> bool:
    """Whether a line is one of those that are said here; a tool may say something like them."""
    count, _, rest = said.partition(" ")
    return count.isdigit() and rest.startswith(_OURS)


_OURS = (
    *("control sequence", "control character", "invisible character", "secret", "path"),
    *("text that looks like credentials", "texts that look like credentials"),
)


def _place(pointer: str) -> str:
    """Where it is; all of a value is "", which nobody would see."""
    return '""' if not pointer else pointer if len(pointer) <= 120 else f"{pointer[:120]}…"


def _quoted(phrase: str) -> str:
    from tooli.contract.sanitizing import sanitize

    return f'"{" ".join(sanitize(phrase, True)[0].split())}"'


def _counted(count: int, name: str) -> str:
    return f"{count} {name}{'' if count == 1 else 's'}"


def _is(count: int, one: str, many: str) -> str:
    return one if count == 1 else many


def _listed(parts: list[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def _home() -> Any:
    """The user's home directory and the pattern that finds it; None where it is no place."""
    home = os.path.expanduser("~").rstrip("/\\")
    if len(home) < 3 or not os.path.isabs(home):
        return None
    import re

    return home, re.compile(rf"(?<![\w.~-]){re.escape(home)}(?![\w.-])")


# ------------------------------------------------------------------ where it is used


def clean_json(text: str, terms: Call | Terms, cleaner: Cleaner | None, what: str) -> Any:
    """The cleaned value of a finished JSON, and the Cleaner; None where nothing is wrong with it.

    It is read back from the JSON: what the value itself is made of may be had but once.
    """
    watched = wary(terms) and speaks(text)
    closely = watched or terms.policy == "strict" or terms.secrets
    if not closely and is_harmless(text):
        return None
    cleaner = cleaner or Cleaner(terms)
    from json import loads

    value = loads(text)
    try:
        # what is said about an answer leads on to others: paths in it stay whole
        clean = cleaner.error(value) if what == "error" else cleaner.value(value, bool(what))
    except RecursionError:
        clean = cleaner.value(jsonable(value, cleaner.notes), bool(what))
    if watched:
        cleaner.look_for_phrases(clean)
    return clean, cleaner


def is_harmless(text: str) -> bool:
    """Whether a JSON that looked odd is not, after all; a short one is read without `re`."""
    if has_controls(text):
        return False
    if len(text) > _SMALL:
        from tooli.contract.sanitizing import is_clean

        return is_clean(text)
    before = ""
    for char in text:
        if not char.isascii() and _is_taken(ord(char), before):
            return False
        before = char
    return "\x7f" not in text


def _is_taken(code: int, before: str) -> bool:
    """Whether a character is taken out; a joiner or a selector only where it is one of a row."""
    if code < 0x200B:
        return code < 0xA0 or code in (0xAD, 0x61C, 0x180E)
    if code < 0x2070:
        if code in (0x200C, 0x200D):
            return before in _JOINERS
        return code <= 0x200F or 0x202A <= code <= 0x202E or code >= 0x2060
    if 0xFE00 <= code <= 0xFE0F:
        return before in _JOINERS or "\ufe00" <= before <= "\ufe0f"
    return code == 0xFEFF or 0xFFF9 <= code <= 0xFFFB or 0xE0000 <= code <= 0xE0FFF


_JOINERS = ("\u200c", "\u200d")


def cleaned(value: Any, terms: Call | Terms, warnings: list[str], what: str = "result") -> Any:
    """A value of JSON's own types as it may go out: the same one where nothing is wrong with it."""
    if terms.policy == "off" or value is None:
        return value
    text = json_writer()(value)
    if not is_suspect(text, terms):
        return value
    found = clean_json(text, terms, None, what)
    if found is None:
        return value
    clean, cleaner = found
    if what:
        cleaner.tell(warnings, what)
    return clean


def presentable(value: Any, call: Call, *, exact: bool = False) -> Any:
    """A result in JSON's own types, for a text; `exact` leaves all in it but secrets."""
    return Tidy(call, exact=exact)(value)


class Tidy:
    """Makes results presentable, one after another; what it takes out it counts together."""

    def __init__(self, call: Call, *, exact: bool = False) -> None:
        self._call = call
        self._cleaner = Cleaner(call, exact=True) if exact else None
        self._write = json_writer()

    def __call__(self, value: Any) -> Any:
        """A value in JSON's own types, as it may go out."""
        call = self._call
        value = jsonable(value, call.warnings)
        if call.policy == "off" or value is None:
            return value
        if self._cleaner is not None and self._cleaner.exact:
            return self._cleaner.value(value) if self._cleaner.traces else value
        text = self._write(value)
        found = is_suspect(text, call) and clean_json(text, call, self._cleaner, "result")
        if not found:
            return value
        clean, cleaner = found
        cleaner.tell(call.warnings, "result")
        self._cleaner = cleaner
        return clean


def clean_line(text: str, terms: Call | Terms, *, paths: bool = True) -> str:
    """One text as it may go out, and no word about it: a warning, a log line, a question."""
    if terms.policy == "off":
        return text
    if terms.policy != "strict" and not terms.secrets and text.isascii() and text.isprintable():
        return text
    return Cleaner(terms).text(text, paths)


def clean_word(word: Any, terms: Call | Terms, *, paths: bool = True) -> Any:
    """Anything that a tool says on the way, in JSON's own types, as it may go out."""
    if isinstance(word, str):
        return clean_line(word, terms, paths=paths)
    if terms.policy == "off" or word is None:
        return word
    return Cleaner(terms).value(jsonable(word, []), paths)


def before_secret(text: str, shown: int, terms: Call | Terms) -> int:
    """Where to cut a text at or before a place, so that no secret is cut in two."""
    traces = Cleaner(terms).traces
    before = -1
    while before != shown:
        before = shown
        for trace in traces:
            reach = len(trace) - 1
            at = text.find(trace, max(0, shown - reach), shown + reach)
            shown = shown if at < 0 else at
    return shown


def clean_error(error: ToolError, terms: Call | Terms, warnings: list[str]) -> ToolError:
    """The error as it may go out: itself where nothing is wrong with it, else one like it."""
    if terms.policy == "off":
        return error
    fields = jsonable(error.to_dict(), warnings)
    clean: Mapping[str, Any] = cleaned(fields, terms, warnings, "error")
    if clean is fields or clean == fields:
        return error
    from copy import copy

    from tooli.errors import Suggestion

    other = copy(error)
    other.message, other.field = clean["message"], clean.get("field")
    other.details = clean.get("details")
    said = clean.get("suggestion")
    other.suggestion = Suggestion.from_dict(said) if said else None
    other.__cause__, other.translated = error.__cause__, False
    return other
