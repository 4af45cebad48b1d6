"""Who is calling, where the environment is the caller's own: the token in TOOLI_TOKEN_FILE."""

from __future__ import annotations

import os

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from typing import Any

    from tooli.core.call import Call, Outcome, Stage


def authenticate_caller(rules: Mapping[str, Any]) -> Stage:
    """Let the caller be whom its token names; one that does not hold ends the call.

    A request over a network brings its own token, and the server's environment says nothing
    about it. Python code is trusted, and brings none.
    """

    def stage(call: Call) -> Generator[Call, Outcome, Outcome]:
        caller = call.caller
        is_local = caller.surface in ("cli", "mcp") and caller.address is None
        path = os.environ.get("TOOLI_TOKEN_FILE")
        if not is_local or not path or caller.principal is not None:
            return (yield call)
        from tooli.policy.token_verifier import make_verifier, read_token_file

        verifier = make_verifier(rules)
        if verifier is None:
            if call.tool.guard.scopes:
                call.warnings.append(
                    "the token in TOOLI_TOKEN_FILE counts for nothing: "
                    "neither token_key nor tokens is set"
                )
            return (yield call)
        token, warning = read_token_file(path)
        identity = verifier.identify(token)
        if warning is not None:
            call.warnings.append(warning)
        identified = caller.replace(principal=identity.principal, scopes=identity.scopes)
        return (yield call.replace(caller=identified))

    return stage
