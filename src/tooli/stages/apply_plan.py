"""Plan and apply: `--apply TOKEN` runs exactly what a dry run has shown, or nothing."""

from __future__ import annotations

from tooli.errors import InputError, Suggestion, TemporaryError
from tooli.pipeline.dry_run_recorder import supports_dry_run
from tooli.pipeline.planning import digest_plan_basis, plan_changed_error
from tooli.pipeline.single_use_claims import SingleUseClaim, with_claim
from tooli.storage.plan_tokens import (
    claim_plan_token,
    compute_plan_binding,
    decode_plan_token,
    release_plan_token,
)
from tooli.storage.signing import InvalidToken

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from tooli.core.call import Call, Outcome
    from tooli.storage.plan_tokens import PlanToken


def apply_plan(call: Call) -> Generator[Call, Outcome, Outcome]:
    """Hold a call to the plan that its token stands for; the token is used when that is run.

    A token is no consent: what needs `--yes` or a human has met that stage before this one.
    """
    tool = call.tool
    licence = _read_token(call, call.options.apply or "")
    if supports_dry_run(tool.fn):
        from tooli.pipeline.dry_run_execution import make_planned_function

        def check_plan(report: dict[str, Any]) -> None:
            actions = report["actions"]
            if bytes.fromhex(digest_plan_basis(call, actions)) != licence.plan_digest:
                raise plan_changed_error(actions, licence.action_digests)

        next_call = call.replace(tool=tool.replace(fn=make_planned_function(call, check_plan)))
    else:
        if bytes.fromhex(digest_plan_basis(call, None)) != licence.plan_digest:
            raise plan_changed_error(None, b"", "the command is not the one that it was made for")
        next_call = call
    return (yield from with_claim(next_call, _claim_token(licence)))


class PlanTokenClaim(SingleUseClaim):
    """A plan's token, taken for a call."""

    def __init__(self, licence: PlanToken) -> None:
        self._licence = licence

    def release(self) -> None:
        """The plan was not run: it may be applied again."""
        release_plan_token(self._licence)


def _read_token(call: Call, token: str) -> PlanToken:
    from tooli.core.call_fingerprint import fingerprint

    try:
        licence = decode_plan_token(token)
    except InvalidToken as error:
        raise _token_error(f"The plan token cannot be used: {error}.") from None
    if compute_plan_binding(fingerprint(call), call.caller.principal) != licence.binding:
        raise _token_error(
            "The plan token belongs to another call: another command, other arguments, "
            "another caller or another folder."
        )
    return licence


def _claim_token(licence: PlanToken) -> PlanTokenClaim:
    try:
        is_first_use = claim_plan_token(licence)
    except OSError as error:
        raise TemporaryError(
            f"Nobody can tell whether the plan was applied before: {error.strerror}.",
            code="E4060",
            suggestion=Suggestion(
                "ask_human", "Make room in the state folder, or name one in TOOLI_STATE_DIR."
            ),
        ) from None
    if not is_first_use:
        raise _token_error("The plan token was used before: each one runs its plan once.")
    return PlanTokenClaim(licence)


def _token_error(message: str) -> InputError:
    return InputError(
        message,
        code="E1051",
        field="apply",
        suggestion=Suggestion(
            "retry_with_modified_input",
            "Repeat the call with --dry-run and take the token of that plan.",
        ),
    )
