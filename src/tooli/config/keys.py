"""The settings that there are: name, kind, variable, flag. One table for files and documents."""

from __future__ import annotations

import os

from tooli.contract.record import Record

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

TRUTHS = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}


class Scalar(Record):
    """One value as a file or a variable has it: its text, and whether that is text on purpose.

    `off` in YAML is a word to us until a setting asks for a truth: so `security_policy: off`
    is a policy, and `quiet: off` is false.
    """

    text: str
    line: int = 0
    kind: str = "any"  # "text": quoted, so nothing but text; "number", "truth": TOML's; "any"


class Misfit(ValueError):  # noqa: N818
    """A value is not of the kind that its setting needs; the message says which."""


class Key(Record):
    """One setting."""

    name: str
    kind: str  # "choice" | "count" | "seconds" | "truth" | "level" | "text" | "paths"
    about: str
    choices: tuple[str, ...] = ()  # of a security setting: from the loosest to the strictest
    flag: str | None = None
    default: Any = None
    secures: bool = False
    merges: str = "strictest"  # of a security setting: or "union", "each", "lowest"
    also: tuple[tuple[str, str], ...] = ()  # variables of everybody's, and what they say

    @property
    def variable(self) -> str:
        """The environment variable."""
        return f"TOOLI_{self.name.upper()}"

    @property
    def type(self) -> str:
        """What it takes, in a few words."""
        return "|".join(self.choices) if self.choices else _KINDS[self.kind]

    def fit(self, scalar: Scalar) -> Any:
        """The value; raises Misfit."""
        text = scalar.text.strip()
        if self.kind == "choice":
            if scalar.kind in ("any", "text") and text in self.choices:
                return text
        elif self.kind in ("text", "paths"):
            value = text if self.kind == "text" else tuple(filter(None, text.split(os.pathsep)))
            if value and text.isprintable():
                return value
        elif scalar.kind != "text":
            value = _READERS[self.kind](text, scalar.kind)
            if value is not None:
                return value
        raise Misfit(f"{self.name} is {self.type}, not {shown(scalar)}")


def shown(scalar: Scalar) -> str:
    """A wrong value as a message quotes it: short, on one line."""
    text = "".join([c for c in scalar.text if c.isprintable()])
    text = text if len(text) <= 40 else f"{text[:40]}…"
    return repr(text) if scalar.kind == "text" or not text else text


_KINDS = {
    "count": "a whole number, 0 for no limit",
    "seconds": "a number of seconds above 0",
    "truth": "true or false",
    "level": "a whole number from 0",
    "text": "a text",
    "paths": f"paths, with {os.pathsep} between them",
}


def _count(text: str, kind: str) -> int | None:
    return None if text.lower() in ("true", "false") else _level(text, kind)


def _level(text: str, kind: str) -> int | None:
    if kind == "truth" or (kind == "any" and text.lower() in ("true", "false")):
        return int(text.lower() == "true")
    plain = text.isascii() and text.isdigit() and len(text) <= 18
    return int(text) if plain and (text == "0" or text[0] != "0") else None  # 010 is an octal 8


def _seconds(text: str, kind: str) -> float | None:
    from tooli.contract.limits import read_seconds

    return read_seconds(text) if kind != "truth" else None


def _truth(text: str, kind: str) -> bool | None:
    return TRUTHS.get(text.lower()) if kind != "number" else None


_READERS = {"count": _count, "seconds": _seconds, "truth": _truth, "level": _level}

POLICIES = ("off", "standard", "strict")


def _owners(name: str, about: str, kind: str = "text", merges: str = "lowest") -> Key:
    """A security setting that is no degree: where it is said twice, the machine's owner wins."""
    return Key(name, kind, about, secures=True, merges=merges)


KEYS: dict[str, Key] = {
    key.name: key
    for key in (
        Key(
            "output",
            "choice",
            "how to answer",
            ("auto", "json", "jsonl", "text", "plain", "toon", "csv", "md"),
            flag="--output",
            default="auto",
        ),
        Key(
            "color",
            "choice",
            "colour in text for people",
            ("auto", "always", "never"),
            flag="--no-color",
            default="auto",
            also=(("NO_COLOR", "never"), ("FORCE_COLOR", "always")),
        ),
        Key(
            "response_format",
            "choice",
            "detailed: with the schema of the result",
            ("concise", "detailed"),
            flag="--response-format",
        ),
        Key("quiet", "truth", "no warnings, no progress", flag="--quiet", default=False),
        Key("verbose", "level", "how much is told on stderr", flag="--verbose", default=0),
        Key("no_input", "truth", "never ask anybody", flag="--no-input", default=False),
        Key("timeout", "seconds", "how long a call may take", flag="--timeout"),
        Key("max_items", "count", "items of a result", flag="--max-items"),
        Key("max_bytes", "count", "bytes of a result", flag="--max-bytes"),
        Key("max_tokens", "count", "tokens of a result", flag="--max-tokens"),
        Key(
            "security_policy",
            "choice",
            "who may run what; can only be tightened",
            POLICIES,
            default="standard",
            secures=True,
        ),
        Key("human_in_the_loop", "truth", "a human confirms what may destroy", secures=True),
        Key(
            "isolation",
            "choice",
            "commands in a process of their own, held by the kernel",
            ("off", "wanted", "required"),
            secures=True,
        ),
        _owners("allow_paths", "files only below these", "paths", "each"),
        _owners("deny_paths", "no files below these", "paths", "union"),
        _owners("work_dir", "the folder that commands run in"),
        _owners("token_key", "the key that callers' tokens are verified with: a file"),
        _owners("token_issuer", "who must have made a token"),
        _owners("token_audience", "whom a token must be for"),
        _owners("tokens", "known tokens and their scopes: a file"),
        _owners("rate_limit", "calls of one caller, as 60/minute"),
        _owners("audit_log", "where to keep the record of what was dared: a file"),
        _owners("store", "where idempotency keys are kept: a postgresql:// address"),
    )
}
"""Every setting by its name."""

SECTIONS = ("apps", "callers")
"""`apps: {NAME: …}` holds for one app, `callers: {NAME: …}` for one caller or kind of caller."""

OTHERS = (
    *("TOOLI_CALLER", "TOOLI_CALLER_VERSION", "TOOLI_SESSION_ID", "TOOLI_CONFIG"),
    *("TOOLI_STATE_DIR", "TOOLI_FRAMEWORK_HELP", "TOOLI_TOKEN", "TOOLI_SEAL_KEY"),
    *("TOOLI_TOKEN_FILE", "TOOLI_RECORD_CAPABILITIES"),
)
"""Variables of ours that are no settings: a file cannot say them."""


def strictest(key: Key, values: list[Any]) -> Any:
    """What holds of several words on a security setting, the highest layer's first."""
    if key.merges == "lowest":  # the machine's owner has the last word, not the caller
        return values[-1]
    if key.merges == "union":  # all that anybody forbids
        return tuple(dict.fromkeys([item for value in values for item in value]))
    if key.merges == "each":  # allowed is what all of them allow
        return tuple(values)
    if key.kind == "truth":
        return any(values)
    return max(values, key=key.choices.index)
