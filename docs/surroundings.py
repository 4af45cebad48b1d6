"""docs/callers.md, from the tables of `tooli.detect`, `tooli.adapt` and `tooli.config`."""

from __future__ import annotations

from tooli.adapt import BEHAVIOUR
from tooli.config.keys import KEYS
from tooli.detect import shown_name
from tooli.detect.markers import CI, SOURCED, STRONG, WEAK

_PAGE = """\
# Callers and configuration

Generated from the tables in `tooli.detect`, `tooli.adapt` and `tooli.config` by `make docs`; do not
edit.

## Who is calling

An app looks at its environment and takes the first that speaks:

1. `TOOLI_CALLER`, with `TOOLI_CALLER_VERSION` and `TOOLI_SESSION_ID`: certain. Any name is an
   agent; `human`, `ci` and the names of CI systems say what they say.
2. A variable that only one agent sets (below): confidence 0.95 where it was measured, 0.9 where it
   comes from the agent's maker.
3. `AI_AGENT`: 0.9. Its version is read, too: `claude-code_2-1-325_agent` is 2.1.325.
4. `AGENT`: 0.85 for a known name, 0.75 for any other and for `1`.
5. A CI system: 0.95, or 0.85 where only `CI` is set.
6. A container, where nobody is at a terminal: 0.7.
7. The terminal: a person, 0.8 if stdout is one, 0.6 if only stdin and stderr are. Else nobody
   knows.

All that spoke are candidates. Nothing but the environment and the three streams is looked at, and
`tooli.detect` is not even loaded where no such variable is set. `mytool detect-context` shows
every signal and every candidate, and where each setting came from; with `--deep` it also looks at
the processes above this one and at the files that containers leave. In Python:
`detect_execution_context()`, and `ctx.execution_context` in a running tool.

**What is found shapes output and wording, never permission.** A destructive command needs its
`--yes` and a guarded one its human, whoever seems to call.

## What a caller gets

{behaviour}

`auto` is text for people at a terminal, and JSON or plain text anywhere else. Flags, variables and
files of settings say otherwise. Of errors, `full` shows the details in text modes that a person
asks for with `-v`; JSON always holds them. The timeout of an agent is `TOOLI_TIMEOUT`, if that
is set.

`confirm`: a question that a tool asks with `ctx.confirm(…)` goes to a person who can answer;
otherwise its default is the answer. With `@app.command(agent_auto_confirm=True)`, for harmless
questions only, an agent's answer is yes. A command that destroys, needs approval or is dangerous
cannot be declared so, and under a strict policy it has no effect.

In `meta`, `caller_id` and `caller_version` name a caller who said so or is known with a confidence
of 0.8 or more, `session_id` is `TOOLI_SESSION_ID`, and `execution_context` is the kind of caller,
where no name says it or `--response-format detailed` asks for everything. Where an agent is only
possible (0.5 to 0.8), `-v` says so on stderr.

## Marks of agents

{strong}

CI systems: {ci}.

These are weak, as people's shells have them as well. They are shown and never decide:

{weak}

## Settings

From the highest layer to the lowest:

1. flags;
2. variables: `TOOLI_OUTPUT`, …;
3. `.env` in the project: only its `TOOLI_` lines are read, and nothing is exported;
4. `.tooli.yaml` in the project, or the table `[tool.tooli]` of its pyproject.toml;
5. the user's `~/.config/tooli/config.yaml` (`XDG_CONFIG_HOME`; on Windows in `%APPDATA%`);
6. the system's `/etc/tooli/config.yaml` (on Windows in `%PROGRAMDATA%`);
7. defaults: the app's own, and those of the table above.

The project's folder is the nearest one upwards that has a `.tooli.yaml`, such a pyproject.toml, or
a `.git`; where there is none, it is the current folder.

{keys}

A security setting can only be tightened: the strictest word of all layers and of the app's author
holds, through every door. `TOOLI_CONFIG=off` leaves the files of project and user alone; the
system's own stays. What is set for the command line (output, colour, verbosity, input) concerns
the command line only, and so does a section for callers. A security setting cannot stand in one:
who calls is what a caller says of itself.

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

An unknown name and a value of the wrong type are errors (E1011) that name file and line; nothing
runs. On the other doors, too: `app.call` answers with the error, a server does not begin to serve;
only what is wrong about the command line alone is nothing to them. `mytool config show` shows what
holds, `mytool config show --origin` what every layer says and where. YAML is read as far as
settings need it; for anchors, lists and the like PyYAML is asked, if it is there:
`pip install 'tooli[yaml]'`.
"""


def callers_page() -> str:
    """The page."""
    return _PAGE.format(
        behaviour=_behaviour(),
        strong=_strong(),
        ci=", ".join(f"{name} (`{variable}`)" for name, variable in CI),
        weak="\n".join(f"- {shown_name(name)}: {_code(row)}" for name, row in WEAK),
        keys=_keys(),
    )


def _behaviour() -> str:
    fields = type(BEHAVIOUR["human"]).__match_args__
    rows = [("caller", *fields), ("---",) * (len(fields) + 1)]
    for name, manner in BEHAVIOUR.items():
        values = [getattr(manner, field) for field in fields]
        rows.append((f"`{name}`", *["none" if value is None else str(value) for value in values]))
    return _table(rows)


def _strong() -> str:
    found: dict[str, list[tuple[float, tuple[str, ...]]]] = {}
    for name, confidence, row in STRONG:
        found.setdefault(name, []).append((confidence, row))
    rows = [("agent", "measured", "from its maker"), ("---",) * 3]
    for name, tiers in found.items():
        measured = [marker for sure, row in tiers if sure > SOURCED for marker in row]
        sourced = [marker for sure, row in tiers if sure <= SOURCED for marker in row]
        rows.append((f"{shown_name(name)} (`{name}`)", _code(measured), _code(sourced)))
    return _table(rows)


def _keys() -> str:
    rows = [("setting", "what it takes", "variable", "flag", "what it is"), ("---",) * 5]
    for name, key in KEYS.items():
        kind = key.type.replace("|", ", ")
        flag = f"`{key.flag}`" if key.flag else ""
        rows.append((f"`{name}`", kind, f"`{key.variable}`", flag, key.about))
    return _table(rows)


def _code(markers: list[str] | tuple[str, ...]) -> str:
    return ", ".join(f"`{marker}`" for marker in markers).replace("|", "\\|")


def _table(rows: list[tuple[str, ...]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
