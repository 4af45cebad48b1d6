"""The app for the conformance suite: the tools, resources and prompts that the suite expects."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
from typing import Any

from tooli import (
    Audio,
    Context,
    Elicit,
    Embedded,
    Image,
    Message,
    Roots,
    Sample,
    Tooli,
    ToolRuntimeError,
)

app = Tooli(
    "conformance", description="The fixtures of the MCP conformance suite.", version="1.0.0"
)

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
WAV = b"RIFF$\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0@\x1f\0\0@\x1f\0\0\1\0\x08\0data\0\0\0\0"

# ------------------------------------------------------------------ tools


@app.command()
def test_simple_text() -> str:
    """Return a text."""
    return "This is a simple text response for testing."


@app.command()
def test_image_content() -> Image:
    """Return an image."""
    return Image(PNG)


@app.command()
def test_audio_content() -> Audio:
    """Return audio."""
    return Audio(WAV)


@app.command()
def test_embedded_resource() -> Embedded:
    """Return an embedded resource."""
    text = "This is an embedded resource content."
    return Embedded("test://embedded-resource", text, "text/plain")


@app.command()
def test_multiple_content_types() -> list[str | Image | Embedded]:
    """Return a text, an image and an embedded resource."""
    data = json.dumps({"test": "data", "value": 123})
    document = Embedded("test://mixed-content-resource", data, "application/json")
    return ["Multiple content types test:", Image(PNG), document]


@app.command()
async def test_tool_with_logging(ctx: Context) -> str:
    """Send three log messages."""
    ctx.log("Tool execution started", level="info")
    await asyncio.sleep(0.05)
    ctx.log("Tool processing data", level="info")
    await asyncio.sleep(0.05)
    ctx.log("Tool execution completed", level="info")
    return "Tool with logging executed successfully"


@app.command()
def test_logging_tool(ctx: Context) -> str:
    """Send one log message."""
    ctx.log("Tool executed", level="info")
    return "Logged"


@app.command()
def test_error_handling() -> str:
    """Always fail."""
    raise ToolRuntimeError("This tool intentionally returns an error for testing")


@app.command()
async def test_tool_with_progress(ctx: Context) -> str:
    """Report progress three times."""
    for done in (0, 50, 100):
        ctx.report(done, 100)
        await asyncio.sleep(0.05)
    return "Tool with progress executed successfully"


@app.command()
def test_sampling(prompt: str, ctx: Context) -> str:
    """Ask the client's model."""
    return f"LLM response: {ctx.sample(prompt, max_tokens=100)}"


@app.command()
def test_elicitation(message: str, ctx: Context) -> str:
    """Ask the client's user to fill in a form."""
    fields = {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    }
    schema = {"type": "object", "properties": fields, "required": ["username", "email"]}
    reply = ctx.elicit(message, schema)
    return f"User response: action={reply.action}, content={json.dumps(dict(reply.content))}"


@app.command()
def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    """Ask with a form whose fields have defaults."""
    fields = {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {
            "type": "string",
            "enum": ["active", "inactive", "pending"],
            "default": "active",
        },
        "verified": {"type": "boolean", "default": True},
    }
    return elicit_fields(ctx, "Review the values", fields)


@app.command()
def test_elicitation_sep1330_enums(ctx: Context) -> str:
    """Ask with a form that has every kind of enum."""
    titled = [{"const": f"value{i}", "title": f"Option {i}"} for i in (1, 2, 3)]
    plain = ["option1", "option2", "option3"]
    fields: dict[str, Any] = {
        "untitledSingle": {"type": "string", "enum": plain},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    }
    return elicit_fields(ctx, "Choose", fields)


def elicit_fields(ctx: Context, message: str, fields: dict[str, Any]) -> str:
    reply = ctx.elicit(message, {"type": "object", "properties": fields})
    content = json.dumps(dict(reply.content))
    return f"Elicitation completed: action={reply.action}, content={content}"


SCHEMA_2020_12: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


@app.command(input_schema=SCHEMA_2020_12)
def json_schema_2020_12_tool(
    name: str | None = None,
    address: dict[str, str] | None = None,
    contactMethod: str | None = None,
    phone: str | None = None,
    email: str | None = None,
) -> str:
    """Tool with JSON Schema 2020-12 features."""
    return f"{name}, {address}, {contactMethod or ''} {phone or email}"


HEADER_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    "required": ["region"],
}


@app.command(input_schema=HEADER_SCHEMA)
def test_custom_header(region: str) -> str:
    """Take an argument that clients also send as a header."""
    return f"Region: {region}"


@app.command()
async def test_reconnection(ctx: Context) -> str:
    """Close the client's stream; the client reconnects for the answer."""
    ctx.disconnect_client()
    await asyncio.sleep(0.1)
    return "Reconnection test completed successfully"


@app.command()
def test_missing_capability(ctx: Context) -> str:
    """Ask a question that needs a capability of the client."""
    return ctx.sample("Are you there?")


@app.command()
def test_streaming_elicitation(ctx: Context) -> str:
    """Report progress, then ask a question."""
    ctx.report(1, 2)
    return f"{ctx.elicit('Go on?', NAME).action}"


late_numbers = itertools.count(1)


@app.command()
def test_trigger_tool_change() -> str:
    """Register a tool while the server runs."""
    app.command(f"test-late-tool-{next(late_numbers)}")(test_simple_text)
    return "changed"


@app.command()
def test_trigger_prompt_change() -> str:
    """Register a prompt while the server runs."""
    app.prompt("test_late_prompt", description="Registered while the server runs.")(
        test_simple_text
    )
    return "changed"


# ------------------------------------------------------------------ tools that need input

NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
COLOR = {"type": "object", "properties": {"color": {"type": "string"}}, "required": ["color"]}
CONFIRM = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}


def user_message(text: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": {"type": "text", "text": text}}]


@app.command()
def test_input_required_result_elicitation(ctx: Context) -> str:
    """Ask for a name."""
    answers = ctx.ask({"user_name": Elicit("What is your name?", NAME)})
    return f"Hello, {answers['user_name']['content']['name']}!"


@app.command()
def test_input_required_result_sampling(ctx: Context) -> str:
    """Ask the client's model."""
    question = Sample(user_message("What is the capital of France?"), 100)
    return ctx.ask({"capital_question": question})["capital_question"]["content"]["text"]


@app.command()
def test_input_required_result_list_roots(ctx: Context) -> str:
    """Ask for the client's roots."""
    roots = ctx.ask({"client_roots": Roots()})["client_roots"]["roots"]
    return ", ".join([root["uri"] for root in roots])


@app.command()
def test_input_required_result_request_state(ctx: Context) -> str:
    """Ask for a confirmation. The request state records that it was asked."""
    ctx.ask({"confirm": Elicit("Please confirm", CONFIRM)})
    return "state-ok"


@app.command()
def test_input_required_result_multiple_inputs(ctx: Context) -> str:
    """Ask three questions at once."""
    answers = ctx.ask(
        {
            "user_name": Elicit("What is your name?", NAME),
            "greeting": Sample(user_message("Generate a greeting"), 50),
            "client_roots": Roots(),
        }
    )
    return json.dumps(dict(answers))


@app.command()
def test_input_required_result_multi_round(ctx: Context) -> str:
    """Ask two questions, one after the other."""
    name = ctx.ask({"step1": Elicit("Step 1: What is your name?", NAME)})["step1"]
    color = ctx.ask({"step2": Elicit("Step 2: What is your favorite color?", COLOR)})["step2"]
    return f"{name['content']['name']} likes {color['content']['color']}"


@app.command()
def test_input_required_result_tampered_state(ctx: Context) -> str:
    """Ask for a confirmation. A request state that was changed is rejected."""
    ctx.ask({"confirm": Elicit("Please confirm", CONFIRM)})
    return "confirmed"


@app.command()
def test_input_required_result_capabilities(ctx: Context) -> str:
    """Ask the questions that the client supports."""
    questions = {
        "user_name": Elicit("What is your name?", NAME),
        "greeting": Sample(user_message("Generate a greeting"), 50),
    }
    answers = ctx.ask(
        {key: question for key, question in questions.items() if ctx.can_ask(question)}
    )
    return json.dumps(dict(answers))


# ------------------------------------------------------------------ resources


@app.resource("test://static-text", name="Static text", mime_type="text/plain")
def static_text() -> str:
    """A text that never changes."""
    return "This is the content of the static text resource."


@app.resource("test://static-binary", name="Static image", mime_type="image/png")
def static_binary() -> bytes:
    """An image that never changes."""
    return PNG


@app.resource("test://template/{id}/data", name="Data by id", complete={"id": ["123", "124"]})
def template_data(id: str) -> dict[str, Any]:
    """The data for an id."""
    return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


@app.resource("test://watched-resource", name="Subscribed text", mime_type="text/plain")
def watched_resource() -> str:
    """A text that clients subscribe to."""
    return "Watched resource content"


# ------------------------------------------------------------------ prompts


@app.prompt()
def test_simple_prompt() -> str:
    """A simple prompt."""
    return "This is a simple prompt for testing."


@app.prompt(complete={"arg1": ["paris", "park", "party", "test"]})
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A prompt with arguments.

    Args:
        arg1: First test argument
        arg2: Second test argument
    """
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@app.prompt()
def test_prompt_with_embedded_resource(resourceUri: str) -> list[Message]:
    """A prompt with an embedded resource."""
    text = "Embedded resource content for testing."
    document = Embedded(resourceUri, text, "text/plain")
    return [Message(document), Message("Please process the embedded resource above.")]


@app.prompt()
def test_prompt_with_image() -> list[Message]:
    """A prompt with an image."""
    return [Message(Image(PNG)), Message("Please analyze the image above.")]


@app.prompt()
def test_input_required_result_prompt(ctx: Context) -> str:
    """A prompt that asks a question first."""
    schema = {"type": "object", "properties": {"context": {"type": "string"}}}
    answers = ctx.ask({"user_context": Elicit("What context should the prompt use?", schema)})
    return f"Use this context: {answers['user_context']['content']['context']}"


if __name__ == "__main__":
    app()
