"""An app whose commands return escape sequences, invisible characters and secrets."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.parse import quote

from pydantic import BaseModel

from tooli import (
    ConflictError,
    Context,
    Image,
    NotFoundError,
    SecretInput,
    Suggestion,
    Tooli,
)

UNSAFE = (
    "\x1b[31mred\x1b[0m \x1b]8;;http://evil.example\x07link\x1b]8;;\x1b\\ \x1b]52;c;aGk=\x07"
    "\x9b1m\x9d0;t\x9c c\x08\x00\x7f\x85 \u202eevil\u202c z\u200bw \u00ad\ufeff\U000e0041\U000e0101"
)
ALLOWED = "👨‍👩‍👧 می‌خواهم क्‍ष ❤️"
HOME = os.path.expanduser("~")
TOKENS = "AKIAIOSFODNN7EXAMPLE postgres://ada:pa55w0rd@db.example/x"


class Inner(BaseModel):
    name: str
    parts: dict[str, str]


class Login(BaseModel):
    user: str
    password: SecretInput[str]


def make(policy: str) -> Tooli:
    """Return the app with a security policy."""
    app = Tooli("redaction", version="1", security_policy=policy)

    @app.command(auth=[])
    def value() -> dict[str, Any]:
        """A value."""
        inner = Inner(name=UNSAFE, parts={UNSAFE: UNSAFE})
        return {UNSAFE: 1, "list": [UNSAFE, [UNSAFE]], "inner": inner, "allowed": ALLOWED}

    @app.command(auth=[])
    def rows() -> list[dict[str, Any]]:
        """Records."""
        return [{"n": n, f"k{UNSAFE}": UNSAFE, "deep": {"x": [UNSAFE]}} for n in range(3)]

    @app.command(auth=[])
    def text() -> str:
        """A text."""
        return f"{UNSAFE}\nsecond {ALLOWED}\n"

    @app.command(auth=[])
    def items() -> Iterator[dict[str, Any]]:
        """A stream."""
        for n in range(3):
            yield {"n": n, f"k{UNSAFE}": UNSAFE}

    @app.command(auth=[])
    async def aitems() -> AsyncIterator[str]:
        """An async stream."""
        for n in range(3):
            yield f"{n} {UNSAFE}"

    @app.command(auth=[])
    def fail() -> str:
        """A failure."""
        raise ConflictError(
            f"moved {UNSAFE}",
            field=f"f{UNSAFE}",
            details={UNSAFE: [UNSAFE]},
            suggestion=Suggestion("fix", f"do {UNSAFE}", argv=["redaction", "x", UNSAFE]),
        )

    @app.command(auth=[])
    def crash() -> str:
        """A crash."""
        raise RuntimeError(f"broken {UNSAFE}")

    @app.command(auth=[])
    def break_off() -> Iterator[str]:
        """A stream that fails after one item."""
        yield f"one {UNSAFE}"
        raise NotFoundError(f"no more {UNSAFE}")

    @app.command(auth=[])
    def warn(ctx: Context) -> str:
        """A warning."""
        ctx.warn(f"careful {UNSAFE}")
        ctx.log(f"log {UNSAFE}", level="warning")
        return "ok"

    @app.command(auth=[])
    def prints():
        """Printed text."""
        print(f"printed {UNSAFE}")

    @app.command(auth=[])
    def picture() -> list[Any]:
        """A picture, and a text."""
        return [Image(b"\x89PNG\x1b[31m\x00" + bytes(range(256))), UNSAFE]

    @app.command(auth=[])
    def strictly() -> dict[str, str]:
        """Return credentials and paths, which only the strict policy redacts."""
        return {"tokens": TOKENS, "path": f"{HOME}/x ${{HOME}} $(date) /data{HOME}x"}

    _add_secret_commands(app)
    return app


def _add_secret_commands(app: Tooli) -> None:
    def leak(secret: str) -> dict[str, Any]:
        return {
            "as it is": f"<{secret}>",
            secret: "key",
            "list": [[secret]],
            "url": f"https://x.example/?q={quote(secret, safe='')}",
            "basic": b64encode(f"ada:{secret}".encode()).decode(),
            "split": secret[:3] + "\u200b" + secret[3:],
        }

    @app.command(auth=[])
    def login(token: SecretInput[str]) -> dict[str, Any]:
        """Return a secret."""
        return leak(token.reveal())

    @app.command(auth=[])
    def login_fails(token: SecretInput[str], ctx: Context) -> str:
        """Raise an error that contains a secret."""
        ctx.warn(f"using {token.reveal()}")
        ctx.log(f"using {token.reveal()}", level="warning")
        raise ConflictError(
            f"bad {token.reveal()}", details=leak(token.reveal()), field=token.reveal()
        )

    @app.command(auth=[])
    def login_crashes(token: SecretInput[str]) -> str:
        """Raise an unexpected exception that contains a secret."""
        raise RuntimeError(f"bad {token.reveal()}")

    @app.command(auth=[])
    def login_prints(token: SecretInput[str]):
        """Print a secret."""
        print(f"it is {token.reveal()}")

    @app.command(auth=[])
    def login_streams(token: SecretInput[str]) -> Iterator[dict[str, Any]]:
        """Return a secret in every item."""
        for _ in range(2):
            yield leak(token.reveal())

    @app.command(auth=[])
    def login_model(login: Login) -> dict[str, Any]:
        """Return a secret field of a model."""
        return leak(login.password.reveal())


if __name__ == "__main__":
    make(os.environ.get("SECURITY_POLICY", "standard"))()
