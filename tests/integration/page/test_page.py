"""The page of the HTTP API in a real browser, with a mock server."""

from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from tests.integration.page.browser_pages import LOW_CONTRAST, OpenPage, page_opener, run_command
from tests.integration.page.mock_server import HOSTILE, TOKEN, MockServer, Request

from tooli.http.html_page import read_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture(scope="module")
def mock() -> Iterator[MockServer]:
    server = MockServer().start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def open_page(browser: Browser, mock: MockServer) -> Iterator[OpenPage]:
    """Return a function that opens the page."""
    mock.reset()
    with page_opener(browser, mock.url) as open_page:
        yield open_page


def last_request(mock: MockServer) -> Request:
    return mock.requests[-1]


def listed_commands(page: Page) -> list[str]:
    """Return the names in the list of commands."""
    return [" ".join(text.split()) for text in page.locator("nav a .name").all_inner_texts()]


def copy_call(page: Page, language: str) -> str:
    """Click the Copy button; return the text on the clipboard."""
    page.get_by_role("tab", name=language, exact=True).click()
    page.get_by_role("button", name="Copy the call").click()
    page.get_by_text("Copied", exact=True).first.wait_for()
    return page.evaluate("window.copiedText")


FAKE_CLIPBOARD = """Object.defineProperty(
  navigator, 'clipboard', {value: {writeText: async (text) => { window.copiedText = text; }}});"""


def field(page: Page, label: str) -> Any:
    """Return the input of a parameter."""
    return page.locator(".left").get_by_label(label, exact=True)


def field_block(page: Page, label: str) -> Any:
    """Return the input of a parameter with its label and its buttons."""
    return page.locator(".left .field", has=page.get_by_label(label, exact=True)).last


# ------------------------------------------------------------------ list of commands


def test_commands_are_listed_by_group(open_page: OpenPage, mock: MockServer) -> None:
    page = open_page()
    assert page.title() == "file-tools"
    assert page.locator("nav a").count() == len(mock.tools_document["commands"])
    assert page.locator("nav h2").all_inner_texts() == ["users"]
    assert listed_commands(page)[-3:] == ["list", "create", "remove (destructive)"]
    assert "21 commands, 2 of them destructive" in page.locator("main").inner_text()


def test_list_is_filtered_by_words_and_kinds(open_page: OpenPage) -> None:
    page = open_page()
    page.keyboard.press("/")
    page.keyboard.type("user cre")
    assert listed_commands(page) == ["users create"]
    assert page.locator("nav mark").all_inner_texts()[:2] == ["user", "cre"]
    assert page.locator("#count").inner_text() == "1 of 21 commands"
    page.keyboard.press("Escape")
    assert page.locator("nav a").count() == 21
    page.keyboard.type("max_depth")  # a parameter's name
    assert listed_commands(page) == ["find-files"]
    page.keyboard.press("Escape")
    page.get_by_role("button", name="destructive", exact=True).click()
    assert listed_commands(page) == ["delete (destructive)", "remove (destructive)"]
    page.locator("#find").fill("zzz")
    assert "No matches" in page.locator("nav").inner_text()


def test_link_opens_a_command(open_page: OpenPage) -> None:
    page = open_page("users/create")
    assert page.locator("main h1").inner_text() == "users create"
    assert page.locator("nav [aria-current=page]").get_attribute("href") == "#/users/create"
    page.evaluate("location.hash = '#/no/such'")
    page.get_by_text("Unknown command").wait_for()
    page.go_back()
    page.locator("main h1", has_text="users create").wait_for()


# ------------------------------------------------------------------ form


def test_form_has_a_field_for_every_parameter_type(
    open_page: OpenPage, mock: MockServer, tmp_path: Any
) -> None:
    page = open_page("every")

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
    page.keyboard.press("Backspace")  # removes the empty row
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
    field_block(page, "blob").locator("input[type=file]").set_input_files(blob)
    field_block(page, "limit").get_by_role("button", name="null").click()
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
    run_command(page)
    body = last_request(mock).body
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

    # the JSON tab contains the same object, and accepts it
    page.get_by_role("tab", name="JSON").click()
    area = page.get_by_label("The request as JSON")
    request = json.loads(area.input_value())
    area.fill("{}")
    area.fill(json.dumps(request))
    page.get_by_role("tab", name="Form").click()
    run_command(page)
    second_body = last_request(mock).body
    assert second_body.pop("key")
    assert second_body == body


def test_files_are_chosen_dropped_and_sent_as_a_form(
    open_page: OpenPage, mock: MockServer, tmp_path: Any
) -> None:
    page = open_page("attach")
    names = ("a.png", 'b "2".txt', "c.bin")
    for name in names:
        (tmp_path / name).write_bytes(name.encode() + b"\r\n\xff\x00")
    chooser = field_block(page, "picture").locator("input[type=file]")
    chooser.set_input_files(tmp_path / names[0])
    assert field(page, "picture").input_value() == "<file a.png>"
    page.get_by_role("button", name="Add to pages").click()
    drop = """(el, name) => {
      const data = new DataTransfer();
      const bytes = new Uint8Array([...new TextEncoder().encode(name), 13, 10, 255, 0]);
      data.items.add(new File([bytes], name));
      for (const type of ['dragover', 'drop'])
        el.dispatchEvent(
          new DragEvent(type, {dataTransfer: data, bubbles: true, cancelable: true}));
    }"""
    page.get_by_label("pages 1", exact=True).evaluate(drop, names[1])
    page.get_by_role("button", name="Add to pages").click()
    page.get_by_label("pages 2", exact=True).evaluate(drop, names[2])
    field(page, "count").fill("3")
    line = page.locator(".call pre").inner_text()
    assert "-F picture=@a.png" in line
    assert """-F 'count="3";type=application/json'""" in line
    run_command(page)
    sent = [[name, name.encode() + b"\r\n\xff\x00"] for name in names]
    body = last_request(mock).body
    assert body["pages"][0][0] == "b %222%22.txt"
    body["pages"][0][0] = names[1]
    assert body == {"picture": sent[:1], "pages": sent[1:], "count": 3}
    page.get_by_role("tab", name="History").click()
    page.locator(".past .ex").first.click()
    assert field(page, "picture").input_value() == ""
    field(page, "picture").fill("plain text")
    run_command(page)
    assert last_request(mock).body == {"picture": "plain text", "count": 3}


def test_empty_fields_are_not_sent(open_page: OpenPage, mock: MockServer) -> None:
    page = open_page("find-files")
    assert field(page, "root").get_attribute("placeholder") == "."
    assert page.get_by_text("off, by default").is_visible()
    field(page, "pattern").fill("x")
    page.get_by_role("switch").click()
    page.get_by_role("switch").click()
    run_command(page)
    assert last_request(mock) == Request(
        "find-files", {}, {"pattern": "x", "include_hidden": False}, "application/json"
    )
    field_block(page, "include_hidden").get_by_role("button", name="reset").click()
    run_command(page)
    assert last_request(mock).body == {"pattern": "x"}


def test_empty_text_and_empty_list_can_be_sent(open_page: OpenPage, mock: MockServer) -> None:
    page = open_page("every")
    field_block(page, "text").get_by_title("Send an empty text").click()
    field_block(page, "Add to tags").get_by_title("Send an empty list").click()
    run_command(page)
    assert last_request(mock).body == {"text": "", "tags": [], "rule": {}}


def test_invalid_values_show_a_hint_and_are_sent(open_page: OpenPage, mock: MockServer) -> None:
    page = open_page("every")
    field(page, "count").fill("200")
    field(page, "mail").fill("nobody")
    field(page, "huge").fill("1e999")
    hints = page.locator(".left .hint:visible").all_inner_texts()
    assert hints == ["Outside 1–100", "Not a number", "Expected email, as in name@example.org"]
    run_command(page)
    assert last_request(mock).body == {"count": 200, "mail": "nobody", "huge": "1e999", "rule": {}}


def test_json_that_the_form_cannot_show_is_kept(open_page: OpenPage, mock: MockServer) -> None:
    page = open_page("find-files")
    page.get_by_role("tab", name="JSON").click()
    area = page.get_by_label("The request as JSON")
    area.fill(
        '{"pattern": ["a"], "max_depth": "5", "unknown": {"a": 1}, "n": 12345678901234567890}'
    )
    page.get_by_role("tab", name="Form").click()
    assert page.get_by_text("The form cannot show this value").first.is_visible()
    assert page.get_by_text("not in the schema").is_visible()
    run_command(page)
    assert last_request(mock).body == {
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


def test_example_fills_the_form(open_page: OpenPage, mock: MockServer) -> None:
    page = open_page("find-files")
    page.get_by_role("group", name="Examples").get_by_role("button").click()
    run_command(page)
    assert last_request(mock).body == {"pattern": "*.py", "root": "src", "include_hidden": True}
    page.evaluate("location.hash = '#/rename'")
    page.locator("main h1", has_text="rename").wait_for()
    first, second = page.get_by_role("group", name="Examples").get_by_role("button").all()
    assert second.is_disabled()  # it reads a file
    first.click()
    run_command(page)
    assert last_request(mock).body == {"rule": {"match": "*.txt", "ending": ".md"}}


# ------------------------------------------------------------------ answers


def test_records_are_shown_as_a_table(open_page: OpenPage) -> None:
    page = open_page("find-files")
    field(page, "pattern").fill("*.py")
    run_command(page)
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
    page.get_by_role("tab", name="Response").click()
    assert '"duration_ms": 12' in page.locator(".raw").inner_text()


def test_ten_thousand_rows_do_not_freeze_the_page(open_page: OpenPage) -> None:
    page = open_page("big")
    run_command(page)
    rows = page.locator("tbody tr:not(.pad-row)")
    assert 20 < rows.count() < 120
    page.locator(".grid").evaluate("e => { e.scrollTop = e.scrollHeight; }")
    page.get_by_text("row 9999", exact=True).wait_for()
    assert rows.count() < 120
    page.get_by_text("row 9999", exact=True).click()
    page.keyboard.press("Control+Home")
    page.get_by_text("row 0", exact=True).wait_for()
    assert page.evaluate("document.activeElement.closest('tr').ariaRowIndex") == "2"
    page.get_by_role("tab", name="Response").click()
    assert page.locator(".raw pre").inner_text().count("\n") < 150


def test_answers_of_other_types_are_shown(open_page: OpenPage) -> None:
    page = open_page("users/create")
    field(page, "name").fill("Ada")
    field(page, "mail").fill("ada@example.org")
    run_command(page)
    assert page.locator(".card dt").all_inner_texts() == ["name", "mail", "id", "groups", "quota"]

    def answer(path: str) -> str:
        page.evaluate(f"location.hash = '#/{path}'")
        page.locator("main h1", has_text=path.replace("/", " ")).wait_for()
        run_command(page)
        return page.locator(".answer .body").first.inner_text()

    assert "9007199254740993" in answer("count")  # without loss of digits
    assert "The number is large." in page.locator(".note").inner_text()
    assert "The command returned nothing." in answer("nothing")
    page.get_by_role("switch").click()
    assert "No results" in answer("nothing")
    assert "{ list, deep }" in answer("nested")
    page.get_by_role("gridcell", name="{ list, deep }").first.click()
    nested = page.get_by_role("region", name="The selected cell")
    assert nested.locator("dt").all_inner_texts()[0] == "list"
    assert nested.get_by_role("grid").get_attribute("aria-rowcount") == "251"
    nested.locator(".fold .fold summary").first.click()
    assert nested.get_by_text("still: true").is_visible()
    assert "something else than a result" in answer("broken")
    assert page.locator(".answer .body h1").count() == 0
    assert "cannot be reached" in answer("disconnect")
    assert "a human's approval" in answer("deploy")
    assert page.locator(".fix pre").inner_text() == "file-tools deploy"
    assert "use find-files" in (answer("old") and page.locator(".left .note").inner_text())


# ------------------------------------------------------------------ errors


def test_error_is_shown_at_its_field_and_its_fix_can_be_applied(
    open_page: OpenPage, mock: MockServer
) -> None:
    page = open_page("find-files")
    field(page, "max_depth").fill("900")
    run_command(page)
    assert last_request(mock).body == {"max_depth": 900}
    errors = page.locator(".left .err:visible").all_inner_texts()
    assert errors == ["'pattern' is required", "'max_depth': 900 is not 1–100"]
    assert page.evaluate("document.activeElement.labels[0].textContent") == "pattern"
    assert field(page, "pattern").get_attribute("aria-invalid") == "true"
    assert page.locator(".fault li").count() == 2
    # a suggestion with a placeholder cannot be applied, only copied
    assert page.get_by_role("button", name="Apply").count() == 0
    assert "'<pattern>'" in page.locator(".fix pre").inner_text()
    page.keyboard.type("*.py")
    assert page.locator(".left .err:visible").count() == 1
    run_command(page)
    assert "E1003" in page.locator(".sum").inner_text()
    page.get_by_role("button", name="Apply").click()
    assert field(page, "max_depth").input_value() == "100"
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_role("grid").wait_for()
    assert last_request(mock).body == {"pattern": "*.py", "max_depth": 100}
    assert page.locator(".left .err:visible").count() == 0


def test_errors_are_shown_at_nested_fields(open_page: OpenPage) -> None:
    page = open_page("rename")
    run_command(page)
    errors = page.locator(".left .err:visible").all_inner_texts()
    assert errors == [
        "'rule.match' is required",
        "too short",
    ]  # the page opens the group of the second one
    page.evaluate("location.hash = '#/checksum'")
    page.get_by_role("button", name="Add to files").click()
    page.keyboard.type("a.txt")
    page.keyboard.press("Enter")
    page.keyboard.type("b.txt")
    run_command(page)
    assert "no file 'b.txt'" in page.locator(".item").nth(1).inner_text()
    assert page.evaluate("document.activeElement.value") == "b.txt"


def test_destructive_command_has_a_dry_run_and_a_confirmation(
    open_page: OpenPage, mock: MockServer
) -> None:
    page = open_page("delete")
    assert page.locator(".badge.bad").inner_text() == "destructive"
    page.get_by_role("group", name="Examples").get_by_role("button").click()
    run_command(page)
    assert last_request(mock) == Request(
        "delete", {}, {"files": ["old.log"]}, "application/json"
    )  # the --yes of the example is not sent
    page.locator(".item textarea").fill("a b.log")
    page.get_by_role("button", name="Dry run", exact=True).click()
    page.get_by_text("Dry run: nothing ran", exact=True).wait_for()
    assert last_request(mock).query == {"dry_run": "true"}
    run_command(page)
    assert last_request(mock).query == {}
    assert "needs a confirmation" in page.locator(".fault").inner_text()
    page.locator(".item textarea").fill("other.log")  # other arguments need another confirmation
    assert page.get_by_role("button", name="Confirm and run").is_disabled()
    page.locator(".item textarea").fill("a b.log")
    page.get_by_role("button", name="Confirm and run").click()
    page.get_by_role("grid").wait_for()
    assert last_request(mock) == Request(
        "delete", {"yes": "true"}, {"files": ["a b.log"]}, "application/json"
    )


def test_page_asks_for_a_token(open_page: OpenPage, mock: MockServer) -> None:
    page = open_page("guarded", script=FAKE_CLIPBOARD)
    run_command(page)
    page.get_by_label("Bearer token").fill("wrong")
    page.keyboard.press("Enter")
    page.get_by_text("rejected this token").wait_for()
    page.get_by_label("Bearer token").fill(TOKEN)
    page.keyboard.press("Enter")
    page.locator(".card").wait_for()
    assert page.evaluate("Object.keys(localStorage).join()").find("token") < 0
    text = copy_call(page, "curl")
    assert TOKEN not in text
    assert "Authorization: Bearer $TOKEN" in text

    mock.tools_status = 401
    page = open_page()
    page.get_by_label("Bearer token").fill(TOKEN)
    page.get_by_role("button", name="Use it").click()
    page.locator("nav a").first.wait_for()


def test_failure_to_load_the_commands_is_shown(open_page: OpenPage, mock: MockServer) -> None:
    mock.tools_status = 500
    page = open_page(width=390)
    assert "answered 500" in page.locator("main").inner_text()
    mock.tools_status, mock.tools_document = 200, {"no": "commands"}
    page.get_by_role("button", name="Try again").click()
    page.get_by_text("GET /tools is invalid").wait_for()
    mock.tools_document = {"app": "empty", "commands": []}
    page.get_by_role("button", name="Try again").click()
    page.get_by_text("No commands yet").first.wait_for()
    mock.reset()
    page = open_page("count")
    page.context.set_offline(True)
    run_command(page)
    assert "The server cannot be reached" in page.locator(".answer").inner_text()
    page.context.set_offline(False)
    page.get_by_role("button", name="Try again").click()
    page.locator(".answer", has_text="9007199254740993").wait_for()


# ------------------------------------------------------------------ streams


def test_rows_are_shown_as_they_arrive(open_page: OpenPage, mock: MockServer) -> None:
    page = open_page("search")
    field(page, "text").fill("TODO")
    field(page, "rows").fill("4")
    field(page, "delay").fill("0.2")
    page.keyboard.press("Control+Enter")
    page.get_by_text("src/file_0.py").wait_for()
    assert page.get_by_role("button", name="Cancel").is_visible()
    assert page.get_by_text("src/file_3.py").count() == 0
    page.locator(".sum", has_text="Done").wait_for()
    assert page.locator("tbody tr:not(.pad-row)").count() == 4
    assert last_request(mock).accept.startswith("application/x-ndjson")
    field(page, "delay").fill("0")
    page.get_by_role("switch", name="fail").click()
    run_command(page)
    page.get_by_role("heading", name="The disk failed.").wait_for()
    assert "4 rows arrived before the failure" in page.locator(".answer").inner_text()
    assert page.locator("tbody tr:not(.pad-row)").count() == 4


def test_only_one_call_runs_at_a_time(open_page: OpenPage, mock: MockServer) -> None:
    page = open_page("slow")
    for _ in range(3):
        page.keyboard.press("Control+Enter")
    page.get_by_text("Running…").wait_for()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_text("The page no longer waits.").wait_for()
    assert [request.path for request in mock.requests] == ["slow"]


def test_stream_can_be_stopped(open_page: OpenPage, mock: MockServer) -> None:
    page = open_page("search")
    field(page, "text").fill("x")
    field(page, "rows").fill("100000")
    field(page, "delay").fill("0.01")
    page.keyboard.press("Control+Enter")
    page.get_by_text("src/file_9.py").wait_for()
    page.get_by_role("button", name="Cancel").click()
    page.locator(".sum", has_text="Cancelled").wait_for()
    assert page.locator("tbody tr:not(.pad-row)").count() >= 10
    deadline = time.monotonic() + 120
    while not mock.stopped_streams and time.monotonic() < deadline:
        time.sleep(0.02)
    assert mock.stopped_streams == 1
    assert page.get_by_role("button", name="Run", exact=True).is_visible()


# ------------------------------------------------------------------ copying a call

TEXT_WITH_QUOTES = 'it\'s $HOME `x` "q" \\ ü\n!é'


@pytest.mark.parametrize("language", ["CLI", "curl", "Python", "MCP"])
def test_copied_call_contains_no_secret(open_page: OpenPage, language: str) -> None:
    page = open_page("every", script=FAKE_CLIPBOARD)
    field(page, "text").fill("visible")
    field(page, "secret").fill("s3cr3t-value")
    copied = copy_call(page, language)
    assert "visible" in copied
    assert "<secret>" in copied
    assert "s3cr3t-value" not in copied + page.locator("main").inner_text()


def test_call_is_copied_in_four_languages(open_page: OpenPage, mock: MockServer) -> None:
    page = open_page("find-files", script=FAKE_CLIPBOARD)
    field(page, "pattern").fill(TEXT_WITH_QUOTES)
    field(page, "root").fill("-x")
    page.get_by_role("switch").click()
    page.get_by_role("switch").click()
    page.get_by_role("button", name="detailed").click()
    argv = ["file-tools", "find-files", TEXT_WITH_QUOTES, "--root=-x", "--no-include-hidden"]
    argv += ["--response-format", "detailed"]
    cli = copy_call(page, "CLI")
    assert shlex.split(cli) == argv
    body = {"pattern": TEXT_WITH_QUOTES, "root": "-x", "include_hidden": False}
    curl = copy_call(page, "curl")
    curl_argv = shlex.split(curl.replace("\\\n", " "))
    url = mock.url + "tools/find-files?response_format=detailed"
    assert curl_argv[:4] == ["curl", "-X", "POST", url]
    assert curl_argv[4:7] == ["-H", "Content-Type: application/json", "-d"]
    assert json.loads(curl_argv[7]) == body

    def shell_arguments(text: str) -> list[str]:
        """Return the arguments as a shell splits them."""
        script = "show() { printf '%s\\0' \"$@\"; }\n" + re.sub(r"^\S+", "show", text)
        done = subprocess.run(["sh", "-c", script], capture_output=True, check=True)
        return done.stdout.decode().split("\0")[:-1]

    assert shell_arguments(cli) == argv[1:]
    assert shell_arguments(curl) == curl_argv[1:]
    call = ast.parse(copy_call(page, "Python"), mode="eval").body
    assert isinstance(call, ast.Call)
    assert ast.unparse(call.func) == "app.call"
    assert [ast.literal_eval(part) for part in call.args] == ["find-files"]
    keywords = {part.arg: ast.literal_eval(part.value) for part in call.keywords}
    assert keywords == {**body, "detailed": True}
    message = json.loads(copy_call(page, "MCP"))
    assert message["method"] == "tools/call"
    options = {"io.tooli/options": {"detailed": True}}
    assert message["params"] == {"name": "find_files", "arguments": body, "_meta": options}


def test_command_line_uses_json_for_values_without_a_flag(open_page: OpenPage) -> None:
    page = open_page("every", script=FAKE_CLIPBOARD)
    page.get_by_role("tab", name="JSON").click()
    area = page.get_by_label("The request as JSON")

    def cli(values: dict[str, Any]) -> list[str]:
        area.fill(json.dumps(values))
        return shlex.split(copy_call(page, "CLI"))[2:]

    rule = {"match": "*"}
    assert cli({"text": "-t", "tags": ["a", "-b"], "point": [1, "x"], "rule": rule}) == [
        *("--tags", "a", "--tags=-b", "--point", "1", "x", "--rule", '{"match":"*"}', "--", "-t")
    ]
    values = {"text": "t", "limit": None, "rule": rule}
    argv = cli(values)
    assert argv[0] == "--input"
    assert json.loads(argv[1]) == values
    python = copy_call(page, "Python")
    assert 'limit=None, rule={"match": "*"}' in python


def test_copying_works_without_the_clipboard_api(open_page: OpenPage) -> None:
    no_clipboard = "Object.defineProperty(navigator, 'clipboard', {value: undefined});"
    on_copy = """document.addEventListener('copy', () => {
      window.copiedText = String(getSelection()) || document.activeElement.value; });"""
    page = open_page("users/list", script=no_clipboard + on_copy)
    assert copy_call(page, "CLI") == "file-tools users list"


# ------------------------------------------------------------------ appearance and safety


def test_theme_can_be_changed_and_is_remembered(open_page: OpenPage) -> None:
    page = open_page(color_scheme="dark")

    def lightness() -> float:
        color = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(map(int, re.findall(r"\d+", color)[:3])) / 3

    assert lightness() < 60
    page.locator("#theme").click()
    assert lightness() > 200
    page.reload()
    page.locator("nav a").first.wait_for()
    assert lightness() > 200
    page.locator("#theme").click()
    assert lightness() < 60
    no_storage = (
        "Object.defineProperty(window, 'localStorage', {get() { throw new Error('no'); }});"
    )
    page = open_page(color_scheme="light", script=no_storage)
    assert lightness() > 200
    page.locator("#theme").click()
    page.locator("#theme").click()
    assert lightness() < 60


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast(open_page: OpenPage, scheme: str) -> None:
    page = open_page("delete", color_scheme=scheme)
    run_command(page)
    assert page.evaluate(LOW_CONTRAST) == []
    page.evaluate("location.hash = '#/every'")
    page.locator("main h1", has_text="every").wait_for()
    assert page.evaluate(LOW_CONTRAST) == []


def test_mobile_layout_does_not_overflow(open_page: OpenPage) -> None:
    page = open_page(width=360, height=740, has_touch=True, is_mobile=True)

    def overflow() -> int:
        return page.evaluate("document.documentElement.scrollWidth - innerWidth")

    box = page.locator("main").bounding_box()
    assert box is not None and box["width"] <= 1
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
        page.get_by_role("tab", name="Response").tap()
        assert overflow() <= 0, path


def test_page_can_be_used_by_keyboard(open_page: OpenPage, mock: MockServer) -> None:
    page = open_page(reduced_motion="reduce")
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
    page.keyboard.press("Tab")  # skips "reset", which comes before the next field
    while page.evaluate("document.activeElement.tagName") != "TEXTAREA":
        page.keyboard.press("Tab")
    page.keyboard.type("ada@example.org")
    while page.evaluate("document.activeElement.type") != "radio":
        page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.keyboard.press("ArrowRight")
    run_command(page)
    assert last_request(mock).body == {"name": "Ada", "mail": "ada@example.org", "role": "writer"}
    page.locator("#live", has_text="Succeeded").wait_for(state="attached")
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.getAttribute('href')") == "#/users/create"
    assert (
        page.evaluate(
            "getComputedStyle(document.querySelector('.sw i') || document.body).transitionDuration"
        )
        == "0s"
    )


def test_every_control_has_an_accessible_name(open_page: OpenPage) -> None:
    page = open_page("every")
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


def test_hostile_text_is_shown_as_text(open_page: OpenPage, mock: MockServer) -> None:
    page = open_page()
    page.locator("nav a", has_text="onerror").click()
    page.locator("main h1", has_text="onerror").wait_for()
    assert page.locator("main h1").inner_text() == HOSTILE.replace(" ", "_")
    page.locator("details summary").first.click()
    page.locator("#find").fill("<img")
    page.get_by_role("group", name="Examples").get_by_role("button").click()
    run_command(page)
    assert last_request(mock).body == {"p" + HOSTILE: HOSTILE}
    assert page.locator(".fault h2").inner_text() == HOSTILE
    for language in ("CLI", "curl", "Python", "MCP"):
        page.get_by_role("tab", name=language).click()
    page.get_by_role("tab", name="Response").click()
    page.evaluate("location.hash = '#/users/list'")
    page.locator("main h1", has_text="users list").wait_for()
    run_command(page)
    page.get_by_role("gridcell", name=HOSTILE).first.click()
    page.evaluate(
        "location.hash = '#/' + encodeURIComponent('<img src=x onerror=window.hacked=1>')"
    )
    page.get_by_text("Unknown command").wait_for()
    assert page.locator("img").count() == 0
    assert page.evaluate("window.hacked") is None


def test_page_is_small_and_loads_no_other_files() -> None:
    page = read_page()
    assert page is not None
    text = page.body.decode()
    assert "__STYLE__" not in text and "__SCRIPT__" not in text
    assert not re.search(r"\.innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", text)
    assert not re.search(r"\sstyle=|\son[a-z]+=\"", text)
    assert len(page.body) < 150_000
    addresses = set(re.findall(r"https?://[\w.-]+", text))
    assert addresses <= {"http://www.w3.org", "https://example.org"}
