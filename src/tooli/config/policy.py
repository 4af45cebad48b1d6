"""The security settings that configuration asks for, on doors that have no command line."""

from __future__ import annotations

import os

from tooli.config.keys import KEYS
from tooli.config.places import find, started_in

_DECIDING = ("token_key", "tokens")
"""Settings that say together who is believed: what the lower layer says of any, it says of all."""

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.config.layers import Fault, Settings, Word


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
    if "work_dir" in rules:
        rules["work_dir"] = os.path.join(started_in(), os.path.expanduser(rules["work_dir"]))
    record = os.environ.get("TOOLI_RECORD_CAPABILITIES")
    return {**rules, "record_capabilities": record} if record else rules


def tighten(house: Any) -> None:
    """Hold an app to the strictest policy that anybody asks for; looked up once for each app.

    What is wrong with a setting becomes a rule, too: its `faults` refuse every call, and a
    server does not begin to serve. Nobody knows what was meant to be guarded.
    """
    if house.governed:
        return
    house.governed = True
    if not any([name[:6] == "TOOLI_" for name in os.environ]) and not find(os.environ):
        return
    from tooli.config.layers import Word, settle

    own = Word(house.declared, "default", "the app's own")
    settings = settle(house.name, defaults={"security_policy": own})
    house.policy = settings.get("security_policy")
    house.rules = rules_of(settings)
    if settings.get("timeout") is not None:
        house.rules["timeout"] = settings.get("timeout")  # what a line's own options say elsewhere
    faults = [*filter(_concerns_all, settings.faults)]
    if "work_dir" in house.rules and not os.path.isdir(house.rules["work_dir"]):
        faults.append(no_folder(settings.said()["work_dir"], "it is no folder"))
    if faults:
        house.rules["faults"] = faults
    house.prepared.clear()


def _concerns_all(fault: Fault) -> bool:
    """Whether a fault is one for every door, and not about what only a command line does."""
    return fault.key is None or fault.key == "timeout" or KEYS[fault.key].secures


def no_folder(word: Word, why: str | None) -> Fault:
    """The fault of a work_dir that nobody can work in."""
    from tooli.config.layers import Fault

    return Fault(word.origin, f"work_dir {word.value!r} cannot be used: {why}", "work_dir")
