"""The security policy that configuration asks for, on doors that have no command line."""

from __future__ import annotations

import os

from tooli.config.places import find

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any


def tighten(house: Any) -> None:
    """Hold an app to the strictest policy that anybody asks for; looked up once for each app.

    There is nobody to tell about a file that cannot be understood: it is taken at its strictest.
    """
    if house.governed:
        return
    house.governed = True
    if not os.environ.get("TOOLI_SECURITY_POLICY") and not find(os.environ):
        return
    from tooli.config.layers import Word, settle

    own = Word(house.declared, "default", "the app's own")
    settings = settle(house.name, defaults={"security_policy": own})
    unclear = any([one.key in (None, "security_policy") for one in settings.faults])
    house.policy = "strict" if unclear else settings.get("security_policy")
    house.prepared.clear()
