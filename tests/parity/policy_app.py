"""An app with a command for every rule of the policy table. Each command records that it ran.

As a script, it writes the name of the command that ran to the file `RUN_RECORD`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from tooli import Tooli
from tooli.annotations import Destructive
from tooli.testing import Case

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# For a new rule in tooli.policy.rules.RULES, add a command here and its cases below.
COMMANDS: dict[str, dict[str, Any]] = {
    "forbidden": {"danger_level": "forbidden", "auth": []},
    "auth": {},
    "scoped": {"auth": ["files:write"]},
    "approval": {"requires_approval": True, "auth": []},
    "both": {"requires_approval": True, "annotations": Destructive, "auth": []},
    "critical": {"danger_level": "critical", "auth": []},
    "human": {"human_in_the_loop": True, "auth": []},
    "wiping": {"human_in_the_loop": True, "annotations": Destructive, "auth": []},
    "delete": {"annotations": Destructive, "auth": []},
    "grave": {"annotations": Destructive, "danger_level": "high", "auth": []},
    "undeclared": {"capabilities": ["none"], "auth": []},
    "escapes": {"auth": []},
}
ESCAPES = "\x1b[31m\u202e"
YES = {"yes": True}
CASES: dict[str, list[Case]] = {
    "forbidden": [Case("forbidden"), Case("forbidden", {}, YES)],
    "auth": [Case("auth"), Case("auth", {}, YES)],
    "scope": [Case("scoped", {}), Case("scoped", {}, YES)],
    "approval": [Case("approval"), Case("approval", {}, YES), Case("both", {}, YES)],
    "critical": [Case("critical"), Case("critical", {}, YES)],
    "human": [Case("human"), Case("human", {}, YES), Case("wiping", {}, YES)],
    "destructive": [Case("delete"), Case("grave")],
    "confirmed": [Case("delete", {}, YES), Case("grave", {}, YES)],
    "undeclared": [Case("undeclared"), Case("undeclared", {}, YES)],
    "escapes": [Case("escapes"), Case("escapes", {}, YES)],
}
"""The calls that each rule applies to."""


def make_app(policy: str, record_run: Callable[[str], Any]) -> Tooli:
    """Return the app with a security policy. Each command calls `record_run` with its name."""
    app = Tooli("guarded", version="1.0", security_policy=policy)

    def make_command(name: str) -> Callable[[], str]:
        def run() -> str:
            if name == "undeclared":
                os.listdir(os.path.expanduser("~"))
            record_run(name)
            return name + ESCAPES if name == "escapes" else name

        return run

    for name, kwargs in COMMANDS.items():
        app.command(name, **kwargs)(make_command(name))
    return app


if __name__ == "__main__":
    record = Path(os.environ["RUN_RECORD"])
    make_app(os.environ["APP_POLICY"], lambda name: record.write_text(name))()
