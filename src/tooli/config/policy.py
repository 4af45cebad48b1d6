"""The security policy that configuration asks for, on doors that have no command line."""

from __future__ import annotations

import os

from tooli.config.keys import KEYS
from tooli.config.places import find

_GUARDING = ("token_key", "token_issuer", "token_audience", "tokens", "rate_limit")
_DECIDING = ("token_key", "tokens")
"""Settings that say together who is believed: what the lower layer says of any, it says of all."""

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.config.layers import Settings


def rules_of(settings: Settings) -> dict[str, Any]:
    """The security settings that somebody made, beside the policy; and where to record."""
    from tooli.config.layers import LAYERS

    said = settings.said()
    rules = {
        name: word.value
        for name, word in said.items()
        if KEYS[name].secures and name != "security_policy"
    }
    layers = {name: LAYERS.index(said[name].layer) for name in _DECIDING if name in said}
    for name, layer in layers.items():
        if layer < max(layers.values()):
            del rules[name]  # or a caller would add a way in that the machine's owner did not mean
    for fault in settings.faults:
        if fault.key in _GUARDING:
            rules[fault.key] = ""  # nothing that works: it was meant to guard, and is not missed
    record = os.environ.get("TOOLI_RECORD_CAPABILITIES")
    return {**rules, "record_capabilities": record} if record else rules


def tighten(house: Any) -> None:
    """Hold an app to the strictest policy that anybody asks for; looked up once for each app.

    There is nobody to tell about a file that cannot be understood: it is taken at its strictest.
    """
    if house.governed:
        return
    house.governed = True
    if not any([name[:6] == "TOOLI_" for name in os.environ]) and not find(os.environ):
        return
    from tooli.config.layers import Word, settle

    own = Word(house.declared, "default", "the app's own")
    settings = settle(house.name, defaults={"security_policy": own})
    unclear = any([one.key in (None, "security_policy") for one in settings.faults])
    house.policy = "strict" if unclear else settings.get("security_policy")
    entered = house.rules.get("work_dir")  # by a command line: from there its name is another
    house.rules = rules_of(settings)
    if entered is not None and "work_dir" in house.rules:
        house.rules["work_dir"] = entered
    if any([one.key in (None, "isolation") for one in settings.faults]):
        house.rules["isolation"] = "required"
    if settings.get("timeout") is not None:
        house.rules["timeout"] = settings.get("timeout")  # what a line's own options say elsewhere
    house.prepared.clear()
