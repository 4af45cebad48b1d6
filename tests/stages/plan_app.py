"""An app with commands of every kind that record their actions and delete files."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from tooli import Context, Tooli, dry_run_support, record_dry_action
from tooli.annotations import Destructive

KINDS = ("delete", "delete-async", "delete-stream", "delete-async-stream", "delete-by-context")
"""The commands that support dry runs."""
ALL = (*KINDS, "wipe")
"""All commands, also the one that does not support dry runs."""


def remove(path: Path) -> None:
    if not record_dry_action("delete", path, details={"size": path.stat().st_size}, state=path):
        path.unlink()


def make_app(**settings) -> Tooli:
    app = Tooli("shredder", version="1.0", **settings)

    @app.command(annotations=Destructive, auth=[])
    @dry_run_support
    def delete(files: list[Path]) -> int:
        """Delete."""
        for path in files:
            remove(path)
        return len(files)

    @app.command("delete-async", annotations=Destructive, auth=[])
    @dry_run_support
    async def delete_async(files: list[Path]) -> int:
        """Delete."""
        from asyncio import to_thread

        for path in files:
            await to_thread(remove, path)
        return len(files)

    @app.command("delete-stream", annotations=Destructive, auth=[])
    @dry_run_support
    def delete_stream(files: list[Path]) -> Iterator[str]:
        """Delete."""
        for path in files:
            remove(path)
            yield path.name

    @app.command("delete-async-stream", annotations=Destructive, auth=[])
    @dry_run_support
    async def delete_async_stream(files: list[Path]) -> AsyncIterator[str]:
        """Delete."""
        for path in files:
            remove(path)
            yield path.name

    @app.command("delete-by-context", annotations=Destructive, auth=[])
    @dry_run_support
    def delete_by_context(files: list[Path], ctx: Context) -> int:
        """Delete, in threads that do not inherit context variables."""
        from concurrent.futures import ThreadPoolExecutor

        def one(path: Path) -> None:
            size = {"size": path.stat().st_size}
            if not ctx.plan("delete", path, details=size, state=path):
                assert not ctx.dry_run
                path.unlink()

        with ThreadPoolExecutor(1) as pool:
            list(pool.map(one, files))
        return len(files)

    @app.command(annotations=Destructive, auth=[])
    def wipe(files: list[Path]) -> int:
        """Delete without recording the actions."""
        for path in files:
            path.unlink()
        return len(files)

    return app
