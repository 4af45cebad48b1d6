"""What every build hook does: load the app, write its skill, say where it belongs."""

from __future__ import annotations

import os
import sys

from tooli.install.packaged import FOLDER, package_of

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


class NoSkill(Exception):  # noqa: N818  a build that cannot do what it was told
    """The build cannot write the skill, and says why."""


def built_skill(target: object, roots: Iterable[str]) -> dict[str, str]:
    """The files of an app's skill, by their places in the wheel; `roots` is where code stands.

    An app that does not say `skill_auto_generate=True` has none.
    """
    if not isinstance(target, str) or ":" not in target:
        raise NoSkill(f"app = {target!r}: say where the app is, as in 'package.module:app'")
    app = _load(target, roots)
    if not app._house.skill_auto_generate:
        return {}
    from tooli.views.portrait import portray
    from tooli.views.skill import skill_files

    package = package_of(target.partition(":")[0])
    return {
        f"{package}/{FOLDER}/{place}": text for place, text in skill_files(portray(app)).items()
    }


def _load(target: str, roots: Iterable[str]) -> Any:
    from tooli.errors import DefinitionError, ToolError
    from tooli.launcher import load

    kept = list(sys.path)
    sys.path[:0] = [root for root in roots if os.path.isdir(root)]
    try:
        return load(target)
    except (ImportError, ToolError, DefinitionError) as failure:
        raise NoSkill(
            f"app = {target!r} cannot be loaded while building: {failure}. What it imports has "
            "to be among the build requirements: [build-system] requires = […]."
        ) from failure
    finally:
        sys.path[:] = kept
