"""Show the traceback of an unexpected error on stderr, for `-v`."""

from __future__ import annotations

from tooli.cli.process import write_stderr
from tooli.pipeline.failure import is_unexpected
from tooli.pipeline.present import Presented
from tooli.serving.error_log import format_traceback
from tooli.serving.server_request import ServerRequest, new_request_id

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.cli import Invocation
    from tooli.core.call import Call, Failed


def report_to(invocation: Invocation, outcome: Failed, call: Call) -> Call:
    """Write the traceback of an unexpected error to stderr; return the call with a request id.

    The answer contains the id as well. In text modes Typer shows the traceback, unless parts of it
    must be redacted.
    """
    error = outcome.error
    if not is_unexpected(error):
        return call
    cause = error.__cause__ or error
    request = ServerRequest("cli", new_request_id())
    request.is_id_shown = True
    call = call.replace(request=request)
    presented = Presented(outcome, call, invocation.milliseconds)
    if invocation.is_interactive_mode and presented.can_show_traceback:
        return call
    write_stderr(f"request_id={request.id}\n{format_traceback(cause, call)}")
    return call
