"""Identify the caller by the token in TOOLI_TOKEN_FILE, and check its scopes.

If the security settings are invalid, reject every call. If some are ignored, warn the caller.
"""

from __future__ import annotations

import os

from tooli.errors import AuthError, InputError, Suggestion, ToolError

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core import SecuritySettings
    from tooli.core.call import Call, Stage, StageRun
    from tooli.pipeline import StageContext


def reject_invalid_settings(context: StageContext) -> Stage:
    """Reject every call while the security settings are invalid.

    An invalid setting may have been meant to forbid the call, so nothing runs.
    """
    faults = context.state.security_settings.get("faults", [])

    def reject_call(call: Call) -> StageRun:
        yield from ()
        from tooli.config.layers import make_settings_error

        raise make_settings_error(faults)

    return reject_call


def report_ignored_settings(context: StageContext) -> Stage:
    """Warn about settings of a project that it cannot set, and about files that are not read.

    A server reports them when it starts instead, because they contain paths of its machine.
    """
    ignored = [str(setting) for setting in context.state.security_settings.get("ignored", [])]

    def add_warnings(call: Call) -> StageRun:
        if not call.caller.is_remote:
            call.warnings.extend(ignored)
        return (yield call)

    return add_warnings


def authenticate_caller(context: StageContext) -> Stage | None:
    """Identify the caller by its token (`TOOLI_TOKEN_FILE`), or reject the token.

    A network request carries its own token, so the environment of the server does not identify
    its caller. Python code is trusted and needs no token.
    """
    settings = context.state.security_settings
    if "TOOLI_TOKEN_FILE" not in os.environ:
        return None

    def authenticate(call: Call) -> StageRun:
        caller = call.caller
        path = os.environ.get("TOOLI_TOKEN_FILE")
        if not caller.uses_environment_token or not path or caller.principal is not None:
            return (yield call)
        from tooli.policy.token_verifier import read_token_file, shared_verifier

        verifier = shared_verifier(settings)
        if verifier is None:
            if call.tool.guard.scopes:
                call.warnings.append(
                    "the token in TOOLI_TOKEN_FILE is ignored: no setting defines valid tokens"
                )
            return (yield call)
        token, warning = read_token_file(path)
        identity = verifier.identify(token)
        if warning is not None:
            call.warnings.append(warning)
        identified = caller.replace(principal=identity.principal, scopes=identity.scopes)
        return (yield call.replace(caller=identified))

    return authenticate


def check_audience(call: Call) -> StageRun:
    """Hide a command from callers without one of the roles that see it.

    Python code is trusted and sees every command.
    """
    audience = call.tool.guard.audience
    if not call.caller.is_in_process and call.caller.scopes.isdisjoint(audience):
        raise InputError(
            f"There is no command {call.tool.name!r}",
            code="E1001",
            suggestion=Suggestion("retry_with_modified_input", "Name one of the commands."),
        )
    return (yield call)


def check_callers(call: Call) -> StageRun:
    """Refuse a command that only scripts may call (`callers=`), or that scripts may not call."""
    callers = call.tool.guard.callers
    if ("code" if call.is_from_script else "direct") not in callers:
        fix = "Call it directly." if call.is_from_script else "Call it in a script."
        raise AuthError(
            f"{call.tool.name} may not be called "
            f"{'by a script' if call.is_from_script else 'directly'}.",
            code="E2007",
            suggestion=Suggestion("use_different_tool", fix),
        )
    return (yield call)


def environment_scopes(settings: SecuritySettings) -> frozenset[str]:
    """Return the scopes of the token in TOOLI_TOKEN_FILE; none if it is missing or not valid."""
    path = os.environ.get("TOOLI_TOKEN_FILE")
    if not path:
        return frozenset()
    from tooli.policy.token_verifier import read_token_file, shared_verifier

    try:
        verifier = shared_verifier(settings)
        token, _ = read_token_file(path)
        return frozenset() if verifier is None else verifier.identify(token).scopes
    except ToolError:  # a call reports it
        return frozenset()


def authorize(call: Call) -> StageRun:
    """Reject a caller that does not have the scopes of the command.

    Under the policy `standard` a missing scope is a warning. Under `strict` it is an error. A
    command without `auth=` is an error under `strict` as well.
    """
    error = scope_error(call)
    if error is not None:
        raise error
    missing = _missing_scopes(call)
    if missing and call.policy == "standard":
        call.warnings.append(f"the caller lacks the scope {', '.join(missing)}")
    return (yield call)


def scope_error(call: Call) -> AuthError | None:
    """Return the error if the caller may not run the command, whatever its arguments are."""
    if call.policy != "strict":
        return None
    if call.tool.guard.scopes is None:
        return AuthError(
            f"{call.tool.name} does not declare its scopes, which the policy strict requires.",
            code="E2002",
            suggestion=Suggestion(
                "ask_human",
                "Declare auth=[…] for the command, or auth=[] to allow every caller.",
            ),
        )
    missing = _missing_scopes(call)
    if not missing:
        return None
    return AuthError(
        f"{call.tool.name} needs the scope {', '.join(missing)}.",
        code="E2001",
        suggestion=Suggestion("ask_human", "Ask for a token with this scope."),
        details={"missing_scopes": missing},
    )


def _missing_scopes(call: Call) -> list[str]:
    return sorted(set(call.tool.guard.scopes or ()) - call.caller.scopes)
