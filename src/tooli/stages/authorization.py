"""Check the scopes of the caller."""

from __future__ import annotations

from tooli.errors import AuthError, Suggestion

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator

    from tooli.core.call import Call, Outcome


def authorize(call: Call) -> Generator[Call, Outcome, Outcome]:
    """Reject a caller without the scopes of the command.

    Under the policy `standard` a missing scope is a warning. Under `strict` it is an error. A
    command without `auth=` is an error under `strict` as well.
    """
    scopes = call.tool.guard.scopes
    if scopes is None:
        if call.policy == "strict":
            raise AuthError(
                f"{call.tool.name} does not declare its scopes, which the policy strict requires.",
                code="E2002",
                suggestion=Suggestion(
                    "ask_human",
                    "Declare auth=[…] for the command, or auth=[] to allow every caller.",
                ),
            )
        return (yield call)
    missing = sorted(set(scopes) - call.caller.scopes)
    if missing and call.policy == "strict":
        raise AuthError(
            f"{call.tool.name} needs the scope {', '.join(missing)}.",
            code="E2001",
            suggestion=Suggestion("ask_human", "Ask for a token with this scope."),
            details={"missing_scopes": missing},
        )
    if missing and call.policy == "standard":
        call.warnings.append(f"the caller lacks the scope {', '.join(missing)}")
    return (yield call)
