"""Require a confirmation or an approval for destructive and restricted commands."""

from __future__ import annotations

from tooli.core.option_words import spell_option
from tooli.errors import ApprovalRequired, AuthError, InputError, Suggestion
from tooli.pipeline import CONFINEMENT_STAGES
from tooli.pipeline.single_use_claims import with_claim
from tooli.pipeline.suggestions import suggest_call
from tooli.policy.rules import find_verdict

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from tooli.core.call import Call, Stage, StageRun
    from tooli.pipeline import StageContext
    from tooli.policy.rules import Verdict


def require_approval(context: StageContext) -> Stage:
    """Require `--yes` or a human's approval.

    If a surface can reach a human, the stage raises an error that contains the question. The
    surface asks the human and sends the call again as approved. Otherwise the stage stores a
    request, and a human answers it elsewhere. The human sees a plan. The dry run that makes the
    plan is confined like a run.
    """
    human_required = bool(context.state.security_settings.get("human_in_the_loop"))
    confinement = context.select(CONFINEMENT_STAGES)

    def check_approval(call: Call) -> StageRun:
        if _may_run(call, human_required, confinement):
            return (yield call)
        grants = _load_grants()
        grant = grants.take_grant(call, _approval_message(call), confinement)
        return (yield from with_claim(grants.mark_approved(call), grant))

    return check_approval


def _may_run(call: Call, human_required: bool, confinement: Sequence[Stage]) -> bool:
    """True if a call may run as it is; False if it needs a grant. Raises if it must not run."""
    verdict = find_verdict(call, human_required)
    if verdict.code is None:
        return True
    if verdict.code == "E2000":
        raise _forbidden_error(call)
    if call.options.dry_run:
        return True
    if call.approved and verdict.asks_human:
        _load_grants().check_shown_call(call, confinement)
        return True
    if verdict.asks_human:
        from tooli.pipeline.terminal_prompts import can_ask_human

        if can_ask_human(call):
            raise _question_error(call, verdict, confinement)
    if verdict.code == "E1010":
        raise confirmation_required_error(call)
    return False


def _question_error(
    call: Call, verdict: Verdict, confinement: Sequence[Stage]
) -> InputError | ApprovalRequired:
    """Return the error that asks a human, with a description of the call and its plan."""
    must_be_stable = verdict.code == "E2101" and call.peer is not None
    is_brief = verdict.code == "E1010" and call.peer is None and not call.options.verbose
    description, parts = _load_grants().describe_call(
        call, confinement, must_be_stable=must_be_stable, is_brief=is_brief
    )
    error = (
        confirmation_required_error(call)
        if verdict.code == "E1010"
        else ApprovalRequired(_approval_message(call))
    )
    error.approval_text, error.approval_parts = description, parts
    return error


def _load_grants() -> ModuleType:
    """Import the module for approvals, which a call with `--yes` does not need."""
    from tooli.policy import approval_grants

    return approval_grants


def _approval_message(call: Call) -> str:
    return f"{call.tool.name} needs a human's approval."


def _forbidden_error(call: Call) -> AuthError:
    return AuthError(
        f"{call.tool.name} is forbidden on every interface.",
        suggestion=Suggestion(
            "use_different_tool", "Use another command. No option allows this one."
        ),
    )


def confirmation_required_error(call: Call) -> InputError:
    """Return the error for a destructive call without `--yes`. It suggests adding `--yes`."""
    dry_run, yes = spell_option(call, "dry_run"), spell_option(call, "yes")
    suggestion = Suggestion(
        "ask_human", f"Check the effects with {dry_run}, then repeat the call with {yes}."
    )
    suggestion.target = suggest_call(call, yes=True)
    return InputError(
        f"{call.tool.name} may destroy data and needs a confirmation.",
        code="E1010",
        suggestion=suggestion,
    )
