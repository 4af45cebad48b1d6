"""`resources read` and `prompts get`: arguments and output."""

from __future__ import annotations

import pytest
from tests.serving.test_served_functions import make_app

from tooli.testing import invoke


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["code"], "The argument 'code' is not name=value."),
        (["code=1", "code=2"], "The argument 'code=2' is given twice."),
        (['{"code":'], "The arguments are not a JSON object."),
        ([], "'code' is required: text"),
        (["code=1", "dpth=1"], "There is no parameter 'dpth'"),
    ],
)
def test_wrong_arguments_of_a_prompt(words: list[str], message: str) -> None:
    done = invoke(make_app(), "prompts", "get", "review", *words, mode="json")
    assert done.exit_code == 2
    assert message in done.envelope["error"]["message"]


def test_arguments_of_a_prompt_as_json() -> None:
    app = make_app()
    done = invoke(app, "prompts", "get", "review", '{"code": "x", "depth": 3}', mode="json")
    assert done.envelope["result"]["messages"][0]["content"]["text"] == "depth 3: x"


def test_text_mode_prints_the_text() -> None:
    done = invoke(make_app(), "resources", "read", "notes://greeting/Ada", "--text")
    assert done.stdout == "Hello Ada\n"


def test_command_of_the_same_name_wins() -> None:
    app = make_app()

    @app.command(auth=[])
    def resources() -> str:
        """My own."""
        return "own"

    assert invoke(app, "resources", mode="json").envelope["result"] == "own"
    done = invoke(app, "tooli", "resources", "read", "notes://7", mode="json")
    assert done.envelope["result"] == {"number": 7}
