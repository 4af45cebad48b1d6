"""`--stream` and `--sample-via`: events as lines, and answers from stdin or a URL."""

from __future__ import annotations

import io
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from unittest.mock import ANY

import pytest

from tooli import Context, NotFoundError, Partial, StdinOr, Tooli
from tooli.cli import event_lines
from tooli.testing import invoke


def make_app() -> Tooli:
    app = Tooli("bake", version="1.0")

    @app.command()
    def loaves(ctx: Context, count: int = 2, fail: bool = False) -> Any:
        ctx.log("starting")
        yield from ctx.progress(range(count))
        if fail:
            raise NotFoundError("no flour")
        ctx.artifact("photo", "https://example.org/loaf.jpg")

    @app.command()
    def total(ctx: Context) -> list[int]:
        ctx.report(1, 2, "half")
        return [1, 2]

    @app.command()
    def partial() -> Partial[int]:
        return Partial([1], failed=[("b", "broken")])

    @app.command()
    def printing(name: str) -> None:
        print(f"Hello {name}")

    @app.command()
    def names(ctx: Context, people: list[str]) -> list[str]:
        return [ctx.sample(f"Describe {person}.") for person in people]

    @app.command()
    def read(ctx: Context, text: StdinOr[str]) -> str:
        return ctx.sample(text)

    return app


def lines_of(*argv: str, **more: Any) -> list[Any]:
    return invoke(make_app(), *argv, **more).lines


def types_of(lines: list[Any]) -> list[str]:
    return [line["type"] for line in lines]


def test_events_and_items_are_lines_in_their_order() -> None:
    lines = lines_of("loaves", "--stream")
    assert types_of(lines) == [
        *("log", "item", "progress", "item", "progress", "artifact", "result"),
    ]
    assert lines[1:3] == [
        {"type": "item", "value": 0},
        {"type": "progress", "percent": 50, "done": 1, "total": 2},
    ]
    result = lines[-1]
    assert result["ok"] is True
    assert "result" not in result
    assert result["meta"]["artifacts"] == [{"name": "photo", "uri": "https://example.org/loaf.jpg"}]


def test_failing_stream_keeps_its_items() -> None:
    done = invoke(make_app(), "loaves", "--fail", "--stream")
    assert done.exit_code == 10
    assert types_of(done.lines) == ["log", "item", "progress", "item", "progress", "result"]
    assert done.lines[-1]["error"]["code"] == "E3010"


def test_whole_result_is_in_the_last_line() -> None:
    progress, result = lines_of("total", "-o", "stream")
    assert progress == {
        "type": "progress",
        "message": "half",
        "percent": 50,
        "done": 1,
        "total": 2,
    }
    assert list(result) == ["type", "ok", "result", "meta"]
    assert (result["type"], result["ok"], result["result"]) == ("result", True, [1, 2])
    (failed,) = lines_of("partial", "--stream")
    assert (failed["type"], failed["result"], failed["error"]["code"]) == ("result", [1], "E4070")
    (printed,) = lines_of("printing", "Ada", "--stream")
    assert printed["result"] == "Hello Ada"


def test_plan_of_a_dry_run_is_in_the_last_line() -> None:
    (line,) = lines_of("loaves", "--dry-run", "--stream")
    plan = invoke(make_app(), "loaves", "--dry-run", "--json").envelope
    assert (line["type"], line["meta"]["dry_run"]) == ("result", True)
    token = {"token": ANY}
    assert line["result"] == {**plan["result"], **token}


@pytest.mark.parametrize("argv", [("loves",), ("loaves", "--count", "x"), ("loaves", "--cuont=1")])
def test_usage_error_is_the_only_line(argv: tuple[str, ...]) -> None:
    done = invoke(make_app(), *argv, "--stream")
    assert done.exit_code == 2
    (line,) = done.lines
    assert (line["type"], line["ok"], line["error"]["code"][:2]) == ("result", False, "E1")


def test_events_after_the_end_are_not_written() -> None:
    app, ctxs = Tooli("late"), list[Context]()

    @app.command()
    def work(ctx: Context) -> int:
        ctxs.append(ctx)
        return 1

    done = invoke(app, "--stream")
    ctxs[0].log("late")
    assert types_of(done.lines) == ["result"]


def test_events_of_other_threads_are_whole_lines() -> None:
    app = Tooli("threads")

    @app.command()
    def work(ctx: Context) -> Any:
        def log(name: int) -> None:
            for n in range(100):
                ctx.log(f"{name}-{n}")

        threads = [threading.Thread(target=log, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        yield from range(200)
        for thread in threads:
            thread.join()

    lines = invoke(app, "--stream").lines
    assert types_of(lines).count("log") == 400
    assert [line["value"] for line in lines if line["type"] == "item"] == list(range(200))


def test_stdout_that_fails_cancels_the_call() -> None:
    class FailingGuard:
        def write(self, data: bytes) -> None:
            raise BrokenPipeError

    class Output:
        guard = FailingGuard()

        class invocation:
            mode = "stream"

    output: Any = Output()
    peer = event_lines.LinePeer(output)
    with pytest.raises(event_lines.Interrupted):
        peer.log("info", "lost")
    peer.log("info", "lost as well")
    assert peer.cancelled
    with pytest.raises(BrokenPipeError):
        peer.write(b"{}")
    with pytest.raises(BrokenPipeError):
        peer.close()


# ------------------------------------------------------------------ samples from stdin


def answers(*texts: str) -> str:
    return "".join(
        json.dumps({"type": "sample_response", "id": str(n), "content": text}) + "\n"
        for n, text in enumerate(texts, 1)
    )


def test_samples_are_answered_on_stdin() -> None:
    lines = lines_of("names", "Ada", "Bob", "--sample-via", "stdin", input=answers("A.", "B."))
    assert lines[:2] == [
        {"type": "sample_request", "id": "1", "prompt": "Describe Ada.", "max_tokens": 1000},
        {"type": "sample_request", "id": "2", "prompt": "Describe Bob.", "max_tokens": 1000},
    ]
    assert (lines[2]["type"], lines[2]["result"]) == ("result", ["A.", "B."])


def test_json_mode_ends_with_the_envelope() -> None:
    argv = ("names", "Ada", "--json", "--sample-via=stdin")
    request, envelope = lines_of(*argv, input=answers("A."))
    assert request["type"] == "sample_request"
    assert (envelope["ok"], envelope["result"]) == (True, ["A."])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "stdin has ended before the question was answered."),
        ("\n  \n", "stdin has ended before the question was answered."),
        ("Because.\n", "The answer on stdin is not a line of JSON."),
        ("[]\n", "The answer to the sampling request is not a JSON object."),
    ],
)
def test_invalid_answer_fails_the_call(text: str, message: str) -> None:
    done = invoke(make_app(), "names", "Ada", "--sample-via", "stdin", input=text)
    error = done.lines[-1]["error"]
    assert (done.exit_code, error["code"], error["message"]) == (40, "E4040", message)


@pytest.mark.parametrize(
    "argv",
    [
        ("names", "Ada", "--sample-via", "model"),
        ("names", "Ada", "--sample-via", "stdin", "--text"),
        ("names", "--sample-via", "stdin", "--input", "-"),
        ("names", "--sample-via", "stdin", "--null"),
    ],
)
def test_invalid_sample_via_is_refused_before_the_call(argv: tuple[str, ...]) -> None:
    done = invoke(make_app(), *argv, input="{}")
    assert done.exit_code == 2
    assert "--sample-via" in done.stdout + done.stderr


def test_input_of_the_command_is_not_read_from_stdin() -> None:
    done = invoke(make_app(), "read", "-", "--sample-via", "stdin", input=answers("x"))
    assert done.exit_code == 2
    assert done.lines[-1]["error"]["code"] == "E1035"


def test_without_a_sampler_the_error_has_a_call_that_works() -> None:
    done = invoke(make_app(), "names", "Ada", "--json")
    assert done.exit_code == 101
    suggestion = done.envelope["error"]["suggestion"]
    assert "--sample-via URL" in suggestion["fix"]
    assert suggestion["argv"] == ["bake", "names", "Ada", "--json", "--sample-via", "stdin"]


def test_lines_of_stdin_are_limited(monkeypatch: Any) -> None:
    monkeypatch.setattr(event_lines, "MAX_ANSWER_BYTES", 1000)
    read_end, write_end = event_lines.os.pipe()
    with open(read_end) as stdin, open(write_end, "wb", buffering=0) as writer:
        monkeypatch.setattr(sys, "stdin", stdin)
        monkeypatch.setattr(sys, "__stdin__", stdin)
        lines = event_lines.StdinLines()
        writer.write(b"\n{}\n[")
        assert lines.read_line() == b"{}"
        with pytest.raises(event_lines.TimeoutExceeded):
            lines.read_line(0.0)
        writer.write(b"1" * 2000)
        with pytest.raises(event_lines.DependencyError, match="more than 1000 bytes"):
            lines.read_line()


@pytest.mark.parametrize("stdin", [None, io.StringIO()])
def test_closed_stdin_has_no_answer(stdin: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(sys, "stdin", stdin)
    with pytest.raises(event_lines.DependencyError, match="has ended"):
        event_lines.StdinLines().read_line()


# ------------------------------------------------------------------ samples from a URL


PRIVATE = {"TOOLI_ALLOW_PRIVATE_URLS": "1"}


class Model(BaseHTTPRequestHandler):
    """Answers sampling requests."""

    reply: bytes = b'{"content": "A."}'
    status = 200
    requests: list[Any] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.requests.append((self.headers["content-type"], json.loads(body)))
        self.send_response(self.status)
        self.send_header("content-length", str(len(self.reply)))
        self.end_headers()
        self.wfile.write(self.reply)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@pytest.fixture
def model():
    """A server that answers sampling requests, and its URL."""
    handler = type("Handler", (Model,), {"requests": []})
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield handler, f"http://127.0.0.1:{server.server_port}/sample"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("mode", ["json", "stream", "jsonl"])
def test_samples_are_requested_from_a_url(model: Any, mode: str) -> None:
    handler, url = model
    done = invoke(make_app(), "names", "Ada", "--sample-via", url, mode=mode, env=PRIVATE)
    assert done.exit_code == 0
    request = {"type": "sample_request", "id": "1", "prompt": "Describe Ada.", "max_tokens": 1000}
    assert handler.requests == [("application/json", request)]
    last = done.lines[-1]
    assert (last if mode == "jsonl" else last["result"]) == ("A." if mode == "jsonl" else ["A."])


def test_private_url_is_refused_by_default(model: Any) -> None:
    handler, url = model
    done = invoke(make_app(), "names", "Ada", "--sample-via", url, "--json")
    assert (done.exit_code, done.envelope["error"]["code"]) == (2, "E1033")
    assert handler.requests == []


@pytest.mark.parametrize(
    ("status", "reply", "code"),
    [
        (200, b"A.", "E4040"),
        (200, b"{}", "E4040"),
        (500, b"{}", "E4075"),
        (302, b"{}", "E4040"),
        (403, b"{}", "E2000"),
        (200, b" " * 4_100_000, "E4040"),
    ],
)
def test_url_that_does_not_answer_fails_the_call(
    model: Any, status: int, reply: bytes, code: str
) -> None:
    handler, url = model
    handler.status, handler.reply = status, reply
    done = invoke(make_app(), "names", "Ada", "--sample-via", url, "--json", env=PRIVATE)
    assert done.envelope["error"]["code"] == code
