"""Ask before breaking things."""

from __future__ import annotations

from tooli.errors import ApprovalRequired, InputError, Suggestion

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator

    from tooli.call.model import Call, Outcome


def require_approval(call: Call) -> Generator[Call, Outcome, Outcome]:
    """Destructive tools need `--yes`; guarded ones need a human's own yes.

    The stage does not ask. It fails with a question, and a surface that has a
    human may ask and send the call again, approved.
    """
    tool = call.tool
    if call.approved or call.options.dry_run:
        return (yield call)
    if tool.guard.approval:
        raise ApprovalRequired(
            f"{tool.name} needs a human's approval.",
            suggestion=Suggestion("ask_human", "Ask a human to run it at a terminal."),
        )
    if tool.behavior.destructive and not call.options.yes and call.policy != "off":
        raise needs_yes(call)
    return (yield call)


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
