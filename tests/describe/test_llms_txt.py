"""llms.txt and llms-full.txt: just the forms that their readers take."""

from __future__ import annotations

from typing import Any

from tests.parity import zoo

from tooli import Tooli
from tooli.annotations import Destructive
from tooli.describe.app_info import collect_app_info
from tooli.describe.llms_txt import render_llms_full, render_llms_txt
from tooli.describe.skill import render_reference_page


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
    lines = render_llms_txt(collect_app_info(make_app())).splitlines()
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
    text = render_llms_full(collect_app_info(make_app()))
    assert text.startswith("# shop\n\n> ## Sell things.\n\nshop (version 2)")
    assert "\n## Really\n\n- many\n" in text
    assert text.index("\n## shop buy\n") < text.index("\n## shop look\n")
    assert text.index("\n### Call\n") > text.index("\n## shop buy\n")
    assert "\n## Answers\n" in text
    assert text.endswith("## Gotchas\n\nMind the gap.\n")


def test_it_says_of_a_command_what_the_page_of_its_own_says() -> None:
    app_info = collect_app_info(zoo.make_app())
    whole = render_llms_full(app_info)
    for tool in app_info.tools:
        _, *blocks = render_reference_page(app_info, tool).split("\n\n")
        for block in blocks:
            assert block.removeprefix("#").strip() in whole


def test_an_app_without_words_or_commands() -> None:
    single: Any = collect_app_info(zoo.make_single())
    assert "`single … --json`" in render_llms_txt(single)
    assert "> The commands of single.\n" in render_llms_txt(single)
    assert "\n## single\n" in render_llms_full(single)
    empty = collect_app_info(Tooli("empty"))
    assert "## Commands" not in render_llms_txt(empty)
    assert render_llms_full(empty).startswith("# empty\n")
