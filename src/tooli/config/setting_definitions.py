"""The settings that there are: name, kind, variable, flag. One table for files and documents."""

from __future__ import annotations

import os

from tooli.core.output_modes import OUTPUT_MODES
from tooli.core.record import Record

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

BOOLEAN_WORDS = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}


class RawSetting(Record):
    """One value as a file or a variable has it: its text, and whether that is text on purpose.

    `off` in YAML is a word to us until a setting asks for a truth: so `security_policy: off`
    is a policy, and `quiet: off` is false.
    """

    text: str
    line: int = 0
    kind: str = "any"  # "text": quoted, so nothing but text; "number", "truth": TOML's; "any"


class InvalidSetting(ValueError):  # noqa: N818
    """A value is not of the kind that its setting needs; the message says which."""


class SettingDefinition(Record):
    """One setting."""

    name: str
    kind: str  # "choice" | "count" | "seconds" | "truth" | "level" | "text" | "paths"
    description: str
    choices: tuple[str, ...] = ()  # of a security setting: from the loosest to the strictest
    default: Any = None
    is_security: bool = False
    merge_rule: str = "strictest"  # of a security setting: or "union", "each", "lowest"
    shared_variables: tuple[
        tuple[str, str], ...
    ] = ()  # variables of everybody's, and what they say

    @property
    def variable(self) -> str:
        """The environment variable."""
        return f"TOOLI_{self.name.upper()}"

    @property
    def flag(self) -> str | None:
        """The command line flag with the same effect."""
        from tooli.core.options import setting_flag  # only messages and documents need it

        return setting_flag(self.name)

    @property
    def type(self) -> str:
        """What it takes, in a few words."""
        return "|".join(self.choices) if self.choices else _KIND_DESCRIPTIONS[self.kind]

    def convert(self, scalar: RawSetting) -> Any:
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
            value = _PARSERS[self.kind](text, scalar.kind)
            if value is not None:
                return value
        raise InvalidSetting(f"{self.name} is {self.type}, not {quote_value(scalar)}")


def quote_value(scalar: RawSetting) -> str:
    """A wrong value as a message quotes it: short, on one line."""
    text = "".join([c for c in scalar.text if c.isprintable()])
    text = text if len(text) <= 40 else f"{text[:40]}…"
    return repr(text) if scalar.kind == "text" or not text else text


_KIND_DESCRIPTIONS = {
    "count": "a whole number, 0 for no limit",
    "seconds": "a number of seconds above 0",
    "truth": "true or false",
    "level": "a whole number from 0",
    "text": "a text",
    "paths": f"paths, with {os.pathsep} between them",
}


def _parse_count(text: str, kind: str) -> int | None:
    return None if text.lower() in ("true", "false") else _parse_level(text, kind)


def _parse_level(text: str, kind: str) -> int | None:
    if kind == "truth" or (kind == "any" and text.lower() in ("true", "false")):
        return int(text.lower() == "true")
    is_digits = text.isascii() and text.isdigit() and len(text) <= 18
    return int(text) if is_digits and (text == "0" or text[0] != "0") else None  # 010 is an octal 8


def _parse_seconds(text: str, kind: str) -> float | None:
    from tooli.core.limits import parse_timeout

    return parse_timeout(text) if kind != "truth" else None


def _parse_boolean(text: str, kind: str) -> bool | None:
    return BOOLEAN_WORDS.get(text.lower()) if kind != "number" else None


_PARSERS = {
    "count": _parse_count,
    "seconds": _parse_seconds,
    "truth": _parse_boolean,
    "level": _parse_level,
}

SECURITY_POLICIES = ("off", "standard", "strict")


def _owner_setting(
    name: str, description: str, kind: str = "text", merge_rule: str = "lowest"
) -> SettingDefinition:
    """A security setting that is no degree: where it is said twice, the machine's owner wins."""
    return SettingDefinition(name, kind, description, is_security=True, merge_rule=merge_rule)


SETTINGS: dict[str, SettingDefinition] = {
    key.name: key
    for key in (
        SettingDefinition(
            "output",
            "choice",
            "how to answer",
            OUTPUT_MODES,
            default="auto",
        ),
        SettingDefinition(
            "color",
            "choice",
            "colour in text for people",
            ("auto", "always", "never"),
            default="auto",
            shared_variables=(("NO_COLOR", "never"), ("FORCE_COLOR", "always")),
        ),
        SettingDefinition(
            "response_format",
            "choice",
            "detailed: with the schema of the result",
            ("concise", "detailed"),
        ),
        SettingDefinition("quiet", "truth", "no warnings, no progress", default=False),
        SettingDefinition("verbose", "level", "how much is told on stderr", default=0),
        SettingDefinition("no_input", "truth", "never ask anybody", default=False),
        SettingDefinition("timeout", "seconds", "how long a call may take"),
        SettingDefinition("max_items", "count", "items of a result"),
        SettingDefinition("max_bytes", "count", "bytes of a result"),
        SettingDefinition("max_tokens", "count", "tokens of a result"),
        SettingDefinition(
            "security_policy",
            "choice",
            "who may run what; can only be tightened",
            SECURITY_POLICIES,
            default="standard",
            is_security=True,
        ),
        SettingDefinition(
            "human_in_the_loop", "truth", "a human confirms what may destroy", is_security=True
        ),
        SettingDefinition(
            "isolation",
            "choice",
            "commands in a process of their own, held by the kernel",
            ("off", "wanted", "required"),
            is_security=True,
        ),
        _owner_setting("allow_paths", "files only below these", "paths", "each"),
        _owner_setting("deny_paths", "no files below these", "paths", "union"),
        _owner_setting("work_dir", "the folder that commands run in"),
        _owner_setting("token_key", "the key that callers' tokens are verified with: a file"),
        _owner_setting("token_issuer", "who must have made a token"),
        _owner_setting("token_audience", "whom a token must be for"),
        _owner_setting("tokens", "known tokens and their scopes: a file"),
        _owner_setting("rate_limit", "calls of one caller, as 60/minute"),
        _owner_setting("audit_log", "where to keep the record of what was dared: a file"),
        _owner_setting("store", "where idempotency keys are kept: a postgresql:// address"),
    )
}
"""Every setting by its name."""

SECTION_NAMES = ("apps", "callers")
"""`apps: {NAME: …}` holds for one app, `callers: {NAME: …}` for one caller or kind of caller."""

OTHER_VARIABLES = (
    *("TOOLI_CALLER", "TOOLI_CALLER_VERSION", "TOOLI_SESSION_ID", "TOOLI_CONFIG"),
    *("TOOLI_STATE_DIR", "TOOLI_FRAMEWORK_HELP", "TOOLI_TOKEN", "TOOLI_SEAL_KEY"),
    *("TOOLI_TOKEN_FILE", "TOOLI_RECORD_CAPABILITIES"),
)
"""Variables of ours that are no settings: a file cannot say them."""


def merge_security_values(key: SettingDefinition, values: list[Any]) -> Any:
    """What holds of several words on a security setting, the highest layer's first."""
    if key.merge_rule == "lowest":  # the machine's owner has the last word, not the caller
        return values[-1]
    if key.merge_rule == "union":  # all that anybody forbids
        return tuple(dict.fromkeys([item for value in values for item in value]))
    if key.merge_rule == "each":  # allowed is what all of them allow
        return tuple(values)
    if key.kind == "truth":
        return any(values)
    return max(values, key=key.choices.index)
