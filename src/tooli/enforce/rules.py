"""What each policy makes of a call: one table, which the stages, the tests and docs/safety.md read.

    Rule ── at("strict") ──▶ Verdict: it runs, it runs with a warning, or it is refused with a code

Of several rules that apply to a call, the first that does not let it run decides. Who seems to
be calling stands in none of them.
"""

from __future__ import annotations

from tooli.contract.record import Record

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.call.model import Call


class Verdict(Record):
    """What becomes of a call."""

    words: str
    code: str | None = None  # of the refusal; None: it runs
    asks: bool = False  # a human whom the door can reach is asked instead, and may let it run
    warns: bool = False  # it runs, and `meta.warnings` says what is wrong with that


RUN = Verdict("runs")
WARN = Verdict("runs, with a warning", warns=True)
CONFIRM = Verdict("a person is asked; anybody else: E1010", "E1010", asks=True)
UNCONFIRMED = Verdict("E1010, nobody is asked", "E1010")
HUMAN = Verdict("a person is asked; anybody else needs a grant: E2101", "E2101", asks=True)
GRANT = Verdict("needs a grant: E2101, nobody is asked", "E2101")
NEVER = Verdict("E2000", "E2000")
NO_SCOPE = Verdict("E2001", "E2001")
NOBODY_SAID = Verdict("E2002", "E2002")
UNDECLARED = Verdict("the act is refused, and the call fails: E2003", "E2003")
AS_IT_IS = Verdict("given as it is")
CLEANED = Verdict("taken out, with a warning", warns=True)


class Rule(Record):
    """One behaviour of a call, and what each policy makes of it."""

    about: str
    off: Verdict
    standard: Verdict
    strict: Verdict

    def at(self, policy: str) -> Verdict:
        """The verdict of a policy."""
        return {"off": self.off, "standard": self.standard, "strict": self.strict}[policy]


RULES: dict[str, Rule] = {
    "forbidden": Rule('`danger_level="forbidden"`', NEVER, NEVER, NEVER),
    "unsaid": Rule("a command that does not say `auth=`", RUN, RUN, NOBODY_SAID),
    "scope": Rule("the caller lacks a scope of `auth=`", RUN, WARN, NO_SCOPE),
    "approval": Rule("`requires_approval=True`, with or without `--yes`", HUMAN, HUMAN, GRANT),
    "critical": Rule('`danger_level="critical"`, with or without `--yes`', RUN, RUN, GRANT),
    "human": Rule(
        "`human_in_the_loop=True`, or a destructive command where the setting "
        "`human_in_the_loop` is on; with or without `--yes`",
        HUMAN,
        HUMAN,
        GRANT,
    ),
    "destructive": Rule("a destructive command without `--yes`", RUN, CONFIRM, UNCONFIRMED),
    "confirmed": Rule("a destructive command with `--yes`", RUN, RUN, RUN),
    "undeclared": Rule(
        "a command touches what its `capabilities=` do not declare", RUN, WARN, UNDECLARED
    ),
    "dirty": Rule(
        "terminal escapes and invisible characters in a result", AS_IT_IS, CLEANED, CLEANED
    ),
}
"""The rules by name, from the one that decides first to the last."""


def judge(call: Call, human: bool) -> Verdict:
    """Whether a call may run as far as humans have a say in it.

    `human`: the setting `human_in_the_loop` is on.
    """
    tool, guard = call.tool, call.tool.guard
    destructive = tool.behavior.destructive
    applies = {
        "forbidden": guard.danger == "forbidden",
        "approval": guard.approval,
        "critical": guard.danger == "critical",
        "human": guard.human_in_the_loop or (human and destructive),
        "destructive": destructive and not call.options.yes,
    }
    for name, holds in applies.items():
        if holds:
            verdict = RULES[name].at(call.policy)
            if verdict.code is not None:
                return verdict
    return RUN
