"""Entries of resources and prompts in lists."""

from __future__ import annotations

from tooli import Tooli
from tooli.describe.mcp_resources import describe_prompt, describe_resource
from tooli.providers.resources import collect_prompts, iter_resources


def test_resource_has_a_uri_or_a_template_and_no_empty_fields() -> None:
    app = Tooli("shop")
    app.resource("shop://all", size=3)(lambda: "text")
    app.resource("shop://items/{name}", description="An item.")(lambda name: name)
    fixed, templated = [describe_resource(resource) for resource in iter_resources(app)]
    assert (fixed["uri"], fixed["size"]) == ("shop://all", 3)
    assert (templated["uriTemplate"], templated["description"]) == (
        "shop://items/{name}",
        "An item.",
    )
    assert "uriTemplate" not in fixed
    assert None not in [*fixed.values(), *templated.values()]


def test_prompt_has_its_arguments() -> None:
    app = Tooli("shop")

    @app.prompt()
    def order(item: str, count: int = 1) -> str:
        """Order something.

        Args:
            item: what to order
        """
        return f"{item} {count}"

    app.prompt()(lambda: "plain")
    first, second = [
        describe_prompt(name, prompt, prompt.tool(app._state))
        for name, prompt in collect_prompts(app).items()
    ]
    assert first["arguments"] == [
        {"name": "item", "description": "what to order", "required": True},
        {"name": "count", "required": False},
    ]
    assert "arguments" not in second
