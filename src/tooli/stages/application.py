"""Plan and apply: `--apply TOKEN` runs exactly what a dry run has shown, or nothing."""

from __future__ import annotations

from tooli.call.claims import Claim, with_claim
from tooli.call.planning import essence_of, moved
from tooli.call.rehearsal import rehearses
from tooli.errors import InputError, Suggestion, TemporaryError
from tooli.state.plans import BrokenToken, bind_to, spend, unseal, unspend

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from tooli.call.model import Call, Outcome
    from tooli.state.plans import Licence


def apply_plan(call: Call) -> Generator[Call, Outcome, Outcome]:
    """Hold a call to the plan that its token stands for; the token is used when that is run.

    A token is no consent: what needs `--yes` or a human has met that stage before this one.
    """
    tool = call.tool
    licence = _read(call, call.options.apply or "")
    if rehearses(tool.fn):
        from tooli.call.acting import held

        def judge(told: dict[str, Any]) -> None:
            actions = told["actions"]
            if bytes.fromhex(essence_of(call, actions)) != licence.plan:
                raise moved(actions, licence.marks)

        onward = call.replace(tool=tool.replace(fn=held(call, judge)))
    else:
        if bytes.fromhex(essence_of(call, None)) != licence.plan:
            raise moved(None, b"", "the command is not the one that it was made for")
        onward = call
    return (yield from with_claim(onward, _take(licence)))


class Token(Claim):
    """A plan's token, taken for a call."""

    def __init__(self, licence: Licence) -> None:
        self._licence = licence

    def give_back(self) -> None:
        """The plan was not run: it may be applied again."""
        unspend(self._licence)


def _read(call: Call, token: str) -> Licence:
    from tooli.call.canonical import fingerprint

    try:
        licence = unseal(token)
    except BrokenToken as broken:
        raise _refusal(f"The plan token cannot be used: {broken}.") from None
    if bind_to(fingerprint(call), call.caller.principal) != licence.binding:
        raise _refusal(
            "The plan token belongs to another call: another command, other arguments, "
            "another caller or another folder."
        )
    return licence


def _take(licence: Licence) -> Token:
    try:
        first = spend(licence)
    except OSError as failure:
        raise TemporaryError(
            f"Nobody can tell whether the plan was applied before: {failure.strerror}.",
            code="E4060",
            suggestion=Suggestion(
                "ask_human", "Make room in the state folder, or name one in TOOLI_STATE_DIR."
            ),
        ) from None
    if not first:
        raise _refusal("The plan token was used before: each one runs its plan once.")
    return Token(licence)


def _refusal(message: str) -> InputError:
    return InputError(
        message,
        code="E1051",
        field="apply",
        suggestion=Suggestion(
            "retry_with_modified_input",
            "Repeat the call with --dry-run and take the token of that plan.",
        ),
    )
