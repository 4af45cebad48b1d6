"""llms.txt and llms-full.txt: just the forms that their readers take."""

from __future__ import annotations

from typing import Any

from tests.parity import zoo

from tooli import Tooli
from tooli.annotations import Destructive
from tooli.views.llms_txt import llms_full, llms_txt
from tooli.views.portrait import portray
from tooli.views.skill import reference_page


def make_app() -> Tooli:
    app = Tooli(
        "shop",
        version="2",
        description="## Sell\nthings\n\n## Really\n\n- many",
        sections={"Gotchas": "Mind the gap."},
    )

    @app.command(annotations=Destructive)
    def buy(item: str) -> list[str]:
        """Buy something.

        > quoted

        ## Heading
        """
        return [item]

    @app.command()
    def look():
        return None

    group = Tooli("stock")
    group.command("[odd] name")(look)
    app.add_typer(group, name="stock")
    return app


def test_the_index() -> None:
    lines = llms_txt(portray(make_app())).splitlines()
    assert lines[:3] == ["# shop", "", "> ## Sell things."]
    assert lines[4].startswith("shop (version 2) is a program for the command line.")
    assert "`shop COMMAND … --json`" in lines[4]
    assert lines[5:] == [
        "",
        "## Commands",
        "",
        "- [buy](references/buy.md): Buy something. (destructive)",
        "- [look](references/look.md)",
        "",
        "## Commands: stock",
        "",
        "- [stock (odd) name](references/stock.-odd--name-0267fd.md)",
        "",
        "## Optional",
        "",
        "- [llms-full.txt](llms-full.txt): All of it in one file",
    ]


def test_all_in_one_file() -> None:
    text = llms_full(portray(make_app()))
    assert text.startswith("# shop\n\n> ## Sell things.\n\nshop (version 2)")
    assert "\n## Really\n\n- many\n" in text
    assert text.index("\n## shop buy\n") < text.index("\n## shop look\n")
    assert text.index("\n### Call\n") > text.index("\n## shop buy\n")
    assert "\n## Answers\n" in text
    assert text.endswith("## Gotchas\n\nMind the gap.\n")


def test_it_says_of_a_command_what_the_page_of_its_own_says() -> None:
    portrait = portray(zoo.make_app())
    whole = llms_full(portrait)
    for tool in portrait.tools:
        _, *blocks = reference_page(portrait, tool).split("\n\n")
        for block in blocks:
            assert block.removeprefix("#").strip() in whole


def test_an_app_without_words_or_commands() -> None:
    single: Any = portray(zoo.make_single())
    assert "`single … --json`" in llms_txt(single)
    assert "> The commands of single.\n" in llms_txt(single)
    assert "\n## single\n" in llms_full(single)
    empty = portray(Tooli("empty"))
    assert "## Commands" not in llms_txt(empty)
    assert llms_full(empty).startswith("# empty\n")
