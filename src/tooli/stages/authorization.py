"""Who may run a tool, by the scopes that the caller holds."""

from __future__ import annotations

from tooli.errors import AuthError, Suggestion

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator

    from tooli.core.call import Call, Outcome


def authorize(call: Call) -> Generator[Call, Outcome, Outcome]:
    """Strict: a tool says who may run it, and only they do. Standard: a mismatch is a warning."""
    scopes = call.tool.guard.scopes
    if scopes is None:
        if call.policy == "strict":
            raise AuthError(
                f"{call.tool.name} does not say who may run it, and the policy is strict.",
                code="E2002",
                suggestion=Suggestion(
                    "ask_human", "Its author declares auth=[…], or auth=[] for anyone."
                ),
            )
        return (yield call)
    missing = sorted(set(scopes) - call.caller.scopes)
    if missing and call.policy == "strict":
        raise AuthError(
            f"{call.tool.name} needs the scope {', '.join(missing)}.",
            code="E2001",
            suggestion=Suggestion("ask_human", "Ask for a token that carries the scope."),
            details={"missing_scopes": missing},
        )
    if missing and call.policy == "standard":
        call.warnings.append(f"the caller lacks the scope {', '.join(missing)}")
    return (yield call)
