"""Answer a dry run with a plan, and apply the plan of a token (`--apply TOKEN`)."""

from __future__ import annotations

from tooli.core.call import Failed, Ok
from tooli.core.call_fingerprint import ValueEncoder, digest
from tooli.errors import InputError, Suggestion, TemporaryError, ToolError
from tooli.pipeline.context import update_context
from tooli.pipeline.dry_run_recorder import record_nested_call, supports_dry_run
from tooli.pipeline.planning import (
    build_plan,
    check_report,
    digest_actions,
    digest_plan_basis,
    is_plan,
    make_dry_run_function,
    make_planned_function,
    plan_changed_error,
)
from tooli.pipeline.single_use_claims import SingleUseClaim, is_held, with_claim
from tooli.pipeline.suggestions import suggest_call
from tooli.policy.call_binding import (
    PARTS_WITHOUT_EFFECT_ON_PLANS,
    UnreadableArgument,
    bind_call,
)
from tooli.storage.signing import (
    KEY_BYTES,
    PLAN_BINDING_BYTES,
    PLAN_DIGEST_BYTES,
    InvalidToken,
    claim_plan_token,
    decode_plan_token,
    encode_plan_token,
    load_plan_digest_key,
    release_plan_token,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core.call import Call, StageRun
    from tooli.core.protocols import JsonObject
    from tooli.storage.signing import PlanToken


def answer_with_plan(call: Call) -> StageRun:
    """Return a plan instead of running the call.

    A function marked with `dry_run_support` runs and records its actions. Other functions do not
    run. A marked function that acts in a dry run is stopped.
    """
    tool = call.tool
    if getattr(tool.fn, "tooli_plan", None) is not None or not supports_dry_run(tool.fn):
        plan = build_plan(call)
        if is_plan(plan):
            record_nested_call(plan)
            add_plan_token(call, plan, None)
        return Ok(plan)
    outcome = yield call.replace(tool=tool.replace(fn=make_dry_run_function(call)))
    if isinstance(outcome, Failed):
        return outcome
    report = check_report(outcome.value)
    plan = build_plan(call, report["actions"])
    plan.update(report.get("facts", {}))
    if plan.get("complete") is False:
        stopped = plan.get("stopped", {})
        call.warnings.append(
            f"the plan ends on line {stopped.get('line')}: {stopped.get('reason')}. "
            "So it has no token and cannot be applied"
        )
    elif report["is_truncated"]:
        call.warnings.append(
            "the stream is too long: the plan contains the actions of its beginning"
        )
    else:
        add_plan_token(call, plan, report["actions"])
    return Ok(plan)


def add_plan_token(call: Call, plan: JsonObject, actions: list[JsonObject] | None) -> None:
    """Add a token to the plan, so that it can be applied. Warn if that is not possible."""
    key = load_plan_digest_key()
    try:
        token = None
        if key is not None:
            binding, contents = _bind_plan(call, key)
            call_key = _derive_call_key(binding, key)
            token = encode_plan_token(
                binding,
                contents,
                digest_plan_basis(call, actions, call_key),
                digest_actions(actions, call_key),
            )
    except UnreadableArgument as error:
        call.warnings.append(f"{error.message} So the plan has no token and cannot be applied.")
        return
    if not token:
        call.warnings.append(
            "no signing key can be stored, so the plan has no token and cannot be applied"
        )
    else:
        plan["token"] = token


def _bind_plan(call: Call, key: bytes) -> tuple[bytes, bytes]:
    """Return the bytes that bind a plan to a call, and to the content of the files that it uses.

    The first ones identify its command, arguments, folder and principal.
    """

    def keyed_digest(data: bytes) -> str:
        return digest(data, PLAN_DIGEST_BYTES, key).hex()

    binding = bind_call(call, keyed_digest, must_be_stable=False)
    parts = {
        name: part
        for name, part in binding.parts.items()
        if name not in PARTS_WITHOUT_EFFECT_ON_PLANS
    }
    bound_parts = ValueEncoder().encode([parts, call.caller.principal])
    contents = ValueEncoder().encode(dict(binding.contents))
    return digest(bound_parts, PLAN_BINDING_BYTES, key), digest(contents, PLAN_BINDING_BYTES, key)


def _derive_call_key(binding: bytes, key: bytes) -> bytes:
    """Return the key of the digests of a plan and its actions.

    The process of a sandboxed call compares the actions, so it gets a key for this call only.
    """
    return digest(b"tooli actions" + binding, KEY_BYTES, key)


# ------------------------------------------------------------------ apply a plan


def apply_plan(call: Call) -> StageRun:
    """Run a call, and allow only the actions of its plan.

    If the function does not support dry runs, the stage only checks that the command has not
    changed. The token of the plan is used up when the function runs. A token is not an approval:
    the stage `approval` runs before this one.
    """
    try:
        outcome = yield from _apply_token(call)
    except ToolError as error:
        _suggest_new_plan(error, call)
        raise
    if isinstance(outcome, Failed):
        _suggest_new_plan(outcome.error, call)
    return outcome


def _suggest_new_plan(error: ToolError, call: Call) -> None:
    """Suggest a dry run instead of a plan that cannot be applied."""
    suggestion = error.suggestion
    if error.code in ("E1051", "E3053") and suggestion is not None and suggestion.target is None:
        suggestion.target = suggest_call(call, without=("apply",), dry_run=True)


def _apply_token(call: Call) -> StageRun:
    tool = call.tool
    token, key = _read_token(call.options.apply or "")
    binding, contents = _bind_plan(call, key)
    if binding != token.binding:
        raise _token_error(
            "The plan token belongs to another call: another command, other arguments, "
            "another caller or another folder."
        )
    is_content_changed = contents != token.content_digest
    call_key = _derive_call_key(binding, key)
    if supports_dry_run(tool.fn):

        def check_plan(report: JsonObject) -> None:
            actions = report["actions"]
            if digest_plan_basis(call, actions, call_key) != token.plan_digest:
                raise plan_changed_error(actions, token.action_digests, call_key)
            if is_content_changed:
                raise plan_changed_error(None, b"", call_key, _CONTENT_CHANGED)

        planned = make_planned_function(call, check_plan)
        next_call = call.replace(tool=tool.replace(fn=planned))
    else:
        if digest_plan_basis(call, None, call_key) != token.plan_digest:
            raise plan_changed_error(None, b"", call_key, "the command has changed")
        if is_content_changed:
            raise plan_changed_error(None, b"", call_key, _CONTENT_CHANGED)
        next_call = call
    claim = _claim_token(call, token)
    # A script undoes the start of the claim if it ends before anything was done.
    arguments = update_context(next_call.arguments, claims=(*call.claims, claim))
    return (yield from with_claim(next_call.replace(arguments=arguments), claim))


_CONTENT_CHANGED = "a file or folder in its arguments has changed"


class PlanTokenClaim(SingleUseClaim):
    """The claim of a call on a plan token."""

    def __init__(self, token: PlanToken, id: str, *, is_resumed: bool) -> None:
        super().__init__(id, is_resumed=is_resumed)
        self._token = token

    def undo_start(self) -> None:
        """Let the stage release the token although the function has started."""
        self.has_started = False

    def release(self) -> None:
        """Make the token usable again: the plan was not run."""
        release_plan_token(self._token)


def _read_token(text: str) -> tuple[PlanToken, bytes]:
    """Return the token of a plan, and the key of the digests in it."""
    try:
        token = decode_plan_token(text)
        key = load_plan_digest_key()
        if key is None:
            raise InvalidToken("the key for plans cannot be read in the state directory")
    except InvalidToken as error:
        raise _token_error(f"The plan token cannot be used: {error}.") from None
    return token, key


def _claim_token(call: Call, token: PlanToken) -> PlanTokenClaim:
    claim_id = f"plan {token.nonce}"
    is_resumed = is_held(call, claim_id)
    try:
        is_first_use = is_resumed or claim_plan_token(token)
    except OSError as error:
        raise TemporaryError(
            f"Cannot check whether the plan was applied before: {error.strerror}.",
            code="E4060",
            suggestion=Suggestion(
                "ask_human",
                "Free space in the state folder, or set TOOLI_STATE_DIR to another one.",
            ),
        ) from None
    if not is_first_use:
        raise _token_error("The plan token was used before. It can be used only once.")
    return PlanTokenClaim(token, claim_id, is_resumed=is_resumed)


def _token_error(message: str) -> InputError:
    return InputError(
        message,
        code="E1051",
        field="apply",
        suggestion=Suggestion(
            "retry_with_modified_input",
            "Repeat the call as a dry run and use the token of the new plan.",
        ),
    )
