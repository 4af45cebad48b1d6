"""Settings: flags, environment variables and files, merged into one value per setting.

    flag ▸ TOOLI_* ▸ .env ▸ .tooli.yaml, pyproject.toml ▸ user ▸ system ▸ default

The highest layer that sets a setting wins. A security setting cannot be loosened by a higher layer:
its `merge_rule` combines the values of all layers, or the lowest layer that sets it wins. The files
of a project are not trusted: `SettingDefinition.trust` says what they can set.

For speed, `load_security_settings` imports `config.applied_settings` only if there are settings.
"""

from __future__ import annotations

import os

from tooli.config.config_files import find_config_files, ignored_home_variables
from tooli.core import ProcessLock

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core import AppState


_loading_lock = ProcessLock()


def load_security_settings(state: AppState) -> None:
    """Apply the strictest security settings of all layers to an app, once per app.

    Other threads wait until the settings have been applied. If they cannot be read, every call is
    rejected (E1011).
    """
    if state.security_settings_loaded:
        return
    with _loading_lock.current:
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
