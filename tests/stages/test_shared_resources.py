"""The stage `lifespan` applies to commands of apps with a lifespan, and to no other."""

from __future__ import annotations

from collections.abc import Iterator

from tooli import Context, Tooli
from tooli.core.call import Options


def test_stage_applies_to_commands_that_can_use_it() -> None:
    app = Tooli("shop")

    @app.command()
    def size(ctx: Context) -> str:
        return ctx.lifespan

    @app.command()
    def plain(text: str) -> str:
        return text

    def names(command: str) -> list[str]:
        tool = app.find(command)
        assert tool is not None
        return [stage.__name__ for stage in app.stages_for(tool, Options())]

    assert names("size") == ["bind"]

    @app.lifespan
    def open_shop() -> Iterator[str]:
        yield "open"

    assert names("size") == ["bind", "open_lifespans"]
    assert names("plain") == ["bind"]
    assert app.call("size").unwrap() == "open"
