"""docs/callers.md, from the tables of `tooli.detect`, `tooli.core.caller_profile` and `tooli.config`."""

from __future__ import annotations

from tooli.config.setting_definitions import SETTINGS
from tooli.core.caller_profile import CALLER_PROFILES
from tooli.detect import display_name
from tooli.detect.markers import CI_MARKERS, SOURCED_CONFIDENCE, STRONG_MARKERS, WEAK_MARKERS

_PAGE = """\
# Callers and configuration

Generated from the tables in `tooli.detect`, `tooli.core.caller_profile` and `tooli.config` by `make docs`; do not
edit.

tooli detects whether a person, an agent or a CI system is calling. The result changes the output
format, the help and the wording, but never what is allowed. `TOOLI_CALLER` sets the caller
explicitly. Settings come from flags, environment variables and files; security settings can only be
tightened. `mytool detect-context` and `mytool config show --origin` show what was detected and
where each setting comes from.

## Caller detection

The first signal that is present determines the caller:

1. `TOOLI_CALLER`, with `TOOLI_CALLER_VERSION` and `TOOLI_SESSION_ID`: confidence 1.0. Any name is
   an agent, except `human`, `ci` and the names of CI systems.
2. A variable that only one agent sets (see [Agent markers](#agent-markers)): confidence 0.95 if it
   was measured, 0.9 if it is documented by the vendor of the agent.
3. `AI_AGENT`: 0.9. It may contain a version: `claude-code_2-1-325_agent` is 2.1.325.
4. `AGENT`: 0.85 for a known name, 0.75 for any other name and for `1`.
5. A CI system: 0.95, or 0.85 if only `CI` is set.
6. A container without a terminal: 0.7.
7. A terminal: a person, 0.8 if stdout is a terminal, 0.6 if only stdin and stderr are. Otherwise
   the caller is unknown.

All signals that are present are listed as candidates. Detection reads only the environment and the
three standard streams. If none of the variables is set, `tooli.detect` is not loaded.
`mytool detect-context` shows all signals and candidates, and the origin of each setting. With
`--deep` it also checks the parent processes and the files that containers create. In Python, use
`detect_execution_context()`, or `ctx.execution_context` in a running tool.

**Detection changes output and wording, never permissions.** A destructive command needs `--yes`,
and a command that requires approval needs a human, for every detected caller.

## Defaults by caller

{behaviour}

- `output`, `help`, `color`: `auto` is text for a person at a terminal, and JSON or plain text
  otherwise. Flags, variables and settings files override it.
- `errors`: in text modes, `full` shows the details that a person gets with `-v`. JSON always
  contains them.
- `timeout`: `TOOLI_TIMEOUT` replaces the default of an agent.
- `confirm`: `ctx.confirm(…)` in a tool asks a person who can answer. Otherwise its default is used.
  With `@app.command(agent_auto_confirm=True)`, which is meant for harmless questions only, the
  answer for an agent is yes. It cannot be set on a command that is destructive, requires approval
  or is dangerous, and has no effect under a strict policy.

In `meta`, `caller_id` and `caller_version` identify a caller that identified itself or was detected
with a confidence of at least 0.8. `session_id` is `TOOLI_SESSION_ID`. `execution_context` is the
category of the caller; it is present if the caller has no name, or with
`--response-format detailed`. If the caller is possibly an agent (0.5 to 0.8), `-v` reports this on
stderr.

## Agent markers

{strong}

CI systems: {ci}.

These signals are weak, because they also occur in people's shells. They are shown, but never
decide:

{weak}

## Settings

Settings are read from these layers, highest first:

1. flags;
2. environment variables: `TOOLI_OUTPUT`, …;
3. `.env` in the project: only lines that start with `TOOLI_` are read, and nothing is exported;
4. `.tooli.yaml` in the project, or the table `[tool.tooli]` in its pyproject.toml;
5. the user's `~/.config/tooli/config.yaml` (`XDG_CONFIG_HOME`; on Windows in `%APPDATA%`);
6. the system's `/etc/tooli/config.yaml` (on Windows in `%PROGRAMDATA%`);
7. defaults: those of the app, and those of the table above.

The project folder is the nearest parent folder (or the current folder) that contains a
`.tooli.yaml`, such a pyproject.toml, or a `.git`. If there is none, it is the current folder.

{keys}

- Security settings can only be tightened. The strictest value of all layers and of the app's author
  applies, on every interface.
- `TOOLI_CONFIG=off` ignores the files of the project and the user. The system file is still read.
- Settings for output, colour, verbosity and input apply to the command line only, and so do the
  sections under `callers`. A `callers` section cannot contain security settings, because callers
  identify themselves.

```yaml
# .tooli.yaml
output: json
timeout: 30
apps:             # for one app
  notes:
    max_items: 100
callers:          # for one caller, or one kind of caller
  claude-code:
    max_tokens: 2000
  ci_cd:
    verbose: 1
```

An unknown setting or a value of the wrong type is an error (E1011) with the file and line, and
nothing runs. On the other interfaces `app.call` returns the error, and a server does not start.
Errors in settings that apply to the command line only are ignored there.

`mytool config show` shows the effective settings. `mytool config show --origin` shows the value of
every layer and its location.

Files can use all of YAML and TOML, for example anchors and multi-line strings. Values are single
texts, numbers or booleans. Tags such as `!!python/object` are refused, and so are files of more than
a megabyte and deeply nested sections.

A `.tooli.yaml` with names, values and sections only is read in about 2 ms. Other YAML files and
pyproject.toml need a library, which adds 15 to 20 ms to a call.
"""


def callers_page() -> str:
    """The page."""
    return _PAGE.format(
        behaviour=_behaviour(),
        strong=_strong(),
        ci=", ".join(f"{name} (`{variable}`)" for name, variable in CI_MARKERS),
        weak="\n".join(f"- {display_name(name)}: {_code(row)}" for name, row in WEAK_MARKERS),
        keys=_keys(),
    )


def _behaviour() -> str:
    fields = type(CALLER_PROFILES["human"]).__match_args__
    rows = [("caller", *fields), ("---",) * (len(fields) + 1)]
    for name, manner in CALLER_PROFILES.items():
        values = [getattr(manner, field) for field in fields]
        rows.append((f"`{name}`", *["none" if value is None else str(value) for value in values]))
    return _table(rows)


def _strong() -> str:
    found: dict[str, list[tuple[float, tuple[str, ...]]]] = {}
    for name, confidence, row in STRONG_MARKERS:
        found.setdefault(name, []).append((confidence, row))
    rows = [("agent", "measured", "from its maker"), ("---",) * 3]
    for name, tiers in found.items():
        measured = [marker for sure, row in tiers if sure > SOURCED_CONFIDENCE for marker in row]
        sourced = [marker for sure, row in tiers if sure <= SOURCED_CONFIDENCE for marker in row]
        rows.append((f"{display_name(name)} (`{name}`)", _code(measured), _code(sourced)))
    return _table(rows)


def _keys() -> str:
    rows = [("setting", "what it takes", "variable", "flag", "what it is"), ("---",) * 5]
    for name, key in SETTINGS.items():
        kind = key.type.replace("|", ", ")
        flag = f"`{key.flag}`" if key.flag else ""
        rows.append((f"`{name}`", kind, f"`{key.variable}`", flag, key.description))
    return _table(rows)


def _code(markers: list[str] | tuple[str, ...]) -> str:
    return ", ".join(f"`{marker}`" for marker in markers).replace("|", "\\|")


def _table(rows: list[tuple[str, ...]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
