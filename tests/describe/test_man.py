"""Man pages: their content matches the commands, and roff displays it unchanged."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Optional

import pytest
from pydantic import BaseModel, Field
from tests.describe.apps import make_callback_app
from tests.parity import sample_apps

from tooli import NotFoundError, Option, Tooli
from tooli.annotations import Destructive, Idempotent, OpenWorld
from tooli.config.setting_definitions import documented_variables
from tooli.core._hot_tables import FLAGS
from tooli.core.tool import Tool
from tooli.describe.man import DEFAULT_DATE, build_man_page, build_man_pages
from tooli.describe.sections import collect_app_info
from tooli.schema.json_schema import input_schema
from tooli.testing import invoke

_CHARACTERS = {"\\(rs": "\\", "\\-": "-", "\\(aq": "'", "\\(dq": '"', "\\(ga": "`", "\\(ha": "^"}
_CHARACTERS |= {"\\(ti": "~", "\\&": "", "\\:": "", "\\fB": "", "\\fI": "", "\\fR": "", "\\ ": " "}
_ESCAPE = re.compile(r"\\\(..|\\f.|\\\[u([0-9A-F]+)\]|\\[-&: ]")


def plain_text(text: str) -> str:
    """Return the text that roff displays."""
    return _ESCAPE.sub(
        lambda found: chr(int(found[1], 16)) if found[1] else _CHARACTERS[found[0]], text
    )


def sections(page: str) -> dict[str, list[str]]:
    """Return the lines of each section."""
    found: dict[str, list[str]] = {}
    for line in page.splitlines():
        if line.startswith(".SH"):
            found[plain_text(line[5:-1])] = []
        elif found:
            next(reversed(found.values())).append(line)
    return found


def tags(lines: list[str]) -> list[str]:
    """Return the tags of a list, without those of nested lists."""
    depth, found = 0, list[str]()
    for line, after in zip(lines, [*lines, ""][1:], strict=True):
        depth += (line == ".RS") - (line == ".RE")
        if line.startswith(".TP") and not depth:
            found.append(plain_text(after))
    return found


def page_of(app: Tooli, name: str) -> dict[str, list[str]]:
    return sections(build_man_pages(collect_app_info(app))[name])


def text_of(lines: list[str]) -> str:
    return plain_text(" ".join(line for line in lines if not line.startswith(".")))


class Part(BaseModel):
    """A part."""

    size: int = Field(description="How big", ge=1)
    near: Optional[str] = None  # noqa: UP045
    kind: Literal["a", "b"] = "a"


def make_app() -> Tooli:
    app = Tooli(
        "shop",
        version="2",
        description="Sell things.\n\nMany of them.",
        sections={"History": "It was founded `early`."},
    )

    @app.command(
        annotations=Destructive | OpenWorld | Idempotent,
        auth=["till"],
        timeout=30,
        cost_hint="high",
        requires_approval=True,
        when_to_use="When the cart is full",
        error_codes={"E3007": "sold out"},
        examples=[{"args": ["tea", "--part.size", "3"], "description": "Three"}],
    )
    def buy(
        item: str,
        part: Annotated[Part, Option(help="What of it")],
        count: Annotated[int, Option("--count", "-c", min=1, envvar="SHOP_COUNT")] = 1,
        tags: Annotated[list[str] | None, Option("--tag")] = None,
        row: Annotated[tuple[int, str], Option()] = (1, "x"),
        loud: bool = True,
        secret: Annotated[str, Option(hidden=True)] = "",
        level: Annotated[int, Option("-l", count=True)] = 0,
        note: Annotated[str, Option(show_default="the usual", metavar="NOTE")] = "n",
        quiet_default: Annotated[int, Option(show_default=False)] = 3,
        json: bool = False,
    ) -> list[Part]:
        """Buy something.

        Slowly.

        Args:
            item: What to buy

        Returns:
            What was bought.
        """
        raise NotFoundError(item)

    @app.command(deprecated=True)
    def stream(n: int = 3) -> Iterator[int]:
        """Count up.

        Raises:
            NotFoundError: There is no number.
            ValueError: Not ours.
        """
        yield from range(n)

    @app.command()
    def say() -> None:
        print("hello")

    group = Tooli("stock")
    group.command()(add)
    app.add_typer(group, name="stock")
    return app


def add(item: str) -> Optional[int]:  # noqa: UP045
    """Add an item."""
    return None


# ------------------------------------------------------------------ complete and correct


def help_text(app: Tooli, tool: Tool) -> str:
    return invoke(app, *tool.cli_path, "--tooli-help", "--tooli-plain").stdout


@pytest.mark.parametrize(
    "make",
    [
        sample_apps.make_app,
        sample_apps.make_single_command_app,
        sample_apps.make_callback_app,
        make_app,
    ],
)
def test_page_lists_the_parameters_of_the_schema(make: Any) -> None:
    app = make()
    app_info = collect_app_info(app)
    pages = build_man_pages(app_info)
    for tool in app_info.tools:
        page = sections(pages["-".join((app_info.name, *tool.cli_path)) + ".1"])
        visible = {param.name: param for param in tool.command_params if not param.hidden}
        assert visible.keys() <= input_schema(tool)["properties"].keys()
        arguments = [p for p in visible.values() if p.kind == "argument"]
        listed = [tag.partition(" (")[0] for tag in tags(page.get("ARGUMENTS", []))]
        assert listed == [p.option_kwargs.get("metavar") or p.name.upper() for p in arguments]
        options = [p for p in visible.values() if p.kind != "argument"]
        listed = tags(page.get("OPTIONS", []))
        assert len(listed) == len(options)
        in_help = help_text(app, tool)
        for tag, param in zip(listed, options, strict=True):
            flags = re.findall(r"(?<!\S)-[^\s,]+", tag.partition(" ")[0] + " " + tag)
            assert {*param.flags, *param.negations} <= set(flags)
            assert all(flag in in_help for flag in param.flags)


def test_common_options_are_the_framework_options() -> None:
    page = page_of(make_app(), "shop.1")
    listed = " ".join(tags(page["COMMON OPTIONS"]))
    named = {word.rstrip(",") for word in listed.split() if word.startswith("-") and len(word) > 1}
    assert named - {"--output"} == FLAGS.keys() - {"--output"}


def test_environment_lists_the_documented_variables() -> None:
    assert tags(page_of(make_app(), "shop.1")["ENVIRONMENT"]) == list(documented_variables())


def test_framework_flag_gets_a_prefix_if_the_command_has_the_same() -> None:
    common = text_of(page_of(make_app(), "shop-buy.1")["COMMON OPTIONS"])
    assert "--tooli-json, --jsonl" in common


# ------------------------------------------------------------------ content of pages


def test_pages_of_an_app() -> None:
    assert list(build_man_pages(collect_app_info(make_app()))) == [
        "shop.1",
        "shop-buy.1",
        "shop-stream.1",
        "shop-say.1",
        "shop-stock-add.1",
    ]
    assert list(build_man_pages(collect_app_info(sample_apps.make_single_command_app()))) == [
        "single.1"
    ]


def test_page_of_an_app() -> None:
    page = page_of(make_app(), "shop.1")
    assert text_of(page["NAME"]) == "shop - sell things"
    assert text_of(page["SYNOPSIS"]) == "shop command [options]"
    assert text_of(page["DESCRIPTION"]) == "Sell things. Many of them."
    assert tags(page["COMMANDS"])[3] == "stock add, shop-stock-add(1)"
    assert text_of(page["HISTORY"]) == "It was founded early."
    assert tags(page["EXIT STATUS"])[:3] == ["0", "2", "10"]
    assert "E1010" in tags(page["ERRORS"])


def test_page_of_a_command() -> None:
    page = page_of(make_app(), "shop-buy.1")
    assert text_of(page["NAME"]) == "shop-buy - buy something"
    synopsis = text_of(page["SYNOPSIS"])
    assert synopsis.startswith("shop buy --part json [--count integer] [--tag text]...")
    assert synopsis.endswith("ITEM")
    options = text_of(page["OPTIONS"])
    for text in (
        "--count, -c integer At least 1. Default: 1. Environment variable: SHOP_COUNT.",
        "--part json What of it. Required. --part.size integer How big. At least 1. Required.",
        "--part.kind a or b Default: a.",
        "--tag text May be repeated.",
        '--row integer text Default: [1, "x"].',
        "--loud, --no-loud On by default.",
        "--note NOTE Default: the usual.",
    ):
        assert text in options
    assert "Default: 3" not in options
    assert "secret" not in options
    about = text_of(page["DESCRIPTION"])
    for text in (
        "Slowly.",
        "destroy",
        "twice",
        "other machines",
        "approve",
        "till",
        "30 s",
        "high",
    ):
        assert text in about
    assert "When to use it: When the cart is full." in about
    output = text_of(page["OUTPUT"])
    assert "What was bought. A list of objects; each of them has: size Integer. How big" in output
    assert '{"ok":true,"result":…,"meta":…}' in output
    assert tags(page["ERRORS"]) == ["E3007", "E1002", "E1003", "E1004", "E1010", "E2101"]
    assert tags(page["ENVIRONMENT"]) == ["SHOP_COUNT", "TOOLI_OUTPUT"]
    assert text_of(page["EXAMPLES"]) == "Three shop buy tea --part.size 3"
    assert text_of(page["SEE ALSO"]) == "shop(1), shop-stream(1), shop-say(1)"


def test_output_of_streaming_printing_and_optional_results() -> None:
    app = make_app()
    streamed = page_of(app, "shop-stream.1")
    assert "Items are streamed" in text_of(streamed["OUTPUT"])
    assert text_of(streamed["DESCRIPTION"]) == "Count up. Deprecated."
    assert tags(streamed["ERRORS"])[0] == "E3010"
    printed = page_of(app, "shop-say.1")
    assert text_of(printed["OUTPUT"]).startswith("The text that the command prints.")
    assert text_of(printed["NAME"]) == "shop-say - the command say of shop"
    assert "DESCRIPTION" not in printed
    assert "An integer, or nothing." in text_of(page_of(app, "shop-stock-add.1")["OUTPUT"])


def test_app_with_a_single_command_has_one_page() -> None:
    page = page_of(sample_apps.make_single_command_app(), "single.1")
    assert list(page)[:5] == ["NAME", "SYNOPSIS", "DESCRIPTION", "ARGUMENTS", "OPTIONS"]
    assert len(tags(page["COMMON OPTIONS"])) > 5
    assert "SEE ALSO" not in page


def test_page_by_command_path() -> None:
    app = collect_app_info(make_app())
    pages = build_man_pages(app)
    assert build_man_page(app, []) == pages["shop.1"]
    assert build_man_page(app, ["stock", "add"]) == pages["shop-stock-add.1"]
    assert build_man_page(app, ["stock.add"]) == pages["shop-stock-add.1"]
    with pytest.raises(NotFoundError, match="There is no command 'buyy'") as found:
        build_man_page(app, ["buyy"])
    assert found.value.suggestion is not None
    assert found.value.suggestion.fix == "Try 'buy'."
    single = collect_app_info(sample_apps.make_single_command_app())
    assert build_man_page(single, []) == build_man_pages(single)["single.1"]


def test_synopsis_of_many_options_is_short() -> None:
    app = Tooli("many")

    namespace: dict[str, Any] = {"X": Annotated[int, Option()]}
    exec(f"def many(x: X, {', '.join(f'o{i}: int = 0' for i in range(20))}): ...", namespace)
    app.command()(namespace["many"])
    page = page_of(app, "many.1")
    assert text_of(page["SYNOPSIS"]) == "many [options] --x integer"
    assert len(tags(page["OPTIONS"])) == 21


def test_page_names_are_unique() -> None:
    app, group = Tooli("a"), Tooli("b")
    for name in ("b-c", "d"):
        app.command(name)(add)
    group.command("c")(add)
    app.add_typer(group, name="b")
    assert list(build_man_pages(collect_app_info(app))) == ["a.1", "a-b-c.1", "a-d.1", "a-b-c-2.1"]
    odd = Tooli("Éa / 日")
    odd.command("x")(add)
    odd.command("y")(add)
    assert list(build_man_pages(collect_app_info(odd))) == ["Ea.1", "Ea-x.1", "Ea-y.1"]


def test_page_has_the_given_or_default_date() -> None:
    assert (
        f'.TH "SHOP" 1 "{DEFAULT_DATE}" "shop 2"'
        in build_man_pages(collect_app_info(make_app()))["shop.1"]
    )
    assert '"2026-02-03"' in build_man_pages(collect_app_info(make_app()), "2026-02-03")["shop.1"]


def test_pages_are_reproducible() -> None:
    before = set(sys.modules)
    assert build_man_pages(collect_app_info(make_app())) == build_man_pages(
        collect_app_info(make_app())
    )
    assert "time" not in set(sys.modules) - before


def test_options_of_callbacks_have_sections() -> None:
    pages = build_man_pages(collect_app_info(make_callback_app()))
    for page in ("safe.1", "safe-box-open.1"):
        assert '.SH "OPTIONS BEFORE THE COMMAND"\n.TP\n\\fB\\-\\-token\\fR' in pages[page]
        assert '.SH "OPTIONS AFTER BOX"' in pages[page]
    assert "OPTIONS AFTER BOX" not in pages["safe-count.1"]
