"""The skill that an installed app carries inside its own package."""

from __future__ import annotations

import os

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

FOLDER = "_skill"
"""Where it stands, in the package of the module that makes the app."""


def package_of(module: str) -> str:
    """The outermost package of a module."""
    return module.partition(".")[0]


def packaged_skill(app: Any) -> dict[str, str] | None:
    """The files of the skill that was built with the app; None where there is none."""
    made_in: dict[str, Any] = app._house.made_in
    package = package_of(str(made_in.get("__package__") or ""))
    if not package:
        return None
    depth = str(made_in["__package__"]).count(".") + 1
    home = str(made_in.get("__file__") or "")
    for _ in range(depth):
        home = os.path.dirname(home)
    folder = os.path.join(home, FOLDER)
    files: dict[str, str] = {}
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            with open(path, encoding="utf-8", newline="") as text:
                files[os.path.relpath(path, folder).replace(os.sep, "/")] = text.read()
    return dict(sorted(files.items(), key=lambda item: (item[0] != "SKILL.md", item[0]))) or None
