"""The page of the HTTP API, in a real browser, against a server that has everything."""

from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from tests.integration.page import setup_browser
from tests.integration.page.mock import HOSTILE, PAGE, TOKEN, Mock, Request

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

# One process, one browser: starting it is what costs.
pytestmark = pytest.mark.xdist_group("page")
PATIENCE = 5_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    reason = setup_browser.lacking()
    if reason:
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        started = play.chromium.launch(
            executable_path=setup_browser.CHROMIUM, args=list(setup_browser.ARGS)
        )
        yield started
        started.close()


@pytest.fixture(scope="module")
def mock() -> Iterator[Mock]:
    server = Mock().start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def opened(browser: Browser, mock: Mock) -> Iterator[Callable[..., Page]]:
    """Opens the page; afterwards nothing may have gone wrong that the page did not say."""
    mock.calm()
    wrong: list[str] = []
    contexts: list[Any] = []

    def note(message: Any) -> None:
        # Chromium reports every answer of 400 and above; those are meant.
        if message.type in ("error", "warning") and "Failed to load resource" not in message.text:
            wrong.append(f"{message.type}: {message.text}")

    def seen(request: Any) -> None:
        if not request.url.startswith((mock.url, "data:")):
            wrong.append(f"request to {request.url}")

    def open_page(path: str = "", width: int = 1440, height: int = 900, **more: Any) -> Page:
        script = more.pop("script", "")
        context = browser.new_context(viewport={"width": width, "height": height}, **more)
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        page.on("console", note)
        page.on("pageerror", lambda error: wrong.append(f"uncaught: {error}"))
        page.on("request", seen)
        page.add_init_script(
            "addEventListener('securitypolicyviolation', e =>"
            " console.error('policy: ' + e.violatedDirective + ' ' + e.blockedURI));" + script
        )
        page.goto(mock.url + (f"#/{path}" if path else ""))
        page.wait_for_selector("nav a:visible, h1:visible")
        return page

    yield open_page
    hacked = [page.evaluate("window.hacked") for c in contexts for page in c.pages]
    for context in contexts:
        context.close()
    assert wrong == []
    assert set(hacked) <= {None}


def run(page: Page) -> None:
    """Run the command, and wait for its answer."""
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(".answer .pill:visible")
    page.wait_for_selector(".answer:not([aria-busy])")


def last(mock: Mock) -> Request:
    return mock.requests[-1]


def names(page: Page) -> list[str]:
    return [" ".join(text.split()) for text in page.locator("nav a .name").all_inner_texts()]


def copied(page: Page, language: str) -> str:
    """What the Copy button puts on the clipboard."""
    page.get_by_role("tab", name=language, exact=True).click()
    page.get_by_role("button", name="Copy the call").click()
    page.get_by_text("Copied", exact=True).first.wait_for()
    return page.evaluate("window.clip")


CLIP = """Object.defineProperty(
  navigator, 'clipboard', {value: {writeText: async (text) => { window.clip = text; }}});"""


def field(page: Page, label: str) -> Any:
    return page.locator(".left").get_by_label(label, exact=True)


def whole(page: Page, label: str) -> Any:
    """A field with its head and its buttons."""
    return page.locator(".left .field", has=page.get_by_label(label, exact=True)).last


# ------------------------------------------------------------------ the list


def test_the_list_has_every_command_by_group(opened: Callable[..., Page], mock: Mock) -> None:
    page = opened()
    assert page.title() == "file-tools"
    assert page.locator("nav a").count() == len(mock.catalogue["commands"])
    assert page.locator("nav h2").all_inner_texts() == ["users"]
    assert names(page)[-3:] == ["list", "create", "remove (destructive)"]
    assert "20 commands, 2 of them destructive" in page.locator("main").inner_text()


def test_words_and_kinds_narrow_the_list(opened: Callable[..., Page]) -> None:
    page = opened()
    page.keyboard.press("/")
    page.keyboard.type("user cre")
    assert names(page) == ["users create"]
    assert page.locator("nav mark").all_inner_texts()[:2] == ["user", "cre"]
    assert page.locator("#count").inner_text() == "1 of 20 commands"
    page.keyboard.press("Escape")
    assert page.locator("nav a").count() == 20
    page.keyboard.type("max_depth")  # a parameter's name
    assert names(page) == ["find-files"]
    page.keyboard.press("Escape")
    page.get_by_role("button", name="destructive", exact=True).click()
    assert names(page) == ["delete (destructive)", "remove (destructive)"]
    page.locator("#find").fill("zzz")
    assert "No matches" in page.locator("nav").inner_text()


def test_a_link_leads_to_a_command(opened: Callable[..., Page]) -> None:
    page = opened("users/create")
    assert page.locator("main h1").inner_text() == "users create"
    assert page.locator("nav [aria-current=page]").get_attribute("href") == "#/users/create"
    page.evaluate("location.hash = '#/no/such'")
    page.get_by_text("Unknown command").wait_for()
    page.go_back()
    page.locator("main h1", has_text="users create").wait_for()


# ------------------------------------------------------------------ the form


def test_every_type_of_parameter_is_sent_as_it_should(
    opened: Callable[..., Page], mock: Mock, tmp_path: Any
) -> None:
    page = opened("every")

    def group(name: str) -> Any:
        return page.locator(".left").get_by_role("group", name=name, exact=True)

    field(page, "text").fill("two\nlines")
    field(page, "count").fill("7")
    field(page, "count").press("ArrowUp")
    field(page, "ratio").fill("0.5")
    field(page, "huge").fill("9007199254740993")
    page.get_by_role("switch", name="verbose").click()
    page.get_by_role("switch", name="colour").click()
    group("agreed").get_by_label("false").check()
    group("perhaps").get_by_label("true").check()
    group("level").get_by_label("high").check()
    page.locator(".left select").select_option("xxl")
    group("mixed").get_by_label("1").nth(1).check()
    page.get_by_role("button", name="Add to tags").click()
    page.keyboard.type("b")
    page.keyboard.press("Enter")
    page.keyboard.type("a")
    page.keyboard.press("Alt+ArrowUp")
    page.keyboard.press("Enter")
    page.keyboard.type("x")
    page.keyboard.press("Backspace")
    page.keyboard.press("Backspace")  # an empty row goes
    page.get_by_role("button", name="Add to numbers").click()
    page.keyboard.type("3")
    page.get_by_role("button", name="Add point").click()
    page.keyboard.type("1.5")
    field(page, "point 2").fill("north")
    field(page, "day").fill("2026-02-28")
    field(page, "moment").fill("2026-02-28T10:00:00+01:00")
    field(page, "hour").fill("10:30")
    field(page, "wait").fill("PT5M")
    page.get_by_role("button", name="Generate a new value").click()
    field(page, "mail").fill("ada@example.org")
    field(page, "file").fill("/tmp/a b")
    field(page, "secret").fill("s3")
    field(page, "bytes").fill("ü")
    blob = tmp_path / "blob"
    blob.write_bytes(b"\x00\xffhello")
    whole(page, "blob").locator("input[type=file]").set_input_files(blob)
    whole(page, "limit").get_by_role("button", name="null").click()
    group("when").get_by_label("date").check()
    page.locator(".left").get_by_label("when", exact=True).last.fill("2026-03-01")
    group("pet").get_by_label("dog").check()
    group("pet").get_by_label("name").fill("Rex")
    page.get_by_role("button", name="Add to pets").click()
    group("pets 1").get_by_label("lives").fill("8")
    page.get_by_role("button", name="Add to labels").click()
    page.keyboard.type("blue")
    field(page, "labels: value").fill("4")
    group("rule").get_by_label("match").fill("*.txt")
    page.get_by_role("button", name="Add replace").click()
    group("replace").get_by_label("old").fill("a")
    page.get_by_role("button", name="Add deep").click()
    page.get_by_role("button", name="Add one").click()
    page.get_by_role("button", name="Add two").click()
    field(page, "three").fill('{"four": 4}')
    page.get_by_role("button", name="Add node").click()
    group("node").get_by_label("v", exact=True).fill("1")
    page.get_by_role("button", name="Add to kids").click()
    group("kids 1").get_by_label("v", exact=True).fill("2")
    field(page, "anything").fill("[1, null]")
    field(page, "free").fill('{"a": {"b": 1}}')
    field(page, "__proto__").fill("own")
    run(page)
    body = last(mock).body
    assert re.fullmatch(
        r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", body.pop("key")
    )
    assert body == {
        "text": "two\nlines",
        "count": 8,
        "ratio": 0.5,
        "huge": 9007199254740993,
        "verbose": True,
        "colour": False,
        "agreed": False,
        "perhaps": True,
        "level": "high",
        "size": "xxl",
        "mixed": "1",
        "tags": ["a", "b"],
        "numbers": [3],
        "point": [1.5, "north"],
        "day": "2026-02-28",
        "moment": "2026-02-28T10:00:00+01:00",
        "hour": "10:30",
        "wait": "PT5M",
        "mail": "ada@example.org",
        "file": "/tmp/a b",
        "secret": "s3",
        "bytes": "ü",
        "blob": "AP9oZWxsbw==",
        "limit": None,
        "when": "2026-03-01",
        "pet": {"kind": "dog", "name": "Rex"},
        "pets": [{"kind": "cat", "lives": 8}],
        "labels": {"blue": 4},
        "rule": {"match": "*.txt", "replace": {"old": "a"}},
        "deep": {"one": {"two": {"three": {"four": 4}}}},
        "node": {"v": 1, "kids": [{"v": 2}]},
        "anything": [1, None],
        "free": {"a": {"b": 1}},
        "__proto__": "own",
    }

    # The same object comes out of the JSON tab, and goes in again.
    page.get_by_role("tab", name="JSON").click()
    area = page.get_by_label("The request as JSON")
    request = json.loads(area.input_value())
    area.fill("{}")
    area.fill(json.dumps(request))
    page.get_by_role("tab", name="Form").click()
    run(page)
    again = last(mock).body
    assert again.pop("key")
    assert again == body


def test_what_is_not_filled_in_is_left_out(opened: Callable[..., Page], mock: Mock) -> None:
    page = opened("find-files")
    assert field(page, "root").get_attribute("placeholder") == "."
    assert page.get_by_text("off, by default").is_visible()
    field(page, "pattern").fill("x")
    page.get_by_role("switch").click()
    page.get_by_role("switch").click()
    run(page)
    assert last(mock) == Request(
        "find-files", {}, {"pattern": "x", "include_hidden": False}, "application/json"
    )
    whole(page, "include_hidden").get_by_role("button", name="reset").click()
    run(page)
    assert last(mock).body == {"pattern": "x"}


def test_an_empty_text_and_an_empty_list_can_be_meant(
    opened: Callable[..., Page], mock: Mock
) -> None:
    page = opened("every")
    whole(page, "text").get_by_title("Send an empty text").click()
    whole(page, "Add to tags").get_by_title("Send an empty list").click()
    run(page)
    assert last(mock).body == {"text": "", "tags": [], "rule": {}}


def test_the_form_doubts_and_the_server_decides(opened: Callable[..., Page], mock: Mock) -> None:
    page = opened("every")
    field(page, "count").fill("200")
    field(page, "mail").fill("nobody")
    field(page, "huge").fill("1e999")
    hints = page.locator(".left .hint:visible").all_inner_texts()
    assert hints == ["Outside 1–100", "Not a number", "Expected email, as in name@example.org"]
    run(page)
    assert last(mock).body == {"count": 200, "mail": "nobody", "huge": "1e999", "rule": {}}


def test_json_that_does_not_fit_the_form_is_kept(opened: Callable[..., Page], mock: Mock) -> None:
    page = opened("find-files")
    page.get_by_role("tab", name="JSON").click()
    area = page.get_by_label("The request as JSON")
    area.fill(
        '{"pattern": ["a"], "max_depth": "5", "unknown": {"a": 1}, "n": 12345678901234567890}'
    )
    page.get_by_role("tab", name="Form").click()
    assert page.get_by_text("The form cannot show this value").first.is_visible()
    assert page.get_by_text("not in the schema").is_visible()
    run(page)
    assert last(mock).body == {
        "pattern": ["a"],
        "max_depth": "5",
        "unknown": {"a": 1},
        "n": 12345678901234567890,
    }
    page.get_by_role("tab", name="JSON").click()
    area.fill("{nonsense")
    count = len(mock.requests)
    page.keyboard.press("Control+Enter")
    assert page.locator(".left .hint:visible").count() == 1
    assert len(mock.requests) == count


def test_an_example_fills_the_form(opened: Callable[..., Page], mock: Mock) -> None:
    page = opened("find-files")
    page.get_by_role("group", name="Examples").get_by_role("button").click()
    run(page)
    assert last(mock).body == {"pattern": "*.py", "root": "src", "include_hidden": True}
    page.evaluate("location.hash = '#/rename'")
    page.locator("main h1", has_text="rename").wait_for()
    first, second = page.get_by_role("group", name="Examples").get_by_role("button").all()
    assert second.is_disabled()  # it reads a file
    first.click()
    run(page)
    assert last(mock).body == {"rule": {"match": "*.txt", "ending": ".md"}}


# ------------------------------------------------------------------ answers


def test_records_are_a_table(opened: Callable[..., Page]) -> None:
    page = opened("find-files")
    field(page, "pattern").fill("*.py")
    run(page)
    grid = page.get_by_role("grid")
    assert grid.locator("th").all_inner_texts() == ["path", "size", "changed"]
    assert grid.locator("tbody tr:not(.pad-row)").count() == 5
    assert (
        grid.locator("td", has_text="1812").evaluate("e => getComputedStyle(e).textAlign")
        == "right"
    )
    assert "OK\n200\n5 rows\n12 ms" in page.locator(".sum").inner_text()
    grid.locator("td").filter(has_text="a-very-long").click()
    assert page.locator(".peek").inner_text().count("a-very-long-folder-name") == 6
    page.keyboard.press("ArrowRight")
    assert page.locator(".peek").inner_text().split() == ["size", "9060"]
    page.get_by_role("tab", name="Envelope").click()
    assert '"duration_ms": 12' in page.locator(".raw").inner_text()


def test_ten_thousand_rows_do_not_freeze_the_page(opened: Callable[..., Page]) -> None:
    page = opened("big")
    began = time.monotonic()
    run(page)
    assert time.monotonic() - began < 5
    rows = page.locator("tbody tr:not(.pad-row)")
    assert 20 < rows.count() < 120
    page.locator(".grid").evaluate("e => { e.scrollTop = e.scrollHeight; }")
    page.get_by_text("row 9999", exact=True).wait_for()
    assert rows.count() < 120
    page.get_by_text("row 9999", exact=True).click()
    page.keyboard.press("Control+Home")
    page.get_by_text("row 0", exact=True).wait_for()
    assert page.evaluate("document.activeElement.closest('tr').ariaRowIndex") == "2"
    page.get_by_role("tab", name="Envelope").click()
    assert page.locator(".raw pre").inner_text().count("\n") < 150


def test_other_answers(opened: Callable[..., Page]) -> None:
    page = opened("users/create")
    field(page, "name").fill("Ada")
    field(page, "mail").fill("ada@example.org")
    run(page)
    assert page.locator(".card dt").all_inner_texts() == ["name", "mail", "id", "groups", "quota"]

    def answer(path: str) -> str:
        page.evaluate(f"location.hash = '#/{path}'")
        page.locator("main h1", has_text=path.replace("/", " ")).wait_for()
        run(page)
        return page.locator(".answer .body").first.inner_text()

    assert "9007199254740993" in answer("count")  # every digit of it
    assert "It is more than usual." in page.locator(".note").inner_text()
    assert "The command returned nothing." in answer("nothing")
    page.get_by_role("switch").click()
    assert "No results" in answer("nothing")
    assert "[ 2 items ]" in answer("nested")
    page.locator(".tree summary", has_text="inner: ").first.click()
    page.locator(".tree summary", has_text="list: ").first.click()
    page.get_by_role("button", name="Show more of 250").click()
    assert page.locator(".tree .leaf").count() >= 200
    assert "without an envelope" in answer("broken")
    assert page.locator(".answer .body h1").count() == 0
    assert "cannot be reached" in answer("unplug")
    assert "a human's approval" in answer("deploy")
    assert page.locator(".fix pre").inner_text() == "file-tools deploy"
    assert "use find-files" in (answer("old") and page.locator(".left .note").inner_text())


# ------------------------------------------------------------------ errors


def test_an_error_stands_at_its_field_and_can_be_mended(
    opened: Callable[..., Page], mock: Mock
) -> None:
    page = opened("find-files")
    field(page, "max_depth").fill("900")
    run(page)
    assert last(mock).body == {"max_depth": 900}
    errors = page.locator(".left .err:visible").all_inner_texts()
    assert errors == ["'pattern' is required", "'max_depth': 900 is not 1–100"]
    assert page.evaluate("document.activeElement.labels[0].textContent") == "pattern"
    assert field(page, "pattern").get_attribute("aria-invalid") == "true"
    assert page.locator(".fault li").count() == 2
    # A line with a gap in it cannot be applied, only copied.
    assert page.get_by_role("button", name="Apply").count() == 0
    assert "'<pattern>'" in page.locator(".fix pre").inner_text()
    page.keyboard.type("*.py")
    assert page.locator(".left .err:visible").count() == 1
    run(page)
    assert "E1003" in page.locator(".sum").inner_text()
    page.get_by_role("button", name="Apply").click()
    assert field(page, "max_depth").input_value() == "100"
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_role("grid").wait_for()
    assert last(mock).body == {"pattern": "*.py", "max_depth": 100}
    assert page.locator(".left .err:visible").count() == 0


def test_errors_find_fields_inside_others(opened: Callable[..., Page]) -> None:
    page = opened("rename")
    run(page)
    errors = page.locator(".left .err:visible").all_inner_texts()
    assert errors == ["'rule.match' is required", "too short"]  # the second one had to be opened
    page.evaluate("location.hash = '#/checksum'")
    page.get_by_role("button", name="Add to files").click()
    page.keyboard.type("a.txt")
    page.keyboard.press("Enter")
    page.keyboard.type("b.txt")
    run(page)
    assert "no file 'b.txt'" in page.locator(".item").nth(1).inner_text()
    assert page.evaluate("document.activeElement.value") == "b.txt"


def test_a_destructive_command_is_marked_tried_and_confirmed(
    opened: Callable[..., Page], mock: Mock
) -> None:
    page = opened("delete")
    assert page.locator(".badge.bad").inner_text() == "destructive"
    page.get_by_role("group", name="Examples").get_by_role("button").click()
    run(page)
    assert last(mock) == Request(
        "delete", {}, {"files": ["old.log"]}, "application/json"
    )  # its --yes is not ours
    page.locator(".item textarea").fill("a b.log")
    page.get_by_role("button", name="Dry run", exact=True).click()
    page.get_by_text("Dry run: nothing ran", exact=True).wait_for()
    assert last(mock).query == {"dry_run": "true"}
    run(page)
    assert last(mock).query == {}
    assert "needs a confirmation" in page.locator(".fault").inner_text()
    page.locator(".item textarea").fill("other.log")  # what was confirmed is not this
    assert page.get_by_role("button", name="Confirm and run").is_disabled()
    page.locator(".item textarea").fill("a b.log")
    page.get_by_role("button", name="Confirm and run").click()
    page.get_by_role("grid").wait_for()
    assert last(mock) == Request(
        "delete", {"yes": "true"}, {"files": ["a b.log"]}, "application/json"
    )


def test_a_token_is_asked_for_and_used(opened: Callable[..., Page], mock: Mock) -> None:
    page = opened("guarded", script=CLIP)
    run(page)
    page.get_by_label("Bearer token").fill("wrong")
    page.keyboard.press("Enter")
    page.get_by_text("rejected this token").wait_for()
    page.get_by_label("Bearer token").fill(TOKEN)
    page.keyboard.press("Enter")
    page.locator(".card").wait_for()
    assert page.evaluate("Object.keys(localStorage).join()").find("token") < 0
    text = copied(page, "curl")
    assert TOKEN not in text
    assert "Authorization: Bearer $TOKEN" in text

    mock.tools_status = 401
    page = opened()
    page.get_by_label("Bearer token").fill(TOKEN)
    page.get_by_role("button", name="Use it").click()
    page.locator("nav a").first.wait_for()


def test_when_the_commands_cannot_be_read(opened: Callable[..., Page], mock: Mock) -> None:
    mock.tools_status = 500
    page = opened(width=390)
    assert "answered 500" in page.locator("main").inner_text()
    mock.tools_status, mock.catalogue = 200, {"no": "commands"}
    page.get_by_role("button", name="Try again").click()
    page.get_by_text("GET /tools is invalid").wait_for()
    mock.catalogue = {"app": "empty", "commands": []}
    page.get_by_role("button", name="Try again").click()
    page.get_by_text("No commands yet").first.wait_for()
    mock.calm()
    page = opened("count")
    page.context.set_offline(True)
    run(page)
    assert "The server cannot be reached" in page.locator(".answer").inner_text()
    page.context.set_offline(False)
    page.get_by_role("button", name="Try again").click()
    page.locator(".answer", has_text="9007199254740993").wait_for()


# ------------------------------------------------------------------ streams


def test_rows_come_as_they_are_made(opened: Callable[..., Page], mock: Mock) -> None:
    page = opened("search")
    field(page, "text").fill("TODO")
    field(page, "rows").fill("4")
    field(page, "delay").fill("0.2")
    page.keyboard.press("Control+Enter")
    page.get_by_text("src/file_0.py").wait_for()
    assert page.get_by_role("button", name="Stop").is_visible()
    assert page.get_by_text("src/file_3.py").count() == 0
    page.locator(".sum", has_text="Done").wait_for()
    assert page.locator("tbody tr:not(.pad-row)").count() == 4
    assert last(mock).accept.startswith("application/x-ndjson")
    field(page, "delay").fill("0")
    page.get_by_role("switch", name="fail").click()
    run(page)
    page.get_by_role("heading", name="The disk went away.").wait_for()
    assert "4 rows arrived before the failure" in page.locator(".answer").inner_text()
    assert page.locator("tbody tr:not(.pad-row)").count() == 4


def test_one_call_at_a_time(opened: Callable[..., Page], mock: Mock) -> None:
    page = opened("slow")
    for _ in range(3):
        page.keyboard.press("Control+Enter")
    page.get_by_text("Running…").wait_for()
    page.get_by_role("button", name="Stop").click()
    page.get_by_text("The command may have run.").wait_for()
    assert [request.path for request in mock.requests] == ["slow"]


def test_a_stream_can_be_stopped(opened: Callable[..., Page], mock: Mock) -> None:
    page = opened("search")
    field(page, "text").fill("x")
    field(page, "rows").fill("100000")
    field(page, "delay").fill("0.01")
    page.keyboard.press("Control+Enter")
    page.get_by_text("src/file_9.py").wait_for()
    page.get_by_role("button", name="Stop").click()
    page.locator(".sum", has_text="Stopped").wait_for()
    assert page.locator("tbody tr:not(.pad-row)").count() >= 10
    until = time.monotonic() + 5
    while not mock.stopped_streams and time.monotonic() < until:
        time.sleep(0.02)
    assert mock.stopped_streams == 1
    assert page.get_by_role("button", name="Run", exact=True).is_visible()


# ------------------------------------------------------------------ the same call elsewhere

AWKWARD = 'it\'s $HOME `x` "q" \\ ü\n!é'


def test_the_call_is_copied_in_four_languages(opened: Callable[..., Page], mock: Mock) -> None:
    page = opened("find-files", script=CLIP)
    field(page, "pattern").fill(AWKWARD)
    field(page, "root").fill("-x")
    page.get_by_role("switch").click()
    page.get_by_role("switch").click()
    page.get_by_role("button", name="detailed").click()
    words = ["file-tools", "find-files", AWKWARD, "--root=-x", "--no-include-hidden"]
    words += ["--response-format", "detailed"]
    cli = copied(page, "CLI")
    assert shlex.split(cli) == words
    body = {"pattern": AWKWARD, "root": "-x", "include_hidden": False}
    curl = copied(page, "curl")
    one_line = shlex.split(curl.replace("\\\n", " "))
    url = mock.url + "tools/find-files?response_format=detailed"
    assert one_line[:4] == ["curl", "-X", "POST", url]
    assert one_line[4:7] == ["-H", "Content-Type: application/json", "-d"]
    assert json.loads(one_line[7]) == body

    def by_shell(text: str) -> list[str]:
        script = "show() { printf '%s\\0' \"$@\"; }\n" + re.sub(r"^\S+", "show", text)
        done = subprocess.run(["sh", "-c", script], capture_output=True, check=True)
        return done.stdout.decode().split("\0")[:-1]

    assert by_shell(cli) == words[1:]
    assert by_shell(curl) == one_line[1:]
    call = ast.parse(copied(page, "Python"), mode="eval").body
    assert isinstance(call, ast.Call)
    assert ast.unparse(call.func) == "app.call"
    assert [ast.literal_eval(part) for part in call.args] == ["find-files"]
    output = {part.arg: ast.literal_eval(part.value) for part in call.keywords}
    assert output == {**body, "detailed": True}
    message = json.loads(copied(page, "MCP"))
    assert message["method"] == "tools/call"
    options = {"io.tooli/options": {"detailed": True}}
    assert message["params"] == {"name": "find_files", "arguments": body, "_meta": options}


def test_what_words_cannot_say_goes_in_as_json(opened: Callable[..., Page]) -> None:
    page = opened("every", script=CLIP)
    page.get_by_role("tab", name="JSON").click()
    area = page.get_by_label("The request as JSON")

    def cli(values: dict[str, Any]) -> list[str]:
        area.fill(json.dumps(values))
        return shlex.split(copied(page, "CLI"))[2:]

    rule = {"match": "*"}
    assert cli({"text": "-t", "tags": ["a", "-b"], "point": [1, "x"], "rule": rule}) == [
        *("--tags", "a", "--tags=-b", "--point", "1", "x", "--rule", '{"match":"*"}', "--", "-t")
    ]
    given = {"text": "t", "limit": None, "rule": rule}
    words = cli(given)
    assert words[0] == "--input"
    assert json.loads(words[1]) == given
    python = copied(page, "Python")
    assert 'limit=None, rule={"match": "*"}' in python


def test_copying_without_a_clipboard(opened: Callable[..., Page]) -> None:
    none = "Object.defineProperty(navigator, 'clipboard', {value: undefined});"
    heard = """document.addEventListener('copy', () => {
      window.clip = String(getSelection()) || document.activeElement.value; });"""
    page = opened("users/list", script=none + heard)
    assert copied(page, "CLI") == "file-tools users list"


# ------------------------------------------------------------------ looks, keys, hostile text


def test_light_dark_and_a_choice_that_is_remembered(opened: Callable[..., Page]) -> None:
    page = opened(color_scheme="dark")

    def lightness() -> float:
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(map(int, re.findall(r"\d+", colour)[:3])) / 3

    assert lightness() < 60
    page.locator("#theme").click()
    assert lightness() > 200
    page.reload()
    page.locator("nav a").first.wait_for()
    assert lightness() > 200
    page.locator("#theme").click()
    assert lightness() < 60
    refuses = "Object.defineProperty(window, 'localStorage', {get() { throw new Error('no'); }});"
    page = opened(color_scheme="light", script=refuses)
    assert lightness() > 200
    page.locator("#theme").click()
    page.locator("#theme").click()
    assert lightness() < 60


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast(opened: Callable[..., Page], scheme: str) -> None:
    page = opened("delete", color_scheme=scheme)
    run(page)
    poor = page.evaluate(CONTRAST)
    assert poor == []
    page.evaluate("location.hash = '#/every'")
    page.locator("main h1", has_text="every").wait_for()
    assert page.evaluate(CONTRAST) == []


CONTRAST = """() => {
  const shade = (colour) => {
    const pen = document.createElement('canvas').getContext('2d');
    pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1);
    return [...pen.getImageData(0, 0, 1, 1).data];
  };
  const linear = (v) => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
  const light = (colour) => {
    const [r, g, b] = colour.map((v) => linear(v / 255));
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const poor = new Set();
  for (const el of document.querySelectorAll('body *')) {
    if (el.closest('.sr, [disabled], script, noscript')) continue;
    if (!el.checkVisibility({opacityProperty: true})) continue;
    const words = [...el.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!words && !el.placeholder) continue;
    let back = el, ground = [0, 0, 0, 0];
    for (; back && ground[3] < 255; back = back.parentElement)
      ground = shade(getComputedStyle(back).backgroundColor);
    const ink = getComputedStyle(el, el.placeholder ? '::placeholder' : null).color;
    const [a, b] = [light(shade(ink)), light(ground)].sort((x, y) => y - x);
    const ratio = (a + .05) / (b + .05);
    if (ratio < 4.5) poor.add(`${el.tagName}.${el.className} ${ratio.toFixed(2)}`);
  }
  return [...poor];
}"""


def test_a_phone(opened: Callable[..., Page]) -> None:
    page = opened(width=360, height=740, has_touch=True, is_mobile=True)

    def overflow() -> int:
        return page.evaluate("document.documentElement.scrollWidth - innerWidth")

    assert page.locator("main").is_hidden()
    assert overflow() <= 0
    page.locator("nav a", has_text="every").first.tap()
    page.locator("main h1", has_text="every").wait_for()
    assert page.locator(".sidebar").is_hidden()
    for name in ("Add to tags", "Add to pets", "Add to labels", "Add point", "Add deep"):
        page.get_by_role("button", name=name).tap()
    page.get_by_role("button", name="Add one").tap()
    page.get_by_role("button", name="Add two").tap()
    assert overflow() <= 0
    page.get_by_role("button", name="All commands").tap()
    page.locator(".sidebar").wait_for()
    for path in ("find-files", "users/list", "count", "nested"):
        page.evaluate(f"location.hash = '#/{path}'")
        page.wait_for_selector("main h1:visible")
        if path == "find-files":
            field(page, "pattern").fill("*" + "x" * 90)
        page.get_by_role("button", name="Run", exact=True).tap()
        page.wait_for_selector(".answer .pill:visible")
        assert overflow() <= 0, path
        page.get_by_role("tab", name="Envelope").tap()
        assert overflow() <= 0, path


def test_a_journey_without_a_mouse(opened: Callable[..., Page], mock: Mock) -> None:
    page = opened(reduced_motion="reduce")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the command"
    assert page.evaluate("document.activeElement.getBoundingClientRect().top") >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.keyboard.press("/")
    page.keyboard.type("users")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(outline) == "solid"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.locator("main h1", has_text="users create").wait_for()
    page.keyboard.type("Ada")  # the first field has the focus
    page.keyboard.press("Tab")  # past "reset", which the head of the field holds
    while page.evaluate("document.activeElement.tagName") != "TEXTAREA":
        page.keyboard.press("Tab")
    page.keyboard.type("ada@example.org")
    while page.evaluate("document.activeElement.type") != "radio":
        page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.keyboard.press("ArrowRight")
    run(page)
    assert last(mock).body == {"name": "Ada", "mail": "ada@example.org", "role": "writer"}
    page.locator("#live", has_text="Succeeded").wait_for(state="attached")
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.getAttribute('href')") == "#/users/create"
    assert (
        page.evaluate(
            "getComputedStyle(document.querySelector('.sw i') || document.body).transitionDuration"
        )
        == "0s"
    )


def test_every_control_has_a_name(opened: Callable[..., Page]) -> None:
    page = opened("every")
    for name in ("Add to tags", "Add to pets", "Add to labels", "Add point"):
        page.get_by_role("button", name=name).click()
    nameless = page.evaluate(
        """() => [...document.querySelectorAll('button, input, textarea, select, a')]
        .filter(e => e.checkVisibility() && !e.closest('[aria-hidden]') && e.ariaHidden !== 'true')
        .filter(e => !(e.ariaLabel || e.textContent.trim() || e.labels?.length))
        .map(e => e.outerHTML)"""
    )
    assert nameless == []
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))
    controlled = page.locator("[aria-controls]").evaluate_all(
        "all => all.map(e => e.ariaControlsElements.length)"
    )
    assert set(controlled) == {1}


def test_hostile_text_is_only_text(opened: Callable[..., Page], mock: Mock) -> None:
    page = opened()
    page.locator("nav a", has_text="onerror").click()
    page.locator("main h1").wait_for()
    assert page.locator("main h1").inner_text() == HOSTILE.replace(" ", "_")
    page.locator("details summary").first.click()
    page.locator("#find").fill("<img")
    page.get_by_role("group", name="Examples").get_by_role("button").click()
    run(page)
    assert last(mock).body == {"p" + HOSTILE: HOSTILE}
    assert page.locator(".fault h3").inner_text() == HOSTILE
    for language in ("CLI", "curl", "Python", "MCP"):
        page.get_by_role("tab", name=language).click()
    page.get_by_role("tab", name="Envelope").click()
    page.evaluate("location.hash = '#/users/list'")
    page.locator("main h1", has_text="users list").wait_for()
    run(page)
    page.get_by_role("gridcell", name=HOSTILE).first.click()
    page.evaluate(
        "location.hash = '#/' + encodeURIComponent('<img src=x onerror=window.hacked=1>')"
    )
    page.get_by_text("Unknown command").wait_for()
    assert page.locator("img").count() == 0
    assert page.evaluate("window.hacked") is None


def test_the_page_stands_alone() -> None:
    text = PAGE.read_text("utf-8")
    assert text.count('nonce="__NONCE__"') == text.count("__NONCE__") == 2
    assert not re.search(r"\.innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", text)
    assert not re.search(r"\sstyle=|\son[a-z]+=\"", text)
    assert len(text.encode()) < 110_000
    addresses = set(re.findall(r"https?://[\w.-]+", text))
    assert addresses <= {"http://www.w3.org", "https://example.org"}
