"""Sampling requests: how they are written, answered, and refused."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from tooli import Context, DependencyError, Sample, Tooli
from tooli.core.sampling import read_sample, read_sample_response, sample_request, sample_result
from tooli.errors import TemporaryError

PLAIN = [{"role": "user", "content": {"type": "text", "text": "Why?"}}]


def make_app() -> Tooli:
    app = Tooli("ask", version="1.0")

    @app.command()
    def short(ctx: Context, text: str) -> str:
        return ctx.sample(text, system="Be short.", temperature=0.5, stop_sequences=["."])

    @app.command()
    async def ashort(ctx: Context, text: str) -> str:
        return await ctx.asample(text, max_tokens=5)

    @app.command(timeout=60)
    def forked(ctx: Context, text: str) -> str:
        return ctx.sample(text)

    @app.command()
    def steps(ctx: Context) -> Any:
        ctx.log("starting")
        yield from ctx.progress([1, 2])
        ctx.artifact("report", "https://example.org/r.pdf")

    return app


def test_request_has_the_fields_that_are_set() -> None:
    assert sample_request("1", Sample(PLAIN)) == {
        "type": "sample_request",
        "id": "1",
        "prompt": "Why?",
        "max_tokens": 1000,
    }
    messages = [*PLAIN, {"role": "assistant", "content": [{"type": "text", "text": "So."}]}]
    sample = Sample(messages, 5, "Be short.", 0.5, ("\n",))
    assert sample_request("2", sample) == {
        "type": "sample_request",
        "id": "2",
        "prompt": "Why?\n\nSo.",
        "messages": messages,
        "system": "Be short.",
        "max_tokens": 5,
        "temperature": 0.5,
        "stop_sequences": ["\n"],
    }


def test_request_is_rebuilt_from_mcp_params() -> None:
    sample = Sample(PLAIN, 5, "Be short.", 0.5, ("\n",))
    params = sample.params()
    assert params == {
        "messages": PLAIN,
        "maxTokens": 5,
        "systemPrompt": "Be short.",
        "temperature": 0.5,
        "stopSequences": ["\n"],
    }
    assert read_sample(params) == sample
    assert Sample(PLAIN).params() == {"messages": PLAIN, "maxTokens": 1000}
    assert read_sample({}) == Sample([])


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ([], "not a JSON object"),
        ({"type": "sample_response", "id": "2", "content": "x"}, "with the id '1', got"),
        ({"type": "other", "id": "1", "content": "x"}, "got 'other'"),
        ({"type": "sample_response", "id": "1"}, "no content"),
        ({"type": "sample_response", "id": "1", "error": "too busy"}, "failed: too busy"),
    ],
)
def test_invalid_response_is_refused(message: object, problem: str) -> None:
    with pytest.raises(DependencyError, match=problem):
        read_sample_response(message, "1")


def test_response_to_a_request_of_its_own_needs_no_id() -> None:
    assert read_sample_response({"content": "Because."}, None) == "Because."


def test_answer_is_a_text_or_content() -> None:
    text = {"type": "text", "text": "Because."}
    result = {"role": "assistant", "model": "", "content": text}
    assert sample_result("Because.") == result
    assert sample_result({"content": "Because."}) == result
    assert sample_result(text) == result
    assert sample_result([text])["content"] == [text]
    for invalid in (None, 3, [], [3], {"a": 1}):
        with pytest.raises(DependencyError, match="expected a text"):
            sample_result(invalid)


# ------------------------------------------------------------------ app.options(sampler=…)


def test_function_answers_samples_in_python() -> None:
    asked: list[Sample] = []

    def sampler(sample: Sample) -> str:
        asked.append(sample)
        return sample.prompt.upper()

    app = make_app()
    for tool in ("short", "ashort", "forked"):
        assert app.options(sampler=sampler).call(tool, text="why").unwrap() == "WHY"
    assert asked[0] == Sample(
        [{"role": "user", "content": {"type": "text", "text": "why"}}],
        1000,
        "Be short.",
        0.5,
        (".",),
    )
    assert asked[1].max_tokens == 5


async def test_coroutine_answers_samples_in_python() -> None:
    async def sampler(sample: Sample) -> str:
        return sample.prompt.upper()

    app = make_app()
    for tool in ("short", "ashort"):
        assert (await app.options(sampler=sampler).acall(tool, text="why")).unwrap() == "WHY"
    assert make_app().options(sampler=sampler).call("short", text="why").unwrap() == "WHY"


async def test_failure_of_the_sampler_is_the_failure_of_the_call() -> None:
    async def broken(sample: Sample) -> str:
        raise ValueError("no model")

    async def busy(sample: Sample) -> str:
        raise TemporaryError("busy")

    def broken_function(sample: Sample) -> str:
        raise ValueError("no model")

    def busy_function(sample: Sample) -> str:
        raise TemporaryError("busy")

    app = make_app()
    for sampler in (broken, broken_function):
        for tool in ("short", "ashort"):
            result = await app.options(sampler=sampler).acall(tool, text="why")
            assert result.error is not None
            assert (result.error.code, result.error.message) == (
                "E4040",
                "The sampler failed: ValueError: no model",
            )
    for sampler in (busy, busy_function):
        for tool in ("short", "ashort"):
            result = await app.options(sampler=sampler).acall(tool, text="why")
            assert result.error is not None
            assert (result.error.code, result.error.message) == ("E4075", "busy")


def test_call_without_a_sampler_says_how_to_give_one() -> None:
    error = make_app().call("short", text="why").error
    assert error is not None
    assert error.code == "E2102"
    assert error.suggestion is not None
    assert "app.options(sampler=fn)" in error.suggestion["fix"]
    assert error.details == {"asked": ["sampling/createMessage"]}


# ------------------------------------------------------------------ app.options(on_event=…)


@pytest.mark.parametrize("method", ["call", "stream"])
def test_function_gets_the_events_of_a_call(method: str) -> None:
    events: list[Any] = []
    threads: set[int] = set()

    def on_event(event: Any) -> None:
        events.append(event)
        threads.add(threading.get_ident())

    answer: Any = getattr(make_app().options(on_event=on_event), method)("steps")
    assert (list(answer) if method == "stream" else answer.unwrap()) == [1, 2]
    assert [event["type"] for event in events] == ["log", "progress", "progress", "artifact"]
    assert events[1] == {"type": "progress", "percent": 50, "done": 1, "total": 2}


def test_artifacts_are_in_meta_without_a_listener() -> None:
    artifact = {"name": "report", "uri": "https://example.org/r.pdf"}
    result = make_app().call("steps")
    assert result.meta["artifacts"] == [artifact]
    assert json.loads(result.model_dump_json())["meta"]["artifacts"] == [artifact]
