"""Calls in flight: who asked for them, what is said meanwhile, and that each lands once."""

from __future__ import annotations

from itertools import count
from threading import Condition, Event

from tooli.call.peer import Peer
from tooli.surfaces.mcp.asking import declares
from tooli.surfaces.mcp.wire import twin
from tooli.surfaces.mcp.words import INTERNAL_ERROR, LEVELS, LOG_KEY, USUAL_LEVEL, RpcError
from tooli.surfaces.serving import MOST_CALLS

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import Any

    from tooli.call.peer import Question
    from tooli.surfaces.mcp.front import Front


class Flights:
    """The calls of one client that are not answered yet, and the questions put to it."""

    def __init__(self, front: Front) -> None:
        self.front = front
        self._flying: dict[int | str, Flight] = {}
        self._landing = 0  # calls that have ended, and whose answers are not out yet
        self._change = Condition()  # never held while anything is written: clients may not read
        self._asked: dict[str, Asked] = {}
        self._numbers = count(1)

    def __contains__(self, given: int | str) -> bool:
        return given in self._flying

    @property
    def busy(self) -> bool:
        """Whether a call is still in flight, or its answer on the way."""
        return bool(self._flying or self._landing)

    @property
    def full(self) -> bool:
        """Whether as many calls are in flight as there may be."""
        return len(self._flying) + self._landing >= MOST_CALLS

    def add(self, flight: Flight) -> None:
        """A call has begun."""
        self._flying[flight.id] = flight

    def done(self, flight: Flight, message: dict[str, Any]) -> None:
        """A call has ended; whoever cancelled it hears nothing more."""
        with self._change:  # the id is free again as soon as the client can know it
            self._flying.pop(flight.id, None)
            self._landing += 1
        try:
            if not flight.cancelled:
                self.front.wire.write(message)
        finally:
            with self._change:
                self._landing -= 1
                self._change.notify_all()

    def cancel(self, given: Any) -> bool:
        """The client does not want an answer any more; False where it is no call of ours."""
        if type(given) not in (int, str):
            return False
        with self._change:
            flight = self._flying.get(given) or self._flying.get(twin(given))
            if flight is None:
                return False
            flight.cancelled = True
        if flight.on_cancel is not None:
            flight.on_cancel()
        for question in list(self._asked.values()):
            if question.flight is flight:
                question.told.set()
        return True

    def wait(self, seconds: float) -> None:
        """Let the calls end, as long as somebody is there to read their answers."""
        from time import monotonic

        until = monotonic() + seconds
        with self._change:
            while self.busy and monotonic() < until and not self.front.wire.deserted():
                self._change.wait(0.1)

    # -------------------------------------------------------------- questions

    def ask(self, flight: Flight, question: Question) -> Any:
        """The client's answer to a question of a call, which waits for it."""
        key = f"tooli-{next(self._numbers)}"
        asked = self._asked[key] = Asked(flight)
        params = question.params()
        self.front.wire.write(
            {"jsonrpc": "2.0", "id": key, "method": question.method, "params": params}
        )
        asked.told.wait()
        self._asked.pop(key, None)
        return asked.answer

    def answered(self, message: dict[str, Any]) -> bool:
        """Whether a response was to a question of ours."""
        asked = self._asked.get(message.get("id", ""))
        if asked is None:
            return False
        asked.answer = message.get("result")
        asked.told.set()
        return True


class Asked:
    """A question that waits for its answer."""

    __slots__ = ("answer", "flight", "told")

    def __init__(self, flight: Flight) -> None:
        self.flight = flight
        self.told = Event()
        self.answer: Any = None


class Flight(Peer):
    """One call, and the client that waits for it."""

    def __init__(
        self, flights: Flights, given: int | str, params: dict[str, Any], capabilities: Any
    ) -> None:
        self.id = given
        self.cancelled = False
        self.on_cancel: Callable[[], Any] | None = None
        self._flights = flights
        self._meta: Any = params.get("_meta") or {}
        self._capabilities = capabilities

    # -------------------------------------------------------------- landing

    def land(self, work: Callable[[], dict[str, Any]]) -> None:
        """Do the work, and answer; a call that was cancelled while it waited is not begun."""
        try:
            message = self._result(work() if not self.cancelled else {})
        except BaseException as failure:
            message = self._failure(failure)
        self._flights.done(self, message)

    async def aland(self, work: Callable[[], Awaitable[dict[str, Any]]]) -> None:
        """The same on an event loop."""
        try:
            message = self._result(await work())
        except BaseException as failure:
            message = self._failure(failure)
        self._flights.done(self, message)

    def _result(self, result: dict[str, Any]) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": self.id, "result": result}

    def _failure(self, failure: BaseException) -> dict[str, Any]:
        if not isinstance(failure, RpcError):
            failure = RpcError(INTERNAL_ERROR, "Internal server error")
        return {"jsonrpc": "2.0", "id": self.id, "error": failure.to_dict()}

    # -------------------------------------------------------------- meanwhile

    def progress(self, done: float, total: float | None, message: str | None) -> None:
        """Tell how far the call has come, if the client gave a token for it."""
        token = self._meta.get("progressToken")
        if token is None or type(token) not in (str, int):
            return
        params: dict[str, Any] = {"progressToken": token, "progress": done}
        if total is not None:
            params["total"] = total
        if message is not None:
            params["message"] = message
        self._notify("notifications/progress", params)

    def log(self, level: str, data: Any) -> None:
        """Tell what is going on: as loud as was asked for, in the old era as is usual.

        A client of the old era that asks for more or less asks the SDK.
        """
        front = self._flights.front
        least = self._meta.get(LOG_KEY) if front.modern else USUAL_LEVEL if front.whole else None
        if least not in LEVELS or level not in LEVELS:
            return
        if LEVELS.index(level) < LEVELS.index(least):
            return
        params = {"level": level, "data": data, "logger": front.service.desk.name}
        self._notify("notifications/message", params)

    def _notify(self, method: str, params: dict[str, Any]) -> None:
        if not self.cancelled:
            message = {"jsonrpc": "2.0", "method": method, "params": params}
            self._flights.front.wire.write(message)

    def can(self, method: str) -> bool:
        """Whether the client can answer such a question while the call waits."""
        return not self._flights.front.modern and declares(self._capabilities, method)

    def ask(self, questions: Mapping[str, Question]) -> Mapping[str, Any]:
        """The client's answers, one after the other."""
        return {key: self._flights.ask(self, one) for key, one in questions.items()}

    async def ask_async(self, questions: Mapping[str, Question]) -> Mapping[str, Any]:
        """The same on an event loop, which goes on meanwhile."""
        import asyncio

        return await asyncio.to_thread(self.ask, questions)
