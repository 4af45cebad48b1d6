"""The table of all settings. Files, environment variables and documentation derive from it."""

from __future__ import annotations

import os

from tooli.core import Record, is_fixed_path
from tooli.core.output_modes import OUTPUT_MODES
from tooli.core.timeout_values import parse_timeout

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

BOOLEAN_VALUES = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}


class RawSetting(Record):
    """A value as it is written in a file or a variable.

    The definition of the setting converts it: `off` is a policy in `security_policy: off`, and
    False in `quiet: off`.
    """

    text: str
    line: int = 0
    syntax: str = "any"  # "text" if quoted; in TOML also "number" or "boolean"; otherwise "any"


class InvalidSetting(ValueError):  # noqa: N818
    """A value does not have the type of its setting."""


class SettingDefinition(Record):
    """One setting: its type, its flag, who may set it and how its layers are merged.

    `trust` says what a project may do, whose files nobody has checked:

    - "presentation": any layer may set it; the highest layer that sets it decides.
    - "tightening": any layer may set it; a project can make it stricter, but not less strict.
    - "trusted": the files of a project cannot set it. This is the class of every path, key,
      identity and address.
    """

    name: str
    kind: str  # see `_KIND_DESCRIPTIONS`, or "choice"
    description: str
    choices: tuple[str, ...] = ()  # for security settings, the least strict comes first
    default: Any = None
    trust: str = "presentation"  # "presentation" | "tightening" | "trusted"
    is_security: bool = False
    merge_rule: str = "highest"  # "highest" | "limit" | "strictest" | "union" | "each" | "lowest"
    shared_variables: tuple[tuple[str, str], ...] = ()  # such as NO_COLOR, with the value to set
    sandbox: str = "kept"  # `Variable.sandbox` of its variable

    @property
    def variable(self) -> str:
        """The environment variable that sets this setting."""
        return f"TOOLI_{self.name.upper()}"

    @property
    def is_merged(self) -> bool:
        """True if the effective value contains the values of all layers."""
        return self.is_security and self.merge_rule in ("union", "each")

    @property
    def flag(self) -> str | None:
        """The command line flag with the same effect, or None."""
        from tooli.core.options import setting_flag  # only messages and documents need it

        return setting_flag(self.name)

    @property
    def type(self) -> str:
        """The accepted values, for messages and documentation."""
        return "|".join(self.choices) if self.choices else _KIND_DESCRIPTIONS[self.kind]

    def convert(self, raw: RawSetting) -> Any:
        """Convert a raw setting to its type; raise InvalidSetting if it is not valid."""
        text = raw.text.strip()
        if self.kind == "choice":
            text = text.lower()
            if raw.syntax in ("any", "text") and text in self.choices:
                return text
        elif self.kind in ("text", "paths"):
            value = text if self.kind == "text" else tuple(filter(None, text.split(os.pathsep)))
            if value and text.isprintable():
                return value
        elif self.kind in _URL_CHECKS:
            if text.isprintable() and _URL_CHECKS[self.kind](text):
                return text
        elif self.kind == "secret":
            is_file = text[:1] == "@" and is_fixed_path(text[1:])
            if text.isprintable() and (is_file or (text[:4] == "env:" and text[4:])):
                return text
        elif self.kind in ("file", "folders"):
            paths = (text,) if self.kind == "file" else tuple(filter(None, text.split(os.pathsep)))
            if paths and text.isprintable() and all([is_fixed_path(path) for path in paths]):
                return text if self.kind == "file" else paths
        elif raw.syntax != "text":
            value = _PARSERS[self.kind](text, raw.syntax)
            if value is not None:
                return value
        found = "" if self.trust == "trusted" else f", not {quote_value(raw)}"  # may be secret
        raise InvalidSetting(f"{self.name} must be {self.type}{found}")


def quote_value(raw: RawSetting) -> str:
    """Return an invalid value for a message, shortened and on one line."""
    text = "".join([c for c in raw.text if c.isprintable()])
    text = text if len(text) <= 40 else f"{text[:40]}…"
    return repr(text) if raw.syntax == "text" or not text else text


_KIND_DESCRIPTIONS = {
    "count": "a whole number, 0 for no limit",
    "seconds": "a number of seconds above 0",
    "boolean": "true or false",
    "level": "a whole number from 0",
    "text": "text",
    "paths": f"paths, separated by {os.pathsep}",
    "file": "the absolute path of a file",
    "postgres_url": "a postgresql:// URL",
    "url": "an http:// or https:// URL",
    "secure_url": "an https:// URL, or an http:// URL of this machine",
    "secret": "env:NAME, or @ and the absolute path of a file",
    "folders": f"absolute paths of folders, separated by {os.pathsep}",
}


def _is_postgres_url(text: str) -> bool:
    return text.startswith(("postgresql://", "postgres://"))


def _is_url(text: str) -> bool:
    scheme, _, rest = text.partition("://")
    has_other_parts = any([char in rest for char in "?#@ "])
    return scheme in ("http", "https") and rest[:1] not in ("", "/") and not has_other_parts


def _is_secure_url(text: str) -> bool:
    scheme, _, rest = text.partition("://")
    host = rest.partition("/")[0].partition("?")[0]
    name, bracket, port = host.rpartition(":")
    if not bracket or "]" in port:
        name, port = host, ""
    is_local = name in ("localhost", "[::1]") or (
        name[:4] == "127." and name[4:].replace(".", "").isdigit()
    )
    is_allowed = (scheme == "https" and name != "") or (scheme == "http" and is_local)
    return is_allowed and (not port or port.isdigit()) and "#" not in rest and "@" not in host


_URL_CHECKS = {
    "postgres_url": _is_postgres_url,
    "url": _is_url,
    "secure_url": _is_secure_url,
}


def _parse_count(text: str, syntax: str) -> int | None:
    return None if text.lower() in ("true", "false") else _parse_level(text, syntax)


def _parse_level(text: str, syntax: str) -> int | None:
    if syntax == "boolean" or (syntax == "any" and text.lower() in ("true", "false")):
        return int(text.lower() == "true")
    is_digits = text.isascii() and text.isdigit() and len(text) <= 18
    # A leading zero is refused, because YAML 1.1 reads 010 as 8.
    return int(text) if is_digits and (text == "0" or text[0] != "0") else None


def _parse_seconds(text: str, syntax: str) -> float | None:
    return parse_timeout(text) if syntax != "boolean" else None


def _parse_boolean(text: str, syntax: str) -> bool | None:
    return BOOLEAN_VALUES.get(text.lower()) if syntax != "number" else None


_PARSERS = {
    "count": _parse_count,
    "seconds": _parse_seconds,
    "boolean": _parse_boolean,
    "level": _parse_level,
}

SECURITY_POLICIES = ("off", "standard", "strict")


def _trusted_setting(
    name: str,
    description: str,
    kind: str = "text",
    merge_rule: str = "lowest",
    sandbox: str = "kept",
) -> SettingDefinition:
    """Define a security setting that a project cannot set. The lowest layer that sets it wins."""
    return SettingDefinition(
        name,
        kind,
        description,
        trust="trusted",
        is_security=True,
        merge_rule=merge_rule,
        sandbox=sandbox,
    )


def _tightening_setting(
    name: str,
    kind: str,
    description: str,
    choices: tuple[str, ...] = (),
    merge_rule: str = "strictest",
    default: str | None = None,
) -> SettingDefinition:
    """Define a security setting that every layer can tighten, and none can loosen."""
    return SettingDefinition(
        name,
        kind,
        description,
        choices,
        default,
        trust="tightening",
        is_security=True,
        merge_rule=merge_rule,
    )


SETTINGS: dict[str, SettingDefinition] = {
    definition.name: definition
    for definition in (
        SettingDefinition("output", "choice", "output format", OUTPUT_MODES, default="auto"),
        SettingDefinition(
            "color",
            "choice",
            "use of colour in text output",
            ("auto", "always", "never"),
            default="auto",
            shared_variables=(("NO_COLOR", "never"), ("FORCE_COLOR", "always")),
        ),
        SettingDefinition(
            "response_format",
            "choice",
            "concise omits details; detailed adds the schema of the result",
            ("concise", "detailed"),
        ),
        SettingDefinition("quiet", "boolean", "no warnings and no progress", default=False),
        SettingDefinition("verbose", "level", "amount of detail on stderr", default=0),
        SettingDefinition("no_input", "boolean", "never prompt", default=False),
        SettingDefinition(
            "timeout", "seconds", "time limit of a call", trust="tightening", merge_rule="limit"
        ),
        SettingDefinition("max_items", "count", "maximum number of items in a result"),
        SettingDefinition("max_bytes", "count", "maximum size of a result in bytes"),
        SettingDefinition("max_tokens", "count", "maximum size of a result in tokens"),
        _tightening_setting(
            "security_policy",
            "choice",
            "security policy; can only be tightened",
            SECURITY_POLICIES,
            default="standard",
        ),
        _tightening_setting(
            "human_in_the_loop", "boolean", "a person must confirm destructive calls"
        ),
        _tightening_setting(
            "isolation",
            "choice",
            "run commands in a sandboxed process",
            ("off", "wanted", "required"),
        ),
        _tightening_setting(
            "allow_paths", "paths", "only files below these paths are accessible", merge_rule="each"
        ),
        _tightening_setting(
            "deny_paths", "paths", "files below these paths are not accessible", merge_rule="union"
        ),
        _trusted_setting("work_dir", "working directory of commands"),
        _trusted_setting(
            "token_key", "file with the key that verifies tokens", "file", sandbox="env:read"
        ),
        _trusted_setting(
            "token_issuer",
            "required issuer of a token; the keys of a URL are found in its metadata",
            sandbox="env:read",
        ),
        _trusted_setting("token_audience", "required audience of a token", sandbox="env:read"),
        _trusted_setting(
            "token_jwks_url", "URL of the keys that verify tokens", "secure_url", sandbox="env:read"
        ),
        _trusted_setting(
            "token_scopes",
            "scopes that a client without a token should request; default: all",
            sandbox="env:read",
        ),
        _trusted_setting(
            "resource_url",
            "URL of the server for clients; its tokens are issued for it",
            "url",
            sandbox="env:read",
        ),
        _trusted_setting(
            "introspection_url",
            "URL at which an authorization server verifies tokens",
            "secure_url",
            sandbox="env:read",
        ),
        _trusted_setting(
            "introspection_client", "client id for introspection_url", sandbox="env:read"
        ),
        _trusted_setting(
            "introspection_secret",
            "client secret for introspection_url",
            "secret",
            sandbox="removed",
        ),
        _trusted_setting(
            "tokens", "file with known tokens and their scopes", "file", sandbox="env:read"
        ),
        _trusted_setting("rate_limit", "maximum rate of calls per caller, for example 60/minute"),
        _trusted_setting("audit_log", "file of the audit log", "file"),
        _trusted_setting(
            "store", "the store for idempotency keys", "postgres_url", sandbox="removed"
        ),
        _trusted_setting(
            "trusted_dirs",
            "settings files below these folders are read without a check of their owner",
            "folders",
            "union",
        ),
    )
}
"""All settings by name."""

SECTION_NAMES = ("apps", "callers")
"""Sections of a file: `apps: {NAME: …}` for one app, `callers: {NAME: …}` for one caller."""


class Variable(Record):
    """An environment variable that tooli reads.

    `sandbox` says which isolated commands get the variable: all of them ("kept"), those with the
    capability `env:read` ("env:read"), or none, because it is a credential ("removed").
    """

    name: str
    description: str
    sandbox: str = "kept"  # "kept" | "env:read" | "removed"
    in_schema: bool = False  # True if the documents about an app list it
    is_security: bool = False  # True if a `.env` file that sets it must be reported


_OTHER_VARIABLES = (
    Variable("TOOLI_CALLER", "Name of the caller.", in_schema=True),
    Variable("TOOLI_CALLER_VERSION", "Version of the caller.", in_schema=True),
    Variable("TOOLI_SESSION_ID", "Session that the calls belong to.", in_schema=True),
    Variable("TOOLI_STATE_DIR", "Folder for persistent state.", in_schema=True, is_security=True),
    Variable("TOOLI_FRAMEWORK_HELP", "0 hides the framework options in the help.", in_schema=True),
    Variable("NO_COLOR", "If set, the output has no colour.", in_schema=True),
    Variable(
        "TOOLI_TOKEN_FILE",
        "File with the caller's token.",
        "removed",
        in_schema=True,
        is_security=True,
    ),
    Variable(
        "TOOLI_CONFIG",
        "off ignores the settings files of the project and the user; user only those of the "
        "project.",
        in_schema=True,
        is_security=True,
    ),
    Variable(
        "TOOLI_TOKEN",
        "Token that clients of the HTTP server must send.",
        "removed",
        is_security=True,
    ),
    Variable(
        "TOOLI_SEAL_KEY",
        "Secret of all machines that serve an app. Keys for cursors, for questions to MCP clients "
        "and for secrets in a Postgres store are derived from it.",
        "removed",
        is_security=True,
    ),
    Variable(
        "TOOLI_RECORD_CAPABILITIES",
        "File that the used capabilities are written to.",
        is_security=True,
    ),
    Variable("TOOLI_MAX_INPUT", "Maximum size of an input.", is_security=True),
    Variable(
        "TOOLI_ALLOW_PRIVATE_URLS", "1 allows inputs from private addresses.", is_security=True
    ),
    Variable("TOOLI_UPDATE_SNAPSHOTS", "1 makes tests write their snapshots.", "env:read"),
)

VARIABLES: dict[str, Variable] = {
    variable.name: variable
    for variable in (
        *_OTHER_VARIABLES,
        *[
            Variable(
                setting.variable,
                f"{setting.description[:1].upper()}{setting.description[1:]}: "
                f"{setting.type.replace('|', ', ')}.",
                setting.sandbox,
                in_schema=True,
                is_security=setting.trust == "trusted",
            )
            for setting in SETTINGS.values()
        ],
    )
}
"""All environment variables that tooli reads, by name, including those of the settings."""


def documented_variables() -> dict[str, str]:
    """Return the descriptions of the variables that documents about an app list, by name."""
    listed = {name: row.description for name, row in VARIABLES.items() if row.in_schema}
    return {"TOOLI_OUTPUT": listed["TOOLI_OUTPUT"], **listed}


def merge_security_values(definition: SettingDefinition, values: list[Any]) -> Any:
    """Merge the values of a security setting: return the strictest one, or a tuple of all.

    Settings with the rule `lowest` are not merged.
    """
    if definition.merge_rule == "union":  # everything that any layer denies
        return tuple(dict.fromkeys([item for value in values for item in value]))
    if definition.merge_rule == "each":  # a path must be allowed by every layer
        return tuple(values)
    if definition.kind == "boolean":
        return any(values)
    return max(values, key=definition.choices.index)
