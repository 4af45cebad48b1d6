"""An app that deletes files, for the tests of plans and of the audit log."""

import os
import time
from pathlib import Path

from tooli import Context, StdinOr, Tooli, dry_run_support, record_dry_action
from tooli.annotations import Destructive

app = Tooli("shredder", version="1.0", security_policy=os.environ.get("POLICY", "standard"))


@app.command(annotations=Destructive, auth=[])
@dry_run_support
def delete(files: list[Path]) -> list[str]:
    """Delete files, with support for dry runs."""
    for path in files:
        if not record_dry_action("delete", path, details={"size": path.stat().st_size}, state=path):
            path.unlink()
    return [str(path) for path in files]


@app.command(annotations=Destructive, auth=[])
def wipe(files: list[Path]) -> list[str]:
    """Delete files, without support for dry runs."""
    for path in files:
        path.unlink()
    return [str(path) for path in files]


@app.command(annotations=Destructive, auth=[])
def hang(ctx: Context) -> None:
    """Wait after the start."""
    ctx.log("ready", level=0)
    time.sleep(600)


@app.command()
@dry_run_support
def load(names: StdinOr[Path]) -> list[str]:
    """Create a file for each line."""
    found = [line.strip() for line in names.open()]
    for name in found:
        if not record_dry_action("make", name):
            Path(name).touch()
    return found


@app.command()
def write_lines(log: str, count: int, name: str) -> int:
    """Append lines to an audit log."""
    from tooli.storage.audit_log import append_line

    for number in range(count):
        append_line(log, {"event": "test", "name": name, "number": number})
    return count


if __name__ == "__main__":
    app()
