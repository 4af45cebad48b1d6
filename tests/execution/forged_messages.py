"""Send forged messages from a sandbox, each in its own call: `python forged_messages.py`.

Prints one JSON object with the result of each. A message is written to every descriptor of the
process, which include the one that the caller reads. Then the test checks that nothing outside was
touched, and nothing in the process of the app was changed.
"""

from __future__ import annotations

import json
import os
import pathlib
import pickle
import sys
import tempfile
import uuid
from typing import TYPE_CHECKING, Any

from tooli import SecretInput, Tooli
from tooli.execution.sandbox.sandbox_runner import detect_sandbox_support

if TYPE_CHECKING:
    from collections.abc import Callable

FORGERIES: dict[str, Callable[[str], list[bytes]]] = {}
CHECKED_CLASSES = (pathlib.PosixPath, pathlib.PurePosixPath, uuid.UUID, Tooli)
SECRET = "a secret that stays one"


def forgery(make: Callable[[str], list[bytes]]) -> Callable[[str], list[bytes]]:
    """Add a function to the table: it gets a path outside and returns frames."""
    FORGERIES[make.__name__] = make
    return make


# ------------------------------------------------------------------ code in pickles


class Bomb:
    """An object whose pickle creates a folder when it is loaded."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (self.path,)


def short(text: str) -> bytes:
    """Return a text in a pickle."""
    data = text.encode()
    if len(data) < 256:
        return b"\x8c" + bytes([len(data)]) + data
    return b"X" + len(data).to_bytes(4, "little") + data


def named(module: str, name: str) -> bytes:
    """Return a global in a pickle."""
    return short(module) + short(name) + b"\x93"


def set_on(cls: bytes, **values: bytes) -> bytes:
    """Return a BUILD opcode that sets attributes of a class (slot state)."""
    return cls + b"N}" + b"".join([short(n) + v + b"s" for n, v in values.items()]) + b"\x86b0"


def pickled(kind: str, data: bytes) -> list[bytes]:
    """Return two frames: one that contains a pickle, and one that is a pickle."""
    return [b"p" + pickle.dumps((kind, b"p" + data), 5), b"p" + data]


@forgery
def method_of_a_class(path: str) -> list[bytes]:
    """Replace a method of an accepted class."""
    changed = set_on(named("pathlib", "PosixPath"), exists=named("builtins", "complex"))
    return pickled("value", b"\x80\x04" + changed + b"N.")


@forgery
def source_of_a_record(path: str) -> list[bytes]:
    """Make a Record compile an __init__ from fields that are code."""
    code = f"a=__import__('os').mkdir({path!r})"
    path, step = named("pathlib", "PosixPath"), named("tooli.core.result_types", "NextStep")
    fields = {
        code: path,
        "__match_args__": short(code) + b"\x85",
        "_defaults": b"}",
        "_instance_count": b"Kc",
    }
    setting = set_on(path, __set__=named("builtins", "complex")) + set_on(step, **fields)
    return pickled("value", b"\x80\x04" + setting + step + b")R.")


@forgery
def function_in_a_value(path: str) -> list[bytes]:
    """A pickle that calls a function."""
    return pickled("value", pickle.dumps(Bomb(path)))


@forgery
def function_in_an_error(path: str) -> list[bytes]:
    """An exception that calls a function."""
    data = pickle.dumps(Bomb(path))
    return [
        *pickled("error", data),
        frame("error", ["pickled", {"!": ["bytes", "gAR9lC4="]}, None]),
    ]


# ------------------------------------------------------------------ invalid data


def frame(kind: Any, payload: Any) -> bytes:
    """Return a frame in the format of the sandbox."""
    return b"j" + json.dumps([kind, payload]).encode()


def packed(value: Any) -> dict[str, Any]:
    """Return a packed value."""
    from base64 import b64encode

    data = b"j" + json.dumps(value).encode()
    return {"!": ["bytes", b64encode(data).decode()]}


def data(kind: Any, *values: Any) -> Callable[[str], list[bytes]]:
    """Return messages of a kind with packed values."""
    return lambda _: [frame(kind, packed(value)) for value in values]


def plain(kind: Any, *values: Any) -> Callable[[str], list[bytes]]:
    """Return messages of a kind with plain values."""
    return lambda _: [frame(kind, value) for value in values]


FORGERIES.update(
    {
        "unknown_kind": data("value", {"!": ["builtins.eval", "1"]}),
        "kind_is_a_list": data("value", {"!": [["path"], "/"]}),
        "kind_without_parts": data("value", {"!": ["path"]}),
        "tag_is_not_a_list": data("value", {"!": "path"}),
        "tag_with_other_keys": data("value", {"!": ["path", "/"], "more": 1}),
        "part_of_wrong_type": data("value", {"!": ["image", "no bytes", "image/png"]}),
        "step_without_a_name": data(
            "value", {"!": ["step", "run", {"!": ["dict", [[1, 2]]]}, "because"]}
        ),
        "next_without_steps": data("value", {"!": ["next", 1, [{"command": "run"}]]}),
        "set_of_lists": data("value", {"!": ["set", [[1]]]}),
        "depth": lambda _: [b'j["value",' + b"[" * 100_000],
        "marshalled": lambda _: [b"m\xdb" + b"\xff" * 8],
        "not_a_pair": lambda _: [b"j[]", b"j5"],
        "unknown_message": plain("messages", 1),
        "another_secret": plain("secret", ["secret", "zzzzzzzzz"]),
        "invalid_progress": plain("progress", "far"),
        "message_kind_is_a_list": plain(["value"], 1),
        "value_that_is_not_packed": plain("value", 5),
        "invalid_error": plain("error", 5, ["X", 5, None]),
        "error_with_a_class": plain(
            "error", ["os.system", {"code": ["E1000"], "category": 1, "message": None}, None]
        ),
        "invalid_suggestion": plain(
            "error",
            [
                "X",
                {"code": "E1", "category": "input", "message": "m", "suggestion": {"fix": 1}},
                None,
            ],
        ),
        "violations_are_a_number": data("meta", {"violations": 7}),
        "violations_of_numbers": data("meta", {"violations": [1, 2]}),
        "record_of_numbers": data("meta", {"recorded": [1, 2]}),
        "invalid_meta": data("meta", 5),
        "invalid_text": plain("text", ["stdout", 5]),
        "too_many_items": plain("item", *range(100)),
        "endless": lambda _: [],
    }
)


# ------------------------------------------------------------------ false statements

FALSE_MESSAGES: dict[str, Callable[[str], list[bytes]]] = {
    "another_tool": data("meta", {"tool": "somebody.else", "caller_id": "somebody"}),
    "another_level": data("meta", {"enforcement": "none"}),
    "forged_violations": data("meta", {"violations": [["fs:read", "/x", "E2003"]]}),
    "forged_record": data("meta", {"recorded": [["fs:read", "/x", "E2003"]]}),
    "warning_is_a_number": plain("warning", 5),
    "too_many_warnings": plain("warning", *["again"] * 2000),
    "long_warning": plain("warning", "x" * 1_000_000),
    "error_with_exit_code_zero": plain(
        "error", ["X", {"code": "E1000", "category": "input", "message": "m", "exit_code": 0}, None]
    ),
}
"""Messages that are valid, and therefore accepted."""


# ------------------------------------------------------------------ run


def write_all(frames: list[bytes], endless: bool) -> None:
    """Write frames to every descriptor but the standard streams."""
    for number in range(3, 1024):
        try:
            for frame in frames:
                os.write(number, len(frame).to_bytes(8, "big") + frame)
            if endless:
                os.write(number, (1 << 60).to_bytes(8, "big"))
        except OSError:
            continue


def make_app(make: Callable[[str], list[bytes]], path: str, name: str) -> Tooli:
    """Return an app with one command, which sends forged messages."""
    app = Tooli("forging")
    declared = [] if name == "forged_violations" else ["none"]

    @app.command(isolation="required", capabilities=declared or None, timeout=60)
    def forge(secret: SecretInput[str]) -> str:
        write_all(make(path), name == "endless")
        return f"went on, and knows {secret.reveal()}"

    return app


def snapshot() -> list[dict[str, Any]]:
    """Return the attributes of the classes that a message might change."""
    from tooli.core.result_types import NextStep

    return [dict(vars(cls)) for cls in (*CHECKED_CLASSES, NextStep)]


def try_all() -> dict[str, dict[str, Any]]:
    """Send every message and return the results by name."""
    found: dict[str, dict[str, Any]] = {}
    for name, make in {**FORGERIES, **FALSE_MESSAGES}.items():
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "made")
            app = make_app(make, path, name)
            app.call("forge", secret=SECRET, dry_run=True)
            before = snapshot()
            outcome = app.call("forge", secret=SECRET).to_dict()
            after = snapshot()
            found[name] = {
                "outcome": outcome,
                "touched": os.path.exists(path),
                "changed": after != before,
            }
    return found


if __name__ == "__main__":
    if detect_sandbox_support().missing:
        sys.exit("there is no sandbox here")
    json.dump(try_all(), sys.stdout)
