"""Settings: flags, environment variables and files, merged into one value per setting.

    flag ▸ TOOLI_* ▸ .env ▸ .tooli.yaml, pyproject.toml ▸ user ▸ system ▸ default

The highest layer that sets a setting wins. A security setting cannot be loosened by a higher layer:
its `merge_rule` combines the values of all layers, or the lowest layer that sets it wins. The files
of a project are not trusted: `SettingDefinition.trust` says what they can set.

For speed, `load_security_settings` imports `config.applied_settings` only if there are settings.
"""

from __future__ import annotations

import os
from _thread import RLock  # `threading` takes a millisecond to load

from tooli.config.config_files import find_config_files, ignored_home_variables

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core import AppState


_loading_lock = RLock()


def _replace_lock() -> None:
    """Replace the lock in a forked process, where no thread is left that could release it."""
    global _loading_lock
    _loading_lock = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_replace_lock)


def load_security_settings(state: AppState) -> None:
    """Apply the strictest security settings of all layers to an app, once per app.

    Other threads wait until the settings have been applied. If they cannot be read, every call is
    rejected (E1011).
    """
    if state.security_settings_loaded:
        return
    with _loading_lock:
        if state.security_settings_loaded:
            return
        if _may_have_settings():
            from tooli.config.applied_settings import resolve_security_settings

            resolve_security_settings(state)
        state.security_settings_loaded = True


def _may_have_settings() -> bool:
    try:
        return (
            any([name[:6] == "TOOLI_" for name in os.environ])
            or bool(find_config_files(os.environ))
            or bool(ignored_home_variables(os.environ))
        )
    except Exception:
        return True  # `resolve_security_settings` reports it
