"""Sampling: a running tool asks a language model that its caller provides.

    ctx.sample(…) ──▶ SamplingPeer.ask ──▶ sampler(Sample) ──▶ a text
                                              │
        --sample-via stdin|URL, or the function of app.options(sampler=…)

MCP clients answer sampling requests themselves, through the peers of `tooli.mcp`.
"""

from __future__ import annotations

from json import loads

from tooli.core.event_loop import run_awaitable
from tooli.core.event_peer import EventPeer
from tooli.core.peer import Sample
from tooli.errors import DependencyError, ToolError
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeAlias

    from tooli.core.peer import Question
    from tooli.core.protocols import JsonObject

    Sampler: TypeAlias = Callable[[Sample], object]
    """Returns the answer of a model: a text, MCP content, or an awaitable of these."""


class SamplingPeer(EventPeer):
    """A caller that answers sampling requests with a function, if it has one."""

    receives_events = False
    sampler: Sampler | None = None

    def supports(self, method: str) -> bool:
        """True for sampling requests, if there is a sampler."""
        return method == Sample.method and self.sampler is not None

    def ask(self, questions: Mapping[str, Question]) -> Mapping[str, JsonObject]:
        """Return the answers of the sampler as MCP results."""
        answers: dict[str, JsonObject] = {}
        for key, question in questions.items():
            answer = self._call_sampler(question)
            if _is_awaitable(answer):
                answer = run_awaitable(_await_answer(answer))
            answers[key] = sample_result(answer)
        return answers

    async def ask_async(self, questions: Mapping[str, Question]) -> Mapping[str, JsonObject]:
        """Return the answers of the sampler. It runs in a thread, and a coroutine on the loop."""
        import asyncio

        answers: dict[str, JsonObject] = {}
        for key, question in questions.items():
            answer = await asyncio.to_thread(self._call_sampler, question)
            if _is_awaitable(answer):
                answer = await _await_answer(answer)
            answers[key] = sample_result(answer)
        return answers

    def _call_sampler(self, question: Question) -> Any:
        assert self.sampler is not None
        try:
            return self.sampler(read_sample(question.params()))
        except ToolError:
            raise
        except Exception as failure:
            raise _sampler_error(failure) from failure


class CallbackPeer(SamplingPeer):
    """The Python code that makes a call, with functions for events and for samples."""

    def __init__(
        self, sampler: Sampler | None, on_event: Callable[[JsonObject], object] | None
    ) -> None:
        self.cancelled = False
        self.sampler = sampler
        self.receives_events = on_event is not None
        self._on_event = on_event

    def send_event(self, name: str, data: bytes) -> None:
        """Pass an event to the function, in the thread of the tool."""
        if self._on_event is not None:
            self._on_event(loads(data))


def _is_awaitable(answer: object) -> bool:
    return hasattr(type(answer), "__await__")


async def _await_answer(answer: Any) -> Any:
    try:
        return await answer
    except ToolError:
        raise
    except Exception as failure:
        raise _sampler_error(failure) from failure


def _sampler_error(failure: Exception) -> DependencyError:
    return DependencyError(f"The sampler failed: {type(failure).__name__}: {failure}")


def read_sample(params: JsonObject) -> Sample:
    """Return the sampling request with these MCP params."""
    return Sample(
        params.get("messages") or [],
        params.get("maxTokens", 1000),
        params.get("systemPrompt"),
        params.get("temperature"),
        tuple(params.get("stopSequences") or ()),
    )


def sample_request(request_id: str, sample: Sample) -> JsonObject:
    """Return a sampling request as an event, with `messages` if the prompt is not one text."""
    text = sample.prompt
    plain = [{"role": "user", "content": {"type": "text", "text": text}}]
    fields: JsonObject = {
        "type": "sample_request",
        "id": request_id,
        "prompt": text,
        "messages": None if list(sample.messages) == plain else list(sample.messages),
        "system": sample.system,
        "max_tokens": sample.max_tokens,
        "temperature": sample.temperature,
        "stop_sequences": list(sample.stop_sequences) or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def read_sample_response(message: object, request_id: str | None) -> object:
    """Return the content of a `sample_response`; raises DependencyError if it is not one.

    With `request_id` None, the message answers a request of its own, so its type and id are
    optional.
    """
    if not is_object(message):
        raise DependencyError("The answer to the sampling request is not a JSON object.")
    kind, answered_id = message.get("type"), message.get("id")
    is_wrong = kind != "sample_response" or answered_id != request_id
    if is_wrong and request_id is not None:
        raise DependencyError(
            f"Expected a sample_response with the id {request_id!r}, "
            f"got {str(kind)[:50]!r} with the id {str(answered_id)[:50]!r}."
        )
    if message.get("error") is not None:
        raise DependencyError(f"The sampling request failed: {str(message['error'])[:500]}")
    if message.get("content") is None:
        raise DependencyError("The answer to the sampling request has no content.")
    return message["content"]


def sample_result(answer: object) -> JsonObject:
    """Return the answer of a sampler as an MCP result; raises DependencyError if it is no text."""
    if is_object(answer) and "content" in answer:
        answer = answer["content"]
    if isinstance(answer, str):
        answer = {"type": "text", "text": answer}
    blocks = answer if is_list(answer) else [answer]
    if not blocks or not all([is_object(block) and "type" in block for block in blocks]):
        raise DependencyError(f"The sampler returned {type(answer).__name__}, expected a text.")
    return {"role": "assistant", "model": "", "content": answer}
