"""Questions to a person at the terminal: confirm a call, or type a missing secret."""

from __future__ import annotations

from tooli.cli.payload import secret_params
from tooli.cli.process import write_stderr
from tooli.core.call import Failed
from tooli.errors import ApprovalRequired, InputError
from tooli.pipeline.present import present_text
from tooli.pipeline.terminal_prompts import (
    ask_hidden,
    ask_line,
    ask_yes_no,
    has_terminal,
    reset_terminal,
)
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core.call import Call
    from tooli.errors import ToolError

MISSING_ARGUMENT = "E1002"


def _not_run_error(call: Call, error: ToolError) -> ToolError:
    """Return the error for a call that the person at the terminal declined: one line."""
    message = f"{call.tool.name} was not run."
    if error.code == "E2101":
        return ApprovalRequired(message, code="E2103")
    return InputError(message, code=error.code, is_retryable=False)


class Confirm:
    """Asks a person for the approval or the secrets that a call needs."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def complete(self, failed: Failed) -> Call | Failed:
        """Return the call after a person has approved it or typed the missing secrets.

        Return the failure if nobody can be asked, if the person declined, or if the function has
        started. Its effects would be repeated, and its error is no question of tooli.
        """
        call, error = self._call, failed.error
        if failed.has_started:
            return failed
        if error.code != MISSING_ARGUMENT:
            if error.approval_text is None:
                return failed
            if self._approve(error):
                arguments = {**call.arguments, **self._read_secrets()}
                return call.replace(
                    arguments=arguments, approved=True, approved_parts=error.approval_parts
                )
            return Failed(_not_run_error(call, error))
        if not call.options.interactive or call.options.no_input:
            return failed
        missing = self._missing_secrets(failed)
        if not missing or not has_terminal():
            return failed
        secrets = {name: ask_hidden(f"{name} (not shown): ") for name in missing}
        if not all(secrets.values()):
            return failed
        return call.replace(arguments={**call.arguments, **secrets})

    def _approve(self, error: ToolError) -> bool:
        """Show the call and ask for approval. For a dangerous call, the person types its name."""
        call = self._call
        reset_terminal()
        # The description contains no secrets, and redaction could hide a part of the call.
        reason = f"{present_text(error.message, call)}\n" if error.code == "E2101" else ""
        write_stderr(f"{reason}{error.approval_text}")
        name = call.tool.name
        if call.tool.guard.danger not in ("high", "critical"):
            return ask_yes_no("Run it?")
        try:
            return ask_line(f"Type {name} to run it: ").strip() == name
        except EOFError:
            return False

    def _read_secrets(self) -> dict[str, object]:
        """Return the secrets that were read from stdin, which can be read only once."""
        return {
            secret.field: secret
            for secret in self._call.secrets or ()
            if getattr(secret, "is_stdin", False) and secret.is_loaded
        }

    def _missing_secrets(self, failed: Failed) -> list[str]:
        """Return the missing parameters, if all of them are secrets and nothing else is wrong."""
        tool = self._call.tool
        if not tool.has_handles:
            return []
        details = (failed.error.details or {}).get("errors")
        errors = details if is_list(details) else ()
        names = [
            error["field"]
            for error in errors
            if is_object(error)
            and error.get("code") == MISSING_ARGUMENT
            and isinstance(error.get("field"), str)
        ]
        has_only_secrets = len(names) == len(errors) and secret_params(tool).issuperset(names)
        return names if has_only_secrets else []
