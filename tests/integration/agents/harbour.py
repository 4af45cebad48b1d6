"""An app with random names of commands and parameters: only their descriptions help."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from random import Random
from typing import Any, Literal

from pydantic import BaseModel, Field

from tooli import Context, Tooli, dry_run_support, record_dry_action
from tooli.annotations import Destructive, ReadOnly
from tooli.core.tool import Tool
from tooli.transforms import Arg, ToolTransform

JOURNAL = "journal.jsonl"  # in the home folder: what the commands have done

app = Tooli("shop", description="Look after a harbour.", version="1.0.0")
_random = Random(16)


def random_word() -> str:
    return "".join([_random.choice("bdfgklmnprstvz") + _random.choice("aeiou") for _ in range(3)])


@app.add_transform
def rename(tool: Tool) -> Tool:
    arguments = {
        param.name: Arg(name=random_word()) for param in tool.params if param.kind != "injected"
    }
    return ToolTransform(tool.key or tool.name, name=random_word(), args=arguments)(tool)


def note(command: str, **values: Any) -> str:
    line = json.dumps({"command": command, **values}, default=str)
    with (Path.home() / JOURNAL).open("a") as journal:
        journal.write(line + "\n")
    return f"done: {line}"


class Ship(BaseModel):
    title: str = Field(description="What is written on the bow")
    metres: int = Field(ge=1, le=400, description="How long it is, in metres")
    is_empty: bool = Field(False, description="True if it carries no cargo")


@app.command(annotations=ReadOnly, paginated=True)
def ships() -> list[dict[str, Any]]:
    """List all vessels that lie in the harbour."""
    return [{"number": n, "vessel": f"vessel-{n * 7}"} for n in range(250)]


@app.command(annotations=ReadOnly)
def berths(side: Literal["north", "south", "east"]) -> list[str]:
    """Show free berths.

    Args:
        side: The quay to look at
    """
    return [f"{side}-{n}" for n in range(3)]


@app.command(annotations=ReadOnly)
def wind(day: datetime.date, hourly: bool = False) -> dict[str, Any]:
    """Forecast the weather.

    Args:
        day: The date of the forecast
        hourly: One value for each hour
    """
    return {"wind": [day.day] * (24 if hourly else 1)}


@app.command()
def register(ship: Ship) -> str:
    """Add a newly built boat to the register.

    Args:
        ship: The boat
    """
    return note("register", **ship.model_dump())


@app.command()
def tugs(count: int, names: list[str]) -> str:
    """Order tugs.

    Args:
        count: How many tugs
        names: The captains, in their order
    """
    return note("tugs", count=count, names=names)


@app.command()
def fee(amount: float, receipt: bool = False) -> str:
    """Record that somebody has paid the fee.

    Args:
        amount: The money, in euros
        receipt: Print a receipt
    """
    return note("fee", amount=amount, receipt=receipt)


@app.command(annotations=Destructive)
def scrap(hull: int) -> str:
    """Scrap an old wreck for ever.

    Args:
        hull: The hull number of the wreck
    """
    return note("scrap", hull=hull)


@app.command(annotations=Destructive)
@dry_run_support
def evacuate(building: str) -> str:
    """Evacuate a warehouse.

    Args:
        building: The warehouse
    """
    if record_dry_action("evacuate", building):
        return "planned"
    return note("evacuate", building=building)


@app.command(annotations=ReadOnly)
def containers(ctx: Context, minimum: float = 0) -> dict[str, int]:
    """Count the containers.

    Args:
        minimum: Only those that weigh at least so many tonnes
    """
    ctx.warn("three containers were not weighed")
    return {"containers": 1000 - int(minimum)}


@app.command()
def message(text: str, recipients: list[str], urgent: bool = False) -> str:
    """Send a radio message.

    Args:
        text: What to say
        recipients: Who hears it
        urgent: Interrupt other traffic
    """
    return note("message", text=text, recipients=recipients, urgent=urgent)


@app.command(annotations=ReadOnly)
def log() -> list[dict[str, Any]]:
    """Read the diary of the harbour master, with every incident."""
    return [
        {"entry": n, "text": "storm damaged crane 9" if n == 601 else "a calm day " * 3}
        for n in range(700)
    ]


@app.command()
def close(start: datetime.time, end: datetime.time, reason: str = "") -> str:
    """Close the gate for a while.

    Args:
        start: When it closes
        end: When it opens again
        reason: What to tell the public
    """
    return note("close", start=start, end=end, reason=reason)


if __name__ == "__main__":
    app()
