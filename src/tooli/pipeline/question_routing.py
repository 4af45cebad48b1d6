"""Answer the questions in the code of commands, in processes that run many calls."""

from __future__ import annotations

import builtins
import sys
from _thread import allocate_lock

from tooli.core.current_call import current_call
from tooli.pipeline.prompt_functions import (
    PROMPT_FUNCTIONS,
    find_getpass,
    read_question,
    replace_in_module,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

_lock = allocate_lock()
_routes: list[_Route] = []  # the route in use
_users = 0  # how many callers of `route_questions` have not ended it


def route_questions() -> Callable[[], None]:
    """Let the client of a call answer its questions; return a function that ends this.

    The stdin of a server has no answers: it is the connection to the client, or the terminal on
    which the server was started. Outside of calls, the functions work as always.
    """
    global _users
    with _lock:
        _users += 1
        if not _routes:
            _routes.append(_Route())
    has_ended = False

    def end() -> None:
        nonlocal has_ended
        global _users
        with _lock:
            _users -= not has_ended
            has_ended = True
            if _users == 0 and _routes:
                _routes.pop().restore()

    return end


class _Route:
    """The replaced functions, in all modules that are loaded, and in `getpass` when it is."""

    def __init__(self) -> None:
        self._replaced: list[tuple[Any, str, Any]] = [(builtins, "input", builtins.input)]
        builtins.input = _routed("input", builtins.input)
        finder: Any = self
        self._finder = finder
        sys.meta_path.insert(0, finder)
        for name in PROMPT_FUNCTIONS:
            if name in sys.modules:
                self._guard(sys.modules[name])

    def _guard(self, module: ModuleType) -> None:
        self._replaced.extend(replace_in_module(module, _routed))

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        """Find `getpass`, which the import system asks for as for any module."""
        return find_getpass(self._guard) if name == "getpass" else None

    def restore(self) -> None:
        """Put the functions back."""
        for owner, name, original in reversed(self._replaced):
            setattr(owner, name, original)
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)


def _routed(function: str, original: Any) -> Callable[..., Any]:
    def ask(*args: Any, **kwargs: Any) -> Any:
        call = current_call.get()
        if call is not None and not call.caller.owns_process:
            from tooli.pipeline.call_questions import find_answer

            answer = find_answer(call, read_question(function, args))
            if answer is not None:
                return answer
        return sys.stdin.read(1) if original is None else original(*args, **kwargs)

    return ask
