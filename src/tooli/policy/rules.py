"""The rules of the security policies. The stages, the tests and docs/safety.md use this table.

    PolicyRule ── verdict_for("strict") ──▶ Verdict: run, run with a warning, or reject

If several rules apply to a call, the first one that rejects it decides. No rule depends on the
detected category of the caller.
"""

from __future__ import annotations

from tooli.core import Record

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core.call import Call


class Verdict(Record):
    """The decision of a rule about a call."""

    summary: str
    code: str | None = None  # error code of the rejection; None: the call runs
    asks_human: bool = False  # a human who can be reached is asked, and may allow the call
    adds_warning: bool = False  # the call runs with a warning


RUN = Verdict("runs")
WARN = Verdict("runs, with a warning", adds_warning=True)
ASK_CONFIRMATION = Verdict("a person is asked; other callers get E1010", "E1010", asks_human=True)
NEEDS_CONFIRMATION = Verdict("E1010; nobody is asked", "E1010")
ASK_HUMAN = Verdict("a person is asked; other callers get E2101", "E2101", asks_human=True)
NEEDS_GRANT = Verdict("E2101; nobody is asked", "E2101")
FORBIDDEN = Verdict("E2000", "E2000")
MISSING_SCOPE = Verdict("E2001", "E2001")
MISSING_AUTH = Verdict("E2002", "E2002")
UNDECLARED = Verdict("the access is blocked; the call fails with E2003", "E2003")
UNCHANGED = Verdict("unchanged")
SANITIZED = Verdict("removed, with a warning", adds_warning=True)


class PolicyRule(Record):
    """A condition of a call, and the verdict of each policy about it."""

    description: str
    off: Verdict
    standard: Verdict
    strict: Verdict

    def verdict_for(self, policy: str) -> Verdict:
        """Return the verdict of a policy."""
        return {"off": self.off, "standard": self.standard, "strict": self.strict}[policy]


RULES: dict[str, PolicyRule] = {
    "forbidden": PolicyRule('`danger_level="forbidden"`', FORBIDDEN, FORBIDDEN, FORBIDDEN),
    "auth": PolicyRule("the command does not set `auth=`", RUN, RUN, MISSING_AUTH),
    "scope": PolicyRule("the caller lacks a scope of `auth=`", RUN, WARN, MISSING_SCOPE),
    "approval": PolicyRule(
        "`requires_approval=True`, with or without `--yes`", ASK_HUMAN, ASK_HUMAN, NEEDS_GRANT
    ),
    "critical": PolicyRule(
        '`danger_level="critical"`, with or without `--yes`', RUN, RUN, NEEDS_GRANT
    ),
    "human": PolicyRule(
        "`human_in_the_loop=True`, or a destructive command where the setting "
        "`human_in_the_loop` is on; with or without `--yes`",
        ASK_HUMAN,
        ASK_HUMAN,
        NEEDS_GRANT,
    ),
    "destructive": PolicyRule(
        "a destructive command without `--yes`", RUN, ASK_CONFIRMATION, NEEDS_CONFIRMATION
    ),
    "confirmed": PolicyRule("a destructive command with `--yes`", RUN, RUN, RUN),
    "undeclared": PolicyRule(
        "the command uses a capability that it does not declare", RUN, WARN, UNDECLARED
    ),
    "escapes": PolicyRule(
        "terminal escapes and invisible characters in a result", UNCHANGED, SANITIZED, SANITIZED
    ),
}
"""The rules by name, in the order in which they decide."""


def find_verdict(call: Call, is_human_required: bool) -> Verdict:
    """Return whether a call may run, needs confirmation or approval, or is forbidden.

    `is_human_required` is True if the setting `human_in_the_loop` is on.
    """
    tool, guard = call.tool, call.tool.guard
    destructive = tool.behavior.destructive
    applies = {
        "forbidden": guard.danger == "forbidden",
        "approval": guard.approval,
        "critical": guard.danger == "critical",
        "human": guard.human_in_the_loop or (is_human_required and destructive),
        "destructive": destructive and not call.options.yes,
    }
    for name, matches in applies.items():
        if matches:
            verdict = RULES[name].verdict_for(call.policy)
            if verdict.code is not None:
                return verdict
    return RUN
