"""docs/safety.md, from the table of `tooli.enforce.rules`."""

from __future__ import annotations

from tooli.enforce.rules import RULES
from tooli.state.approvals import LASTS, MOST

_PAGE = """\
# Safety

Generated from the table in `tooli.enforce.rules` by `make docs`; do not edit.

## What each policy makes of a call

`Tooli(security_policy="off" | "standard" | "strict")`, `TOOLI_SECURITY_POLICY` or
`security_policy` in a file of settings; the strictest of them holds, and `standard` where nobody
says anything. The same rules hold on a command line, in Python, over MCP and over HTTP. Of
several that apply to a call, the first that does not let it run decides.

{table}

- **A person is asked** at a terminal, with the call and its plan in front of them; over MCP the
  client's human, where the client can ask (elicitation). Nobody is asked with `--no-input`, in a
  machine mode (`--json`, …), under `strict`, or where an agent shows itself in the environment or
  among the processes above.
- `--yes` is the caller's word that a human wants it. It never stands for a human's grant.
- `danger_level="high"` or `"critical"`: at a terminal the person types the command's name, not
  `y`.
- `--dry-run` wins over everything: nothing happens, on every door. Only who may not run a command
  at all (E2000, E2001, E2002) may not plan it, either.
- Who seems to be calling stands in none of these rules. A detected agent gains nothing.

## A human's grant

A call that needs a human and reaches none fails with exit code 101 (HTTP 428). What was asked is
written down, and `error.details.approval` names it:

```json
{{"id": "mbst-e5cq", "expires": "2026-11-15T18:17:12Z", "command": "mytool approvals grant mbst-e5cq"}}
```

A human looks at it and answers, in a terminal of their own; then **the same call is repeated**:

| command | what it does |
| --- | --- |
| `mytool approvals list` | what waits: who wants to run what, and what it would do |
| `mytool approvals grant ID` | shows the call and its plan, and asks for a code that it shows; the call may run |
| `mytool approvals deny ID` | the call is told so (E2103), once |

`tooli approvals list|grant|deny` does the same for all apps of a user; an app that is one single
command, whose words are all its own, is answered there.

- A grant runs the call **once**, within {minutes} minutes; a request waits {minutes} minutes. A
  repeated call that is refused again has the same request. At most {most} requests wait. Once
  means one run: a call that is refused for something else, is answered without a run, or pauses
  for a question and comes again with the answer, has not used it.
- It is bound to the command, all its arguments (secrets too, without keeping them: one that is
  named by its place is read there, and is what it is, not where), the caller, a
  nonce, and to what the command itself says that it would do (its plan, where it has one). If any
  of this moves, there is a new question. What comes through a pipe cannot be shown before it is
  read, and so it cannot be granted.
- For that plan a function with `dry_run_support` is rehearsed as `--dry-run` does it, behind the
  same walls, under the same watch and within the same time; where it fails, the call fails with
  that. Nothing is rehearsed on an event loop, where all others would wait for it (`async def`
  behind a server, `app.acall`), nor for a command that takes inputs or outputs: there the human
  is shown the call and what the command declares.
- The caller is the door with the name that a verified token says; where there is none, with the
  name that the caller gives itself. Callers over HTTP without tokens and names are one and the
  same.
- Requests and grants are files in `approvals/` of the state folder (`TOOLI_STATE_DIR`, else
  `~/.local/state/tooli`), mode 0600, sealed with the key in `approvals.key`. A file that was
  forged, changed, copied back or renamed counts for nothing, nor does one whose time is over by
  the clock or by the time since the machine was started. A restart of the machine ends them all.
- `grant` wants a terminal. It refuses with `--no-input`, in the environment of an agent and below
  an agent's process; `--yes` does not answer it, and no variable does.
- Where requests cannot be kept (no key, a full disk, a folder that others may write to), the call
  is refused (E2104). Nothing is skipped.

## What this is worth

| | calls | what commands touch (`capabilities=`) |
| --- | --- | --- |
| **off** | Destructive commands run without `--yes`. What a human must approve still needs the human. | Declarations are documentation; nothing is checked. |
| **standard** | Nothing destroys by accident: somebody said `--yes` (an agent can say it as well), or a human agreed. | Undeclared use of files, processes and the network through Python's standard library is noticed and reported. Not a security boundary. |
| **strict** | The same, nobody is asked in passing, and every command says who may run it. | Such use is blocked, and the call fails even where the command swallows the error. It stops mistakes and confused deputies, not hostile code. |
| **strict, isolated** | The same. | In a process of its own on Linux, the kernel denies what was not declared, to native code, too. Where that cannot be had, a command that demands it does not run. |

What it does not do, so that nobody relies on it:

- **An agent that runs as you can do what you can do.** It can open a terminal of its own, leave
  no mark in the environment and type the code; it can read the key; it can set `TOOLI_STATE_DIR`
  to a folder that it fills itself; it can call the command's function, or delete your file
  without any command of yours. On one machine, under one user, approvals keep an agent honest
  that means to be.
- **To put the key out of its reach, let another user hold it.** Serve the app under a user of its
  own (`mytool mcp serve --transport http`, `mytool api serve`), whose state folder the agent can
  neither read nor write; give the agent the address and, best, a token. Then a grant is made with
  `sudo -u THAT_USER mytool approvals grant ID`, and nothing that the agent can run makes one.
- Over MCP a yes comes from the client. It is worth as much as the client is: under `strict` it
  does not count.
"""  # noqa: E501  tables


def safety_page() -> str:
    """docs/safety.md, from the table."""
    head = ["| a call | off | standard | strict |", "| --- | --- | --- | --- |"]
    rows = [
        f"| {rule.about} | {rule.off.words} | {rule.standard.words} | {rule.strict.words} |"
        for rule in RULES.values()
    ]
    return _PAGE.format(table="\n".join([*head, *rows]), minutes=LASTS // 60, most=MOST)
