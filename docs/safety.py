"""docs/safety.md, from the table of `tooli.policy.rules`."""

from __future__ import annotations

from tooli.policy.rules import RULES
from tooli.storage.approval_store import APPROVAL_TTL_SECONDS, MAX_PENDING_REQUESTS

_PAGE = """\
# Safety

Generated from the table in `tooli.policy.rules` by `make docs`; do not edit.

The security policy is `off`, `standard` (the default) or `strict`. A destructive command needs
`--yes` or a person who confirms it. A command with `requires_approval=True` needs a human's
approval, which `--yes` does not replace. The rules are the same on every interface and do not
depend on who seems to be calling. They prevent accidents; they do not stop an agent that runs as
your own user (see [Limitations](#limitations)).

## Security policies

Set the policy with `Tooli(security_policy="off" | "standard" | "strict")`, `TOOLI_SECURITY_POLICY`,
or `security_policy` in a settings file. The strictest of them applies. The default is `standard`.
The same rules apply on the command line, in Python, over MCP and over HTTP. If several rules apply
to a call, the first one that does not let it run decides.

{table}

- **A person is asked** at a terminal, and is shown the call and its plan. Over MCP, the client's
  user is asked, if the client supports it (elicitation). Nobody is asked with `--no-input`, in a
  machine mode (`--json`, …), under `strict`, or if an agent is detected in the environment or among
  the parent processes.
- `--yes` is the caller's statement that a human wants the call. It never replaces a human's
  approval.
- With `danger_level="high"` or `"critical"`, the person at a terminal must type the name of the
  command instead of `y`.
- `--dry-run` overrides everything: nothing is changed, on any interface. Only a caller who may not
  run the command at all (E2000, E2001, E2002) cannot plan it either.
- No rule depends on the detected caller. A detected agent gets no additional rights.

## Approvals

A call that needs a human and cannot reach one fails with exit code 101 (HTTP 428). The request is
stored, and `error.details.approval` identifies it:

```json
{{"id": "mbst-e5cq", "expires": "2026-11-15T18:17:12Z", "command": "mytool approvals grant mbst-e5cq"}}
```

A human reviews and answers the request in their own terminal. Then **the same call is repeated**:

| command | effect |
| --- | --- |
| `mytool approvals list` | lists the pending requests: who wants to run what, and what it would do |
| `mytool approvals grant ID` | shows the call and its plan, and asks for a displayed code; the call may then run |
| `mytool approvals deny ID` | denies the request; the next call gets E2103, once |

`tooli approvals list|grant|deny` does the same for all apps of a user. Use it for an app that
consists of a single command, because such an app takes all arguments for itself.

### Scope of an approval

- An approval allows **one run** of the call, within {minutes} minutes. A request expires after
  {minutes} minutes. A repeated call that is refused again keeps its request. At most {most}
  requests can be pending.
- A call does not use up its approval if it is refused for another reason, is answered without a
  run, or pauses for a question and is repeated with the answer.
- An approval is bound to the command, all its arguments, the caller, a nonce, and the plan of the
  command if it has one. If any of these changes, a new request is created.
- Secrets are part of the bound arguments, but are not stored. A secret passed as `@FILE` or
  `env:NAME` is bound by its value, not by its location.
- Input from a pipe cannot be shown before it is read, and therefore cannot be approved.
- The caller is the interface together with the name in a verified token, or else with the name that
  the caller gives itself. All HTTP callers without a token and a name count as the same caller.

### Plan of an approval request

To show the plan, a function with `dry_run_support` is run as in `--dry-run`, in the same sandbox,
with the same monitoring and timeout. If that fails, the call fails with the same error. The
function is not run on an event loop, where all other calls would have to wait (`async def` behind a
server, `app.acall`), and not for a command that takes inputs or outputs. The human then sees the
call and what the command declares.

### Storage

- Requests and approvals are files in `approvals/` of the state folder (`TOOLI_STATE_DIR`, else
  `~/.local/state/tooli`), mode 0600, signed with the key in `approvals.key`.
- A file that was forged, changed, restored from a copy or renamed is ignored. An expired file is
  ignored as well; the expiry is checked with the clock and with the time since the machine was
  started. A restart of the machine invalidates all requests and approvals.
- `grant` needs a terminal. It refuses with `--no-input`, in the environment of an agent and below
  the process of an agent. Neither `--yes` nor a variable answers it.
- If requests cannot be stored (no key, a full disk, a folder that others may write to), the call is
  refused (E2104).

## What each policy protects

| | calls | what commands access (`capabilities=`) |
| --- | --- | --- |
| **off** | Destructive commands run without `--yes`. Commands that need a human's approval still need it. | Declarations are documentation; nothing is checked. |
| **standard** | Nothing is destroyed by accident: the caller passed `--yes` (an agent can do so as well), or a human agreed. | Undeclared use of files, processes and the network through Python's standard library is detected and reported. Not a security boundary. |
| **strict** | The same. In addition, nobody is prompted, and every command must declare who may run it. | Undeclared use is blocked, and the call fails even if the command catches the error. This stops mistakes and confused deputies, not hostile code. |
| **strict, isolated** | The same. | The command runs in its own process on Linux, and the kernel denies undeclared access, also to native code. If this is not available, a command that requires it does not run. |

## Limitations

- **An agent that runs as your user can do what you can do.** It can open its own terminal, remove
  all traces from the environment and type the code. It can read the key, or set `TOOLI_STATE_DIR`
  to a folder that it fills itself. It can call the function of the command, or delete your files
  without using any command. On one machine, under one user, approvals work only for an agent that
  cooperates.
- **To protect the key, use another user.** Run the app as a server under its own user
  (`mytool mcp serve --transport http`, `mytool api serve`), with a state folder that the agent can
  neither read nor write. Give the agent the address and, preferably, a token. Approvals are then
  granted with `sudo -u THAT_USER mytool approvals grant ID`, and the agent cannot grant them.
- **Over MCP, a confirmation comes from the client**, and is only as trustworthy as the client.
  Under `strict` it is not accepted.
"""  # noqa: E501  tables


def safety_page() -> str:
    """docs/safety.md, from the table."""
    head = ["| a call | off | standard | strict |", "| --- | --- | --- | --- |"]
    rows = [
        f"| {rule.description} | {rule.off.summary} "
        f"| {rule.standard.summary} | {rule.strict.summary} |"
        for rule in RULES.values()
    ]
    return _PAGE.format(
        table="\n".join([*head, *rows]),
        minutes=APPROVAL_TTL_SECONDS // 60,
        most=MAX_PENDING_REQUESTS,
    )
