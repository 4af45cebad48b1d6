"""Build hooks that include the skill of an app in its wheel.

`hatch` and `setuptools` contain one hook each. Both write the files that `build_skill` returns.
"""

from __future__ import annotations

import os
import sys

from tooli.describe.agent_documents import build_skill_files
from tooli.describe.sections import collect_app_info
from tooli.errors import DefinitionError, ToolError
from tooli.install.managed_files import SKILL_FOLDER, top_level_package

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tooli.core.protocols import App


class SkillBuildError(Exception):
    """The skill cannot be built; the message says why."""


def build_skill(target: object, roots: Iterable[str]) -> dict[str, str]:
    """Return the text of each file of an app's skill, by its path in the wheel.

    The result is empty unless the app is defined with `skill_auto_generate=True`.

    Args:
        target: The app, as "package.module:app".
        roots: Folders to import the app from.
    """
    if not isinstance(target, str) or ":" not in target:
        raise SkillBuildError(f"app = {target!r}: must be 'package.module:app'")
    app = _load_app(target, roots)
    if not app._state.skill_auto_generate:
        return {}
    package = top_level_package(target.partition(":")[0])
    return {
        f"{package}/{SKILL_FOLDER}/{relative_path}": text
        for relative_path, text in build_skill_files(collect_app_info(app)).items()
    }


def _load_app(target: str, roots: Iterable[str]) -> App:
    # loads the app class, which only building a skill needs
    from tooli.sources.loader import load_app

    saved_path = list(sys.path)
    sys.path[:0] = [root for root in roots if os.path.isdir(root)]
    try:
        return load_app(target)
    except (ImportError, ToolError, DefinitionError) as failure:
        raise SkillBuildError(
            f"app = {target!r} cannot be loaded while building: {failure}. Add the "
            "packages that it imports to `requires` of [build-system]."
        ) from failure
    finally:
        sys.path[:] = saved_path


def write_files(files: Mapping[str, str]) -> None:
    """Write each text to the file at its path; create missing folders."""
    for path, text in files.items():
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
