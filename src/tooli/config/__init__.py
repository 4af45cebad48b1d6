"""Settings: flags, environment variables and files, merged into one value per setting.

    flag ▸ TOOLI_* ▸ .env ▸ .tooli.yaml, pyproject.toml ▸ user ▸ system ▸ default

The highest layer that sets a setting wins. A security setting cannot be loosened by a higher layer:
its `merge_rule` combines the values of all layers, or the lowest layer that sets it wins. The files
of a project are not trusted: `SettingDefinition.trust` says what they can set.

For speed, `load_security_settings` imports `config.layers` only if there are settings.
"""

from __future__ import annotations

import os

from tooli.config.config_files import find_config_files, ignored_home_variables

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core import AppState


def load_security_settings(state: AppState) -> None:
    """Apply the strictest security settings of all layers to an app, once per app."""
    if state.security_settings_loaded:
        return
    state.security_settings_loaded = True
    if (
        any([name[:6] == "TOOLI_" for name in os.environ])
        or find_config_files(os.environ)
        or ignored_home_variables(os.environ)
    ):
        from tooli.config.layers import resolve_security_settings

        resolve_security_settings(state)
