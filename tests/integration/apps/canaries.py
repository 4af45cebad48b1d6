"""Commands that give away what must not get out: escapes, hidden marks, secrets."""

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

DIRTY = (
    "\x1b[31mred\x1b[0m \x1b]8;;http://evil.example\x07link\x1b]8;;\x1b\\ \x1b]52;c;aGk=\x07"
    "\x9b1m\x9d0;t\x9c c\x08\x00\x7f\x85 \u202eevil\u202c z\u200bw \u00ad\ufeff\U000e0041\U000e0101"
)
KINDLY = "👨‍👩‍👧 می‌خواهم क्‍ष ❤️"
HOME = os.path.expanduser("~")
TOKENS = "AKIAIOSFODNN7EXAMPLE postgres://ada:pa55w0rd@db.example/x"


class Inner(BaseModel):
    name: str
    parts: dict[str, str]


class Login(BaseModel):
    user: str
    password: SecretInput[str]


def make(policy: str) -> Tooli:
    """The app under a policy."""
    app = Tooli("canaries", version="1", security_policy=policy)

    @app.command(auth=[])
    def value() -> dict[str, Any]:
        """A value."""
        inner = Inner(name=DIRTY, parts={DIRTY: DIRTY})
        return {DIRTY: 1, "list": [DIRTY, [DIRTY]], "inner": inner, "kindly": KINDLY}

    @app.command(auth=[])
    def rows() -> list[dict[str, Any]]:
        """Records."""
        return [{"n": n, f"k{DIRTY}": DIRTY, "deep": {"x": [DIRTY]}} for n in range(3)]

    @app.command(auth=[])
    def text() -> str:
        """A text."""
        return f"{DIRTY}\nsecond {KINDLY}\n"

    @app.command(auth=[])
    def items() -> Iterator[dict[str, Any]]:
        """A stream."""
        for n in range(3):
            yield {"n": n, f"k{DIRTY}": DIRTY}

    @app.command(auth=[])
    async def aitems() -> AsyncIterator[str]:
        """An async stream."""
        for n in range(3):
            yield f"{n} {DIRTY}"

    @app.command(auth=[])
    def fail() -> str:
        """A failure."""
        raise ConflictError(
            f"moved {DIRTY}",
            field=f"f{DIRTY}",
            details={DIRTY: [DIRTY]},
            suggestion=Suggestion("fix", f"do {DIRTY}", argv=["canaries", "x", DIRTY]),
        )

    @app.command(auth=[])
    def crash() -> str:
        """A crash."""
        raise RuntimeError(f"broken {DIRTY}")

    @app.command(auth=[])
    def break_off() -> Iterator[str]:
        """A stream that breaks."""
        yield f"one {DIRTY}"
        raise NotFoundError(f"no more {DIRTY}")

    @app.command(auth=[])
    def warn(ctx: Context) -> str:
        """A warning."""
        ctx.warn(f"careful {DIRTY}")
        ctx.log(f"log {DIRTY}", level="warning")
        return "ok"

    @app.command(auth=[])
    def prints():
        """Printed text."""
        print(f"printed {DIRTY}")

    @app.command(auth=[])
    def picture() -> list[Any]:
        """A picture, and a text."""
        return [Image(b"\x89PNG\x1b[31m\x00" + bytes(range(256))), DIRTY]

    @app.command(auth=[])
    def strictly() -> dict[str, str]:
        """What only strict takes out."""
        return {"tokens": TOKENS, "path": f"{HOME}/x ${{HOME}} $(date) /data{HOME}x"}

    _secrets(app)
    return app


def _secrets(app: Tooli) -> None:
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
        """Give a secret away."""
        return leak(token.reveal())

    @app.command(auth=[])
    def login_fails(token: SecretInput[str], ctx: Context) -> str:
        """Give a secret away in an error."""
        ctx.warn(f"using {token.reveal()}")
        ctx.log(f"using {token.reveal()}", level="warning")
        raise ConflictError(
            f"bad {token.reveal()}", details=leak(token.reveal()), field=token.reveal()
        )

    @app.command(auth=[])
    def login_crashes(token: SecretInput[str]) -> str:
        """Give a secret away in a crash."""
        raise RuntimeError(f"bad {token.reveal()}")

    @app.command(auth=[])
    def login_prints(token: SecretInput[str]):
        """Print a secret."""
        print(f"it is {token.reveal()}")

    @app.command(auth=[])
    def login_streams(token: SecretInput[str]) -> Iterator[dict[str, Any]]:
        """Give a secret away, again and again."""
        for _ in range(2):
            yield leak(token.reveal())

    @app.command(auth=[])
    def login_model(login: Login) -> dict[str, Any]:
        """Give a part of a model away."""
        return leak(login.password.reveal())


if __name__ == "__main__":
    make(os.environ.get("CANARIES", "standard"))()
