"""The settings that define which tokens a server accepts, and how clients get one.

`app.asgi(…)` takes most of them as keywords. The settings of the operator are merged with these.
"""

from __future__ import annotations

from tooli.config.setting_definitions import SETTINGS, InvalidSetting, RawSetting
from tooli.errors import DefinitionError

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tooli.core import SecuritySettings

TOKEN_SETTINGS = ("token_key", "tokens", "token_jwks_url", "introspection_url")
"""Settings that define which tokens are accepted.

Without them, a `token_issuer` that is a URL is enough: its metadata names its keys.
"""

OAUTH_SETTINGS = (
    *("token_issuer", "token_audience", "token_jwks_url", "token_scopes", "resource_url"),
    *("introspection_url", "introspection_client", "introspection_secret"),
)
"""Settings of an OAuth resource server. They are keywords of `app.asgi(…)` as well."""


def is_url(issuer: object) -> bool:
    """True if an issuer is the URL of an authorization server."""
    return isinstance(issuer, str) and issuer.startswith(("https://", "http://"))


def verifies_tokens(settings: SecuritySettings) -> bool:
    """True if the settings define which tokens are accepted."""
    return has_discovered_keys(settings) or any([name in settings for name in TOKEN_SETTINGS])


def has_discovered_keys(settings: SecuritySettings) -> bool:
    """True if the keys that verify tokens are found in the metadata of the issuer."""
    return is_url(settings.get("token_issuer")) and not any(
        [name in settings for name in TOKEN_SETTINGS]
    )


def with_keywords(
    settings: SecuritySettings, keywords: Mapping[str, str | None]
) -> SecuritySettings:
    """Return the settings of an app with those that `app.asgi(…)` got as keywords.

    Raises a DefinitionError if a keyword is invalid, or differs from the setting.
    """
    merged: SecuritySettings = {**settings}
    for name, text in keywords.items():
        if text is None:
            continue
        try:
            value = SETTINGS[name].convert(RawSetting(text, syntax="text"))
        except InvalidSetting as failure:
            raise DefinitionError(str(failure)) from None
        if merged.get(name, value) != value:
            variable = SETTINGS[name].variable
            raise DefinitionError(f"{name}= differs from the setting {name} ({variable})")
        merged[name] = value
    return merged
