"""The skill that an installed app carries inside its own package."""

from __future__ import annotations

import os

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

SKILL_FOLDER = "_skill"
"""Where it stands, in the package of the module that makes the app."""


def top_level_package(module: str) -> str:
    """The outermost package of a module."""
    return module.partition(".")[0]


def read_packaged_skill(app: Any) -> dict[str, str] | None:
    """The files of the skill that was built with the app; None where there is none."""
    made_in: dict[str, Any] = app._state.module_globals
    package = top_level_package(str(made_in.get("__package__") or ""))
    if not package:
        return None
    depth = str(made_in["__package__"]).count(".") + 1
    package_dir = str(made_in.get("__file__") or "")
    for _ in range(depth):
        package_dir = os.path.dirname(package_dir)
    folder = os.path.join(package_dir, SKILL_FOLDER)
    files: dict[str, str] = {}
    for directory, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(directory, name)
            with open(path, encoding="utf-8", newline="") as text:
                files[os.path.relpath(path, folder).replace(os.sep, "/")] = text.read()
    return dict(sorted(files.items(), key=lambda item: (item[0] != "SKILL.md", item[0]))) or None
