"""Import the modules of lazy commands before a lock is taken.

The module may use the app, and so wait for the lock. If the thread that holds the lock imported the
module, and another thread did so already, both would wait forever.
"""

from __future__ import annotations

from tooli.errors import DefinitionError
from tooli.providers.app_levels import iter_levels

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core import AppState


def load_lazy_commands(state: AppState) -> None:
    """Import the functions of all lazy commands of an app and the apps below it."""
    for levels in iter_levels(state):
        for registration in list(levels[-1].commands):
            try:
                _ = registration.fn
            except DefinitionError:
                continue  # a call of the command reports it
