"""The page of the real server in a real browser: what each kind of result looks like."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.integration import node
from tests.integration.mcp_http.http_process import run_server
from tests.integration.page.browser_pages import LOW_CONTRAST, OpenPage, page_opener, run_command

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

APP = Path(__file__).with_name("gallery.py")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of a server of the gallery."""
    with run_server(APP, interface=("api",)) as running:
        yield f"{running.url}/"


@pytest.fixture
def open_page(browser: Browser, server: str) -> Iterator[OpenPage]:
    with page_opener(browser, server) as open_page:
        yield open_page


def open_command(open_page: OpenPage, path: str, **options: Any) -> Page:
    page = open_page(path, **options)
    page.locator("main h1").wait_for()
    return page


def download(page: Page, name: str) -> tuple[str, str]:
    """Click a download button; return the name of the file and its text."""
    with page.expect_download() as found:
        page.get_by_role("button", name=f"Download {name}").click()
    return found.value.suggested_filename, Path(found.value.path()).read_text("utf-8")


def field(page: Page, label: str) -> Any:
    return page.locator(".left").get_by_label(label, exact=True)


# ------------------------------------------------------------------ list


def test_groups_have_the_order_and_the_descriptions_of_the_app(open_page: OpenPage) -> None:
    page = open_page()
    headings = page.locator("nav h2").all_inner_texts()
    assert headings == ["orders", "kitchen", "Resources", "Prompts"]
    assert page.locator("nav .about-group").all_inner_texts() == [
        "Take, change and cancel orders.",
        "Recipes, and what is in the oven.",
    ]
    page.get_by_role("searchbox").fill("oven")
    assert "Oven" in page.locator("nav a .name").all_inner_texts()


def test_resources_and_prompts_are_read(open_page: OpenPage) -> None:
    page = open_page()
    page.get_by_role("link", name="Recipe").click()
    page.locator("main h1", has_text="Recipe").wait_for()
    field(page, "name").fill("rye bread/ü")
    run_command(page)
    assert page.locator(".md h2").inner_text() == "rye bread/ü"
    assert "<script>window.hacked=1</script>" in page.locator(".md").inner_text()
    page.get_by_role("link", name="Oven State of the oven.").click()
    page.locator("main h1", has_text="Oven").wait_for()
    run_command(page)
    assert page.locator(".media dt").all_inner_texts() == ["temperature", "trays"]
    page.get_by_role("link", name="Restock").click()
    page.locator("main h1", has_text="Restock").wait_for()
    field(page, "item").fill("rye")
    run_command(page)
    assert page.locator(".message").inner_text().split("\n")[-1] == (
        "Write a short order for 10 kg of rye."
    )
    page.get_by_role("tab", name="MCP").click()
    shown = json.loads(page.locator(".call pre").inner_text())
    assert (shown["method"], shown["params"]["arguments"]) == ("prompts/get", {"item": "rye"})
    page.evaluate("location.hash = '#!resources/' + encodeURIComponent('bakery://recipes/a%20b')")
    page.locator("main h1", has_text="Recipe").wait_for()
    assert field(page, "name").input_value() == "a b"
    page.evaluate("location.hash = '#!resources/none'")
    page.get_by_text("Unknown document").wait_for()


# ------------------------------------------------------------------ results


def test_pictures_sounds_and_documents_are_shown(open_page: OpenPage) -> None:
    page = open_command(open_page, "kitchen/media")
    run_command(page)
    picture = page.get_by_role("img", name="Picture in the result")
    assert picture.evaluate("e => e.decode().then(() => e.naturalWidth)") == 160
    sound = page.locator("audio")
    assert sound.evaluate("e => new Promise(r => e.duration ? r(1) : e.onloadedmetadata = r)")
    assert page.locator(".md h2").inner_text() == "Bread"
    pdf = page.locator(".doc", has_text="bread.pdf")
    assert "application/pdf" in pdf.inner_text()
    name, kind = (pdf.locator(tag).bounding_box() or {} for tag in ("div > b", "div > .dim"))
    assert kind["x"] >= name["x"] + name["width"] + 8  # they do not look like one word
    switch = page.get_by_role("radiogroup", name="Show the text").bounding_box() or {}
    assert switch["x"] == (page.locator(".md h2").bounding_box() or {})["x"]
    with page.expect_download() as found:
        pdf.get_by_role("button", name="Download File").click()
    assert found.value.suggested_filename == "bread.pdf"
    assert Path(found.value.path()).read_bytes() == b"%PDF-1.4 small"
    link = page.get_by_role("link", name="Bread on the web")
    assert link.get_attribute("href") == "https://example.org/bread"
    assert link.get_attribute("rel") == "noopener noreferrer"


def test_markdown_is_shown_without_its_html(open_page: OpenPage) -> None:
    page = open_command(open_page, "kitchen/report")
    run_command(page)
    shown = page.locator(".md")
    assert shown.locator("img, svg, script").count() == 0
    assert "<script>window.hacked = 1</script>" in shown.inner_text()
    links = shown.locator("a").evaluate_all("all => all.map(e => e.href)")
    assert links == [
        "https://example.org/a?b=1&c=2",
        "https://example.org/x.png",
        "https://example.org/auto",
    ]
    assert shown.locator("strong").inner_text() == "bold"
    assert shown.locator("table tbody tr").count() == 2
    assert shown.locator("ul ul li").inner_text() == "one and a half"
    assert shown.locator("pre").inner_text() == 'print("<b>not bold</b>")'
    page.get_by_role("radio", name="Source").check()
    assert page.locator(".answer pre.text").inner_text().startswith("# Report <img")


PARTS = (
    *("**a", "[", "[a](", "`", "~~", "_a", "*", "![", "|-|\n", "> ", "- ", "<http://", "https://a"),
    *("1. ", "  ", "\\", "|", "```", "a_b*c", "- a\n  ", "[a](b", "**", "*a* ", "> > \n"),
)


@pytest.mark.parametrize("part", PARTS)
def test_markdown_of_any_shape_does_not_freeze_the_page(open_page: OpenPage, part: str) -> None:
    page = open_command(open_page, "kitchen/repeat")
    field(page, "part").fill(part)
    field(page, "times").fill(str(150_000 // len(part)))
    run_command(page)
    assert page.locator(".md h2").inner_text() == "Start"


def test_hostile_values_are_shown_as_text(open_page: OpenPage) -> None:
    page = open_command(open_page, "kitchen/hostile")
    run_command(page)
    answer = page.locator(".answer .body").first
    assert answer.locator("a").count() == 0
    assert "javascript:window.hacked=1" in answer.inner_text()
    assert "<img src=x onerror=window.hacked=1>" in answer.inner_text()
    assert answer.locator(".doc", has_text="text/html").locator("img").count() == 0
    assert answer.locator("dt").all_inner_texts() == ["__proto__", "constructor"]


def test_nested_values_are_tables_and_objects_to_open(open_page: OpenPage) -> None:
    page = open_command(open_page, "orders/create")
    field(page, "customer").fill("Ada")
    page.get_by_role("button", name="Add to lines").click()
    field(page, "item").fill("rye")
    run_command(page)
    answer = page.locator(".answer")
    assert answer.get_by_role("grid").locator("th").all_inner_texts() == ["item", "count"]
    fold = answer.locator(".fold").first
    assert "Kramgasse 49" in fold.inner_text()
    fold.locator("summary").first.click()
    assert "Kramgasse 49" not in fold.inner_text()


def test_file_is_uploaded(open_page: OpenPage, tmp_path: Path) -> None:
    page = open_command(open_page, "orders/create")
    (tmp_path / "cake.png").write_bytes(bytes(range(256)) * 10)
    field(page, "customer").fill("Ada")
    field(page, "discount").fill("20")
    block = page.locator(".left .field", has=page.get_by_label("picture", exact=True)).last
    block.locator("input[type=file]").set_input_files(tmp_path / "cake.png")
    run_command(page)
    rows = dict(
        zip(
            page.locator(".answer .card").first.locator("> dt").all_inner_texts(),
            page.locator(".answer .card").first.locator("> dd").all_inner_texts(),
            strict=True,
        )
    )
    assert (rows["picture_bytes"], rows["discount"]) == ("2560", "20")


def test_table_is_sorted_filtered_paged_and_downloaded(open_page: OpenPage) -> None:
    page = open_command(open_page, "orders/list-orders")
    page.get_by_label("Rows of a page").fill("50")
    run_command(page)
    summary = page.locator(".sum")
    assert "50 of 120 rows" in summary.inner_text()
    page.get_by_role("button", name="Next page").click()
    summary.get_by_text("100 of 120 rows").wait_for()
    page.keyboard.press("Enter")  # the button for the next page has the focus
    summary.get_by_text("120 rows", exact=True).wait_for()
    assert page.get_by_role("button", name="Next page").count() == 0

    def column(number: int) -> list[str]:
        cells = page.locator(f".answer tbody tr:not(.pad-row) td:nth-child({number})")
        return cells.all_inner_texts()

    total = page.get_by_role("button", name="total", exact=True)
    total.click()
    found = [float(text) for text in column(4)]
    assert found == sorted(found)
    header = page.locator("th", has_text="total")
    assert header.get_attribute("aria-sort") == "ascending"
    total.click()
    assert header.get_attribute("aria-sort") == "descending"
    assert float(column(4)[0]) > found[-1] or float(column(4)[0]) >= max(found)
    total.click()
    assert column(1)[0] == "4210"
    note = page.get_by_role("button", name="note", exact=True)
    note.click()
    assert column(6)[0] == "Ring twice"
    note.click()
    assert column(6)[0] == "Ring twice"  # empty cells are last in both directions
    page.get_by_label("Filter the rows").fill("bern ada")
    page.locator(".gridbar", has_text="30 of 120 rows").wait_for()
    assert set(column(3)) == {"Bern"}
    page.get_by_role("gridcell", name="2 items").first.click()
    nested = page.get_by_role("region", name="The selected cell").get_by_role("grid")
    assert nested.locator("th").all_inner_texts() == ["item", "count"]

    name, text = download(page, "CSV")
    lines = text.splitlines()
    assert (name, len(lines)) == ("orders-list-orders.csv", 121)
    assert lines[0] == "order,customer,city,total,paid,note,lines"
    assert lines[1].startswith("4210,Ada Lovelace,Bern,17.5,false,Ring twice,")
    assert lines[1].endswith(
        '"[{""item"":""rye bread"",""count"":1},{""item"":""croissant"",""count"":4}]"'
    )
    name, text = download(page, "JSON")
    assert (name, len(json.loads(text))) == ("orders-list-orders.json", 120)


# ------------------------------------------------------------------ running calls


def test_progress_and_logs_are_shown_while_the_call_runs(open_page: OpenPage) -> None:
    page = open_command(open_page, "kitchen/bake")
    field(page, "pause").fill("1.5")
    field(page, "loaves").fill("4")
    page.keyboard.press("Control+Enter")
    bar = page.get_by_role("progressbar")
    page.locator(".step", has_text="of 4 loaf 2 is in the oven").wait_for()
    step, share = bar.evaluate("e => [parseInt(e.ariaValueText), Number(e.ariaValueNow)]")
    assert share == int(step * 25) > 0
    assert "loaf 1: 230 °C" in page.get_by_role("log").inner_text()
    assert page.get_by_role("button", name="Cancel").is_visible()
    page.locator(".answer .pill", has_text="OK").wait_for()
    page.locator(".logs summary", has_text="5 messages").click()
    assert "warning: the oven is off" in page.get_by_role("log").inner_text()
    assert page.locator(".card dd").inner_text() == "4"


def test_call_can_be_cancelled(open_page: OpenPage) -> None:
    page = open_command(open_page, "kitchen/bake")
    field(page, "loaves").fill("100000")
    field(page, "pause").fill("0.05")
    page.keyboard.press("Control+Enter")
    page.locator(".step", has_text="of 100000").wait_for()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_text("The page no longer waits.").wait_for()
    field(page, "loaves").fill("1")
    run_command(page)
    assert page.locator(".card dd").inner_text() == "1"


def test_stream_shows_its_rows_and_its_log(open_page: OpenPage) -> None:
    page = open_command(open_page, "kitchen/follow")
    run_command(page)
    assert "5 rows" in page.locator(".sum").inner_text()
    assert page.locator(".logs summary").inner_text() == "Log: 5 messages"


def test_destructive_call_shows_its_arguments_before_it_runs(open_page: OpenPage) -> None:
    page = open_command(open_page, "orders/cancel")
    field(page, "order").fill("4207")
    run_command(page)
    question = page.locator(".fix.hot")
    assert question.locator("dd").inner_text() == "4207"
    assert "--" not in question.inner_text() and "?yes" not in question.inner_text()
    question.get_by_role("button", name="Dry run first").click()
    page.locator(".pill", has_text="Dry run: nothing ran").wait_for()
    page.get_by_role("button", name="Confirm and run").click()
    page.locator(".card dt", has_text="refunded").wait_for()


def test_approval_shows_the_command_of_the_human(open_page: OpenPage) -> None:
    page = open_command(open_page, "orders/refund-all")
    field(page, "reason").fill("storm")
    run_command(page)
    assert page.locator(".fix pre").inner_text().startswith("bakery approvals grant ")
    assert page.get_by_role("button", name="Run it again").is_visible()


def test_suggested_arguments_are_applied(open_page: OpenPage) -> None:
    page = open_command(open_page, "orders/create")
    page.get_by_role("tab", name="JSON").click()
    page.get_by_label("The request as JSON").fill('{"custmer": "Ada"}')
    run_command(page)
    page.get_by_role("button", name="Apply").click()
    run_command(page)
    assert page.locator(".card dd").nth(1).inner_text() == "Ada"


# ------------------------------------------------------------------ history and secrets


def test_history_has_no_secrets_and_fills_the_form(open_page: OpenPage) -> None:
    page = open_command(open_page, "orders/create")
    field(page, "customer").fill("Ada")
    field(page, "api_key").fill("sk-very-secret")
    page.get_by_role("switch").click()
    run_command(page)
    assert "true" in page.locator(".card").first.inner_text()
    for language in ("curl", "Python", "MCP", "CLI"):
        page.get_by_role("tab", name=language, exact=True).click()
        line = page.locator(".call pre").inner_text()
        assert "sk-very-secret" not in line
        assert "<api_key>" in line
    stored = page.evaluate(
        "JSON.stringify({...localStorage}) + JSON.stringify({...sessionStorage})"
    )
    assert "sk-very-secret" not in stored
    page.reload()
    page.get_by_role("tab", name="History").click()
    page.locator(".past .ex").first.click()
    assert field(page, "customer").input_value() == "Ada"
    assert field(page, "api_key").input_value() == ""
    assert page.get_by_role("switch").get_attribute("aria-checked") == "true"
    page.get_by_role("tab", name="History").click()
    page.get_by_role("button", name="Clear the history").click()
    assert page.locator(".past .ex").count() == 0
    page.reload()
    page.get_by_role("tab", name="History").click()
    assert "No calls" in page.locator(".past").inner_text()


# ------------------------------------------------------------------ everybody can use it

STATES = {
    "": None,
    "orders/create": None,
    "orders/list-orders": "run",
    "kitchen/media": "run",
    "kitchen/report": "run",
    "orders/cancel": "run",
    "!resources/bakery%3A%2F%2Foven": "run",
    "kitchen/bake": "wait",
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 360])
def test_axe_finds_no_problems(open_page: OpenPage, scheme: str, width: int) -> None:
    axe = (node.install(node.AXE) / "node_modules/axe-core/axe.min.js").read_text("utf-8")
    for path, action in STATES.items():
        page = open_page(path, width=width, color_scheme=scheme, reduced_motion="reduce")
        if path:
            page.locator("main h1").wait_for()
        if action == "run":
            run_command(page)
        elif action == "wait":
            page.keyboard.press("Control+Enter")
            page.get_by_role("progressbar").wait_for()
        page.evaluate(axe + ";0")
        found = page.evaluate(
            "async () => (await axe.run()).violations"
            ".map(v => v.id + ': ' + v.nodes.map(n => n.html.slice(0, 200)).join(' | '))"
        )
        assert found == [], (path, found)
        assert page.evaluate(LOW_CONTRAST) == [], path
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, path
        page.context.close()


def test_focus_is_unlike_selection(open_page: OpenPage) -> None:
    page = open_command(open_page, "orders/list-orders")
    page.keyboard.press("Escape")
    colours = page.evaluate(
        """() => {
        const link = document.activeElement, style = getComputedStyle(link);
        return [style.outlineColor, style.backgroundColor,
                getComputedStyle(link.querySelector('.name')).color];
        }"""
    )
    assert len(set(colours)) == 3
