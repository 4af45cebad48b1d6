"""Ask before breaking things."""

from __future__ import annotations

from tooli.errors import ApprovalRequired, AuthError, InputError, Suggestion

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from tooli.call.model import Call, Outcome, Stage
    from tooli.enforce.rules import Verdict


def require_approval(human: bool, holding: Sequence[Stage]) -> Stage:
    """Destructive tools need `--yes`; guarded ones need a human's own yes.

    The stage does not ask. It fails with a question, and a surface that has a
    human may ask and send the call again, approved. Where nobody can be asked, the
    question is written down, and a human answers it elsewhere.

    `human`: one is to be in the loop, `--yes` is not enough to destroy. `holding` are the stages
    that hold the function when it runs, and so when it is rehearsed for that human.
    """

    def require(call: Call) -> Generator[Call, Outcome, Outcome]:
        if _may_run(call, human, holding):
            return (yield call)
        from tooli.call.claims import with_claim
        from tooli.enforce.grants import take_grant

        grant = take_grant(call, _needs_human(call), holding)
        return (yield from with_claim(call.replace(approved=True), grant))

    return require


def _may_run(call: Call, human: bool, holding: Sequence[Stage]) -> bool:
    """Whether a call may run as it is: False where it takes a grant. Raises other refusals."""
    from tooli.enforce.rules import judge

    verdict = judge(call, human)
    if verdict.code is None:
        return True
    if verdict.code == "E2000":
        raise _forbidden(call)
    if call.options.dry_run or (call.approved and verdict.asks):
        return True
    if verdict.asks:
        from tooli.call.asking import can_ask

        if can_ask(call):
            raise _question(call, verdict, holding)
    if verdict.code == "E1010":
        raise needs_yes(call)
    return False


def _question(
    call: Call, verdict: Verdict, holding: Sequence[Stage]
) -> InputError | ApprovalRequired:
    """A refusal that a human is shown first, with the plan, and may overcome."""
    from tooli.call.shown import describe

    shown = describe(call, holding)
    error = needs_yes(call) if verdict.code == "E1010" else ApprovalRequired(_needs_human(call))
    error.shown = shown
    return error


def _needs_human(call: Call) -> str:
    return f"{call.tool.name} needs a human's approval."


def _forbidden(call: Call) -> AuthError:
    return AuthError(
        f"{call.tool.name} is forbidden: it is run by nobody, through no door.",
        suggestion=Suggestion("use_different_tool", "Use another command; no flag runs this one."),
    )


def needs_yes(call: Call) -> InputError:
    """The refusal of a destructive call that nobody confirmed, with the call that would run."""
    from tooli.call.repair import compose

    tool = call.tool
    taken = any("--yes" in (*param.flags, *param.negations) for param in tool.params)
    yes = "--tooli-yes" if taken else "--yes"
    argv = [
        *(call.caller.prog or (tool.app,)),
        *tool.words,
        *compose(tool, call.arguments, yes),
    ]
    return InputError(
        f"{tool.name} may destroy data and was not confirmed.",
        code="E1010",
        suggestion=Suggestion(
            "ask_human",
            f"Look with --dry-run first; when it is wanted, repeat the call with {yes}.",
            argv=argv,
        ),
    )
