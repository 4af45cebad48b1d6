"""Run a program until it parses its command line, and describe its parser as JSON.

    script ──▶ import hook patches click, typer, cyclopts, …; argparse, optparse and
               getopt are patched
           ──▶ the program calls its parser ──▶ describe ──▶ JSON on stdout ──▶ the process exits

The process ends inside the call of the parser, so that nothing of the program runs afterwards. What
the program prints to stdout is discarded.
"""

from __future__ import annotations

import json
import os
import sys
from _thread import allocate_lock

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

MAX_PREPARSERS = 8
"""How many parsers without help may run before the parser that is described."""


class Capture:
    """Finds the parser of a program."""

    def __init__(self, prog: str, output: int) -> None:
        self.prog = prog
        self._output = output
        self._pid = os.getpid()
        self._preparsers: list[Any] = []
        self._lock = allocate_lock()  # the first thread that finds something describes it
        self._parsers: list[Any] = []  # all parsers of argparse, in the order of their creation

    # -------------------------------------------------------------- the end

    def finish(self, kind: str, parser: Any) -> None:
        """Describe a parser, write the description and end the process."""
        if os.getpid() != self._pid:  # the program has forked: this is the copy
            os._exit(0)
        self._lock.acquire()
        try:
            description = describe(kind, parser, self.prog)
        except BaseException as failure:
            description = {"error": f"its {kind} parser cannot be read: {name_failure(failure)}"}
        self.write({"kind": kind, **description})

    def give_up(self, reason: str) -> None:
        """Describe the largest parser that was seen, or write why there is none."""
        seen = self._preparsers or [p for p in self._parsers if not is_subparser(p, self._parsers)]
        if seen:
            self.finish("argparse", max(seen, key=lambda parser: len(parser._actions)))
        self.fail(reason)

    def fail(self, reason: str) -> None:
        """Write why there is no description, and end the process."""
        self._lock.acquire()
        self.write({"error": reason})

    def write(self, description: Any) -> None:
        """Write the description and end the process."""
        description.setdefault("files", loaded_files())
        description.setdefault("home", os.path.expanduser("~"))
        description.setdefault("folders", [entry for entry in sys.path if os.path.isdir(entry)])
        data = json.dumps(description, default=str).encode("utf-8", "replace")
        while data:
            data = data[os.write(self._output, data) :]
        os._exit(0)

    # -------------------------------------------------------------- patches

    def install(self) -> None:
        """Patch argparse and optparse now, and other libraries when the program imports them."""
        self._patch_argparse()
        self._patch_optparse()
        self._patch_getopt()
        sys.meta_path.insert(0, _ImportHook(self._patches()))

    def _patch_argparse(self) -> None:
        import argparse

        parser_class: Any = argparse.ArgumentParser
        real_init, real_known = parser_class.__init__, parser_class.parse_known_args
        capture = self

        def init(parser: Any, *args: Any, **kwargs: Any) -> None:
            real_init(parser, *args, **kwargs)
            capture._parsers.append(parser)

        def parse_known_args(parser: Any, *args: Any, **kwargs: Any) -> Any:
            if not parser.add_help and len(capture._preparsers) < MAX_PREPARSERS:
                capture._preparsers.append(parser)
                return real_known(parser, *args, **kwargs)
            return capture.finish("argparse", parser)

        def parse(parser: Any, *args: Any, **kwargs: Any) -> None:
            capture.finish("argparse", parser)

        parser_class.__init__ = init
        parser_class.parse_known_args = parse_known_args
        parser_class.parse_args = parse
        for name in ("parse_intermixed_args", "parse_known_intermixed_args"):
            setattr(parser_class, name, parse)

    def _patch_optparse(self) -> None:
        import optparse

        parser_class: Any = optparse.OptionParser
        parser_class.parse_args = self._stop("optparse")

    def _patch_getopt(self) -> None:
        import getopt

        def parse(args: Any, shortopts: Any, longopts: Any = ()) -> None:
            self.finish("getopt", (shortopts, longopts, False))

        def parse_gnu(args: Any, shortopts: Any, longopts: Any = ()) -> None:
            self.finish("getopt", (shortopts, longopts, True))

        module: Any = getopt
        module.getopt, module.gnu_getopt = parse, parse_gnu

    def _patches(self) -> dict[str, Callable[[Any], None]]:
        """Return what to do with a module after its import."""

        def patch_click(module: Any) -> None:
            for name in ("BaseCommand", "Command"):
                found = getattr(module, name, None)
                if found is not None:
                    found.main = found.make_context = self._stop("click")

        def patch_class(class_name: str, kind: str) -> Callable[[Any], None]:
            def patch(module: Any) -> None:
                found = getattr(module, class_name, None)
                if found is not None:
                    found.__call__ = self._stop(kind)

            return patch

        def patch_fire(module: Any) -> None:
            def refuse(*args: Any, **kwargs: Any) -> None:
                self.fail("it is made with Fire, which does not declare parameters")

            module.Fire = refuse

        return {
            "click.core": patch_click,
            "typer._click.core": patch_click,
            "asyncclick.core": patch_click,
            "typer.main": patch_class("Typer", "typer"),
            "tooli.app": patch_class("Tooli", "typer"),
            "cyclopts.core": patch_class("App", "cyclopts"),
            "fire.core": patch_fire,
        }

    def _stop(self, kind: str) -> Callable[..., None]:
        def stop(parser: Any, *args: Any, **kwargs: Any) -> None:
            self.finish(kind, parser)

        return stop


class _ImportHook:
    """Patches modules when they are imported."""

    def __init__(self, patches: dict[str, Callable[[Any], None]]) -> None:
        self._patches = patches

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return the spec of a module to patch; None for other modules."""
        patch = self._patches.pop(name, None)
        if patch is None:
            return None
        from importlib.util import find_spec

        spec = find_spec(name)
        loader: Any = None if spec is None else spec.loader
        if loader is None:
            return None
        execute = loader.exec_module

        def exec_module(module: Any) -> None:
            execute(module)
            patch(module)

        loader.exec_module = exec_module
        return spec


# ------------------------------------------------------------------ description


def describe(kind: str, parser: Any, prog: str) -> dict[str, Any]:
    """Return the description of a parser."""
    if kind == "argparse":
        from .argparse_parser import describe_argparse

        return describe_argparse(parser, prog)
    if kind == "optparse":
        from .argparse_parser import describe_optparse

        return describe_optparse(parser, prog)
    if kind == "getopt":
        from .argparse_parser import describe_getopt

        shortopts, longopts, is_gnu = parser
        return describe_getopt(shortopts, longopts, is_gnu, prog)
    if kind == "cyclopts":
        from .cyclopts_parser import describe_cyclopts

        return describe_cyclopts(parser, prog)
    from .click_parser import describe_click

    if kind == "typer":
        from importlib import import_module

        parser = import_module("typer.main").get_command(parser)
    return describe_click(parser, prog)


def is_subparser(parser: Any, parsers: list[Any]) -> bool:
    """True if a parser of argparse belongs to another one, or is a parent of another one."""
    from .argparse_parser import subparser_actions

    for other in parsers:
        for action in subparser_actions(other):
            if parser in action.choices.values():
                return True
    return not parser.add_help


def name_failure(failure: BaseException) -> str:
    """Return the class and the text of an exception."""
    return f"{type(failure).__name__}: {str(failure)[:300]}"


def loaded_files() -> list[str]:
    """Return the files of all modules that do not belong to the standard library."""
    standard = os.path.dirname(os.path.realpath(os.__file__)) + os.sep
    own = os.path.dirname(os.path.abspath(__file__)) + os.sep
    found: list[str] = []
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if isinstance(path, str) and not path.startswith(own):
            real = os.path.realpath(path)
            if "-packages" in real or not real.startswith(standard):
                found.append(os.path.abspath(path))
    return sorted(set(found))


# ------------------------------------------------------------------ start


def run_program(request: Any) -> None:
    """Run a program as its user would: a script, an entry point, or an object of a module."""
    if request["kind"] == "script":
        import runpy

        path = request["path"]
        sys.path.insert(0, os.path.dirname(path))
        runpy.run_path(path, run_name="__main__")
        return
    sys.path[:0] = [entry for entry in request.get("sys_path", ()) if entry not in sys.path]
    if request["kind"] == "entry_point":
        from importlib.metadata import distributions

        scripts = [
            entry
            for distribution in distributions()
            for entry in distribution.entry_points
            if entry.group == "console_scripts" and entry.name == request["name"]
        ]
        if not scripts:
            raise LookupError(f"no installed package has the console script {request['name']!r}")
        target: Any = scripts[0].load()
    else:
        from importlib import import_module

        target = import_module(request["module"])
        for part in request["attribute"].split("."):
            target = getattr(target, part)
    target()


def wait_for_threads() -> None:
    """Wait for the threads that the program has started, as Python does at its end."""
    import threading

    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()


def main() -> None:
    """Run the program that the first argument describes, and write its description."""
    request = json.loads(sys.argv[1])
    output = os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    sys.argv = [request.get("path") or request["prog"], *request["arguments"]]
    sys.dont_write_bytecode = True
    capture = Capture(request["prog"], output)
    capture.install()
    reason = "it ended without reading its command line"
    try:
        run_program(request)
        wait_for_threads()
    except SystemExit as end:
        reason = f"it exited ({end.code}) before it read its command line"
    except BaseException as failure:
        reason = f"it failed before it read its command line: {name_failure(failure)}"
    capture.give_up(reason)
