"""What a running call reports to its caller: artifacts, and progress for a person.

ctx.artifact ──┬▶ meta.artifacts of the answer
               └▶ the peer of the call, or a line on stderr for a person
ctx.report ─────▶ lines on stderr, if a person is at the terminal and the call has no peer
"""

from __future__ import annotations

import sys

from tooli.core.event_peer import compute_percent
from tooli.core.peer import Artifact
from tooli.core.tool import cut_text
from tooli.pipeline.present import present_text

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core.call import Call

MAX_ARTIFACTS = 100
"""Maximum number of artifacts in `meta.artifacts`."""
MAX_NAME_CHARS = 200
MAX_URI_CHARS = 2000


def report_artifact(call: Call, name: str, target: object, mime_type: str | None) -> None:
    """Add an artifact to `meta.artifacts`, and send it to the client."""
    artifact = Artifact(
        cut_text(present_text(str(name), call), MAX_NAME_CHARS),
        present_uri(target, call),
        None if mime_type is None else cut_text(present_text(mime_type, call), MAX_NAME_CHARS),
    )
    _keep_artifact(call, artifact)
    options = call.options
    if call.peer is not None and call.peer.receives_events:
        call.peer.artifact(artifact)
    elif call.caller.owns_process and not (options.is_machine_mode or options.quiet):
        print(f"{artifact.name}: {artifact.uri}", file=sys.stderr, flush=True)


def _keep_artifact(call: Call, artifact: Artifact) -> None:
    if call.meta is None:
        return
    kept = call.meta.get("artifacts", [])
    if len(kept) < MAX_ARTIFACTS:
        # a new list: in a worker process, the assignment sends it to the caller
        call.meta["artifacts"] = [*kept, artifact.to_dict()]
    else:
        warning = f"meta.artifacts has the first {MAX_ARTIFACTS} artifacts only"
        if warning not in call.warnings:
            call.warnings.append(warning)


def present_uri(target: object, call: Call) -> str:
    """Return the URI of an artifact, redacted. A path becomes a `file:` URI."""
    text = str(target)
    if isinstance(target, str) and is_uri(text):
        return cut_text(present_text(text, call), MAX_URI_CHARS)
    from pathlib import Path  # after the check, because a URI needs no path

    path = Path(text).absolute()
    shown = present_text(str(path), call)
    if shown != str(path):
        return cut_text(shown, MAX_URI_CHARS)  # with percent-encoding, it would not be redacted
    return cut_text(path.as_uri(), MAX_URI_CHARS)


def is_uri(text: str) -> bool:
    """True if a text begins with a scheme. One letter is a drive of Windows."""
    scheme, colon, _ = text.partition(":")
    is_scheme = scheme.isascii() and scheme[:1].isalpha() and len(scheme) > 1
    return bool(colon) and is_scheme and scheme.translate(_SCHEME_SIGNS).isalnum()


_SCHEME_SIGNS = str.maketrans("", "", "+-.")


class ProgressLines:
    """Shows the progress of a call to a person, as lines on stderr.

    A line is printed when the message changes, and for each tenth of the work.
    """

    def __init__(self) -> None:
        self._shown: tuple[object, ...] | None = None

    def show(self, done: float, total: float | None, message: str) -> None:
        """Print a line if it differs enough from the last one."""
        percent = compute_percent(done, total)
        step = None if percent is None else percent // 10
        if (message, step) == self._shown or not (message or percent is not None):
            return
        self._shown = (message, step)
        amount = "" if percent is None else f"{int(percent):3d}%"
        print(f"{amount}  {message}".strip(), file=sys.stderr, flush=True)
