"""Modules of lazy commands are imported without a lock that they may need."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from tooli import Tooli
from tooli.core import typer_lock
from tooli.providers.lazy_commands import load_lazy_commands

MODULE = """
import {name}_events
{name}_events.on_import()


def run(x: int = 1) -> int:
    return x
"""


class LazyModule:
    """A module that checks at its import whether another thread can use Typer."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.found: list[bool] = []

    def on_import(self) -> None:
        thread = threading.Thread(target=self._take_lock, daemon=True)
        thread.start()
        thread.join(20)

    def _take_lock(self) -> None:
        is_free = typer_lock.current.acquire(timeout=5)
        self.found.append(is_free)
        if is_free:
            typer_lock.current.release()


@pytest.fixture
def lazy_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LazyModule:
    module = LazyModule("lazy_module_with_app")
    (tmp_path / f"{module.name}.py").write_text(MODULE.format(name=module.name))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(sys.modules, f"{module.name}_events", module)
    monkeypatch.delitem(sys.modules, module.name, raising=False)
    return module


@pytest.mark.parametrize("is_nested", [False, True])
@pytest.mark.parametrize("use", ["attribute", "call"])
def test_lock_is_not_held_during_the_import(
    lazy_module: LazyModule, use: str, is_nested: bool
) -> None:
    """The module may use the app, and another thread may import it at the same time."""
    app = Tooli("shop")

    @app.callback()
    def check(verbose: bool = False) -> None: ...

    @app.command()
    def quick() -> str:
        return "done"

    target = Tooli("group") if is_nested else app
    target.lazy_command(f"{lazy_module.name}:run", name="slow")
    if is_nested:
        app.add_typer(target, name="group")
    if use == "attribute":
        assert len(app.registered_commands) == 2 - is_nested
    else:
        assert app.call("quick").result == "done"
    assert lazy_module.found == [True]
    assert app.call("group.slow" if is_nested else "slow", x=3).result == 3


def test_module_that_cannot_be_imported_is_reported_by_its_command() -> None:
    app = Tooli("shop")
    app.lazy_command("no_such_module:run", name="broken")
    app.command("quick")(lambda: 1)
    load_lazy_commands(app._state)
    assert app.call("quick").result == 1
    with pytest.raises(Exception, match="cannot be loaded"):
        app.call("broken").unwrap()


MODULE_WITH_APP = """
import {name}_events as events

events.is_importing.set()
events.other_thread_waits.wait(1)
answer = events.use_app()


def run(x: int = 1) -> int:
    return x
"""


class ModuleWithApp:
    """A module that uses the app at its import, while another thread calls the app."""

    def __init__(self, app: Tooli, use: str) -> None:
        self.app, self.use = app, use
        self.is_importing = threading.Event()
        self.other_thread_waits = threading.Event()  # never set: a wait that gives it time

    def use_app(self) -> object:
        if self.use == "attribute":
            return len(self.app.registered_commands)
        return self.app.call("quick").result


@pytest.mark.parametrize("use", ["attribute", "call"])
@pytest.mark.parametrize("is_nested", [False, True])
def test_module_that_uses_the_app_while_another_thread_calls_it(
    use: str, is_nested: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits forever, and the command works when its module has been imported."""
    name = f"lazy_module_that_uses_the_app_{use}_{is_nested}"
    app = Tooli("shop")

    @app.callback()
    def check(verbose: bool = False) -> None: ...

    @app.command()
    def quick() -> str:
        return "done"

    group = Tooli("group") if is_nested else app
    group.lazy_command(f"{name}:run", name="slow")
    if is_nested:
        app.add_typer(group, name="group")
    path = "group.slow" if is_nested else "slow"
    events = ModuleWithApp(app, use)
    (tmp_path / f"{name}.py").write_text(MODULE_WITH_APP.format(name=name))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(sys.modules, f"{name}_events", events)
    answers: list[object] = []

    def call() -> None:
        events.is_importing.wait(20)
        answers.append(app.call("quick").result)
        answers.append(app.call(path, x=3).result)

    threads = [threading.Thread(target=__import__, args=(name,), daemon=True)]
    threads.append(threading.Thread(target=call, daemon=True))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert answers == ["done", 3]
    assert app.call(path, x=4).result == 4
    monkeypatch.delitem(sys.modules, name)
