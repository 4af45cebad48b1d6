"""SKILL.md, AGENTS.md, CLAUDE.md, llms.txt, and the document that an agent prefers."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any

import pytest
from markdown_it import MarkdownIt
from tests.describe.apps import make_documented_app, make_large_app
from tests.parity import sample_apps

from tooli import Argument, Option, Tooli
from tooli.annotations import Destructive
from tooli.describe.agent_documents import (
    build_discovery,
    build_llms_files,
    build_manifest,
    build_skill_files,
    render_agents_md_block,
    render_claude_md_block,
    render_document,
    render_llms_full,
    render_llms_txt,
    render_reference_page,
    render_skill_md,
)
from tooli.describe.man import build_man_pages
from tooli.describe.schema_formats import describe_tool
from tooli.describe.sections import collect_app_info
from tooli.testing import invoke
from tooli.text.sanitize import is_clean
from tooli.text.token_estimate import estimate_tokens


def test_skill_md() -> None:
    text = render_skill_md(collect_app_info(make_documented_app()))
    assert text.startswith('---\nname: my-tool\ndescription: >-\n  Finds "files", and more. Use it')
    assert '  version: "1.2"\n---\n\n# My tool\n' in text
    effects = "(read-only; capabilities: `fs:read`; cost: low)"
    assert f"### find\n\nFind files. Use it when a file is lost. {effects}" in text
    assert "```bash\n'My tool' find '*' --json\n```" in text, "the shortest example"
    assert "- `pattern`: What they are called." in text
    assert "Returns `[{path: str, size: int}]`. Fails with `E3001` (no file matched)." in text
    assert "Next: `wipe` (the file is not wanted), `digest`." in text
    assert "- `wipe` often follows `find`" in text
    assert "- `--target`: What to wipe." in text
    assert "a human must approve each call" in text
    assert "## Gotchas\n\nMind the `gap`." in text
    assert "### internal" not in text
    assert "secret" not in text
    assert "references/" not in text, "no links without reference pages"


def test_skill_has_a_reference_page_per_command() -> None:
    files = build_skill_files(collect_app_info(make_documented_app()))
    assert list(files) == [
        "SKILL.md",
        *[f"references/{name}.md" for name in ("find", "digest", "wipe")],
    ]
    for target in re.findall(r"\]\(([^)]+)\)", files["SKILL.md"]):
        assert target in files
    page = files["references/find.md"]
    assert page.startswith("# My tool find\n\nFind files.\n\nWhen to use it: When a file is lost.")
    assert "- Capabilities: `fs:read`\n- Cost: low\n- Takes up to 5 s\n- Delegate: An ag" in page
    assert "All of Python:\n\n```bash\n'My tool' find '*.py' --depth 3 --json\n```" in page
    assert "- `E3001`: no file matched; check the state that it describes" in page
    assert "- Next: `wipe`, the file is not wanted" in page
    assert "- Often after `find`" in files["references/wipe.md"]
    assert "Streams `str`, one per line" in files["references/digest.md"]


def test_example_outputs_follow_their_commands() -> None:
    app_info = collect_app_info(make_documented_app()).replace(
        example_outputs={("find", 0): '{"ok":true}'}
    )
    page = build_skill_files(app_info)["references/find.md"]
    assert '--depth 3 --json\n```\n\n```json\n{"ok":true}\n```' in page


def test_app_without_description_gets_a_default_one() -> None:
    text = render_skill_md(collect_app_info(Tooli("!")))
    assert "name: app\n" in text
    assert "The commands of !." in text


def test_text_with_special_characters() -> None:
    app = Tooli("t", description="a --- b\n---\n: c")

    @app.command(examples=[{"args": ["```", "a|b`c", "--", "-x"]}])
    def find(a: str, b: str, c: Annotated[str, Argument()] = "`") -> None:
        """Says `` `tick` `` and | and <!-- -->."""

    @app.command()
    def other() -> None:
        pass

    text = render_skill_md(collect_app_info(app))
    head = text.split("---\n")
    assert head[0] == ""
    assert "a — b — : c" in head[1]
    assert "````bash\nt find '```' 'a|b`c' --json -- -x\n````" in text


# ------------------------------------------------------------------ other documents


def test_agents_md() -> None:
    text = render_document(collect_app_info(make_documented_app()), "agents-md")
    assert text.startswith('# AGENTS.md\n\n## My tool\n\nFinds "files",\nand more.\n\n### Commands')
    assert "#### find\n\nFind files." in text
    assert "### Gotchas\n\nMind the `gap`." in text
    assert "- Run a destructive command with `--dry-run` first" in text
    assert "- Exit code 101: show the human" in text
    assert render_agents_md_block(collect_app_info(make_documented_app())) in text


def test_claude_md() -> None:
    text = render_document(collect_app_info(make_documented_app()), "claude-md")
    assert text.startswith("# CLAUDE.md\n\n## My tool\n")
    assert "- `find <pattern:str>" in text
    assert "TOOLI_CALLER=claude-code" in text
    short = render_claude_md_block(collect_app_info(make_documented_app()), refer_to_agents_md=True)
    assert short.startswith("@AGENTS.md\n\n## My tool\n")
    assert "- `find" not in short


@pytest.mark.parametrize("count", [1, 10, 40, 200, 1_000])
def test_documents_stay_within_their_token_budget(count: int) -> None:
    app_info = collect_app_info(make_large_app(count))
    assert estimate_tokens(render_document(app_info, "agents-md")) <= 4_000
    assert estimate_tokens(render_document(app_info, "claude-md")) <= 1_000


def test_manifest() -> None:
    manifest = build_manifest(collect_app_info(make_documented_app()))
    assert manifest["name"] == "My tool"
    assert list(manifest["commands"]) == ["find", "digest", "wipe"]
    find = manifest["commands"]["find"]
    assert find["argv"] == ["My tool", "find"]
    assert find["input_schema"]["required"] == ["pattern"]
    assert find["capabilities"] == ["fs:read"]
    assert find["delegation_hint"] == "An agent with a disk."
    assert find["handoffs"][0] == {"command": "wipe", "when": "the file is not wanted"}
    assert find["cost_hint"] == "low"
    assert manifest["commands"]["wipe"]["commonly_after"] == ["find"]
    assert manifest["commands"]["wipe"]["requires_approval"] is True
    assert manifest["exit_codes"]["101"] == "a human must approve or answer"
    assert manifest["errors"]["E1010"]
    assert manifest["caller_convention"]["env_var"] == "TOOLI_CALLER"
    assert json.loads(json.dumps(manifest)) == manifest


def test_discovery_lists_names_and_descriptions() -> None:
    discovery = build_discovery(collect_app_info(make_documented_app()))
    assert discovery["commands"][0] == {"name": "find", "description": "Find files."}


class TestCommandLine:
    @pytest.fixture
    def app(self) -> Tooli:
        return make_documented_app()

    def test_manifest(self, app: Tooli) -> None:
        done = invoke(app, "--agent-manifest")
        assert json.loads(done.stdout) == build_manifest(collect_app_info(app))

    def test_discover(self, app: Tooli) -> None:
        assert json.loads(invoke(app, "--discover").stdout) == build_discovery(
            collect_app_info(app)
        )

    @pytest.mark.parametrize(
        ("variables", "head"),
        [
            ({"TOOLI_CALLER": "claude-code"}, "# CLAUDE.md"),
            ({"CODEX_THREAD_ID": "1"}, "# AGENTS.md"),
            ({"COPILOT_CLI": "1"}, "# AGENTS.md"),
            ({"TOOLI_CALLER": "somebody"}, "---\nname: my-tool"),
            ({}, "---\nname: my-tool"),
        ],
    )
    def test_bootstrap(self, app: Tooli, variables: dict[str, str], head: str) -> None:
        done = invoke(app, "--agent-bootstrap", env=variables)
        assert done.stdout.startswith(head)

    def test_bootstrap_in_an_envelope(self, app: Tooli) -> None:
        assert invoke(app, "--agent-bootstrap", "--json").result.startswith("---\n")

    def test_flag_of_the_command_takes_precedence(self) -> None:
        app = Tooli("t")

        @app.command()
        def find(discover: bool = False) -> bool:
            return discover

        assert invoke(app, "--discover", "--json").result is True

    @pytest.mark.parametrize(
        ("args", "head"),
        [
            (["generate-skill"], "---\nname: my-tool"),
            (["generate-skill", "--format", "claude-md"], "# CLAUDE.md\n"),
            (["generate-skill", "--format", "agents-md"], "# AGENTS.md\n"),
            (["generate-agents-md"], "# AGENTS.md\n"),
        ],
    )
    def test_generate_commands_print_one_document(
        self, app: Tooli, args: list[str], head: str
    ) -> None:
        done = invoke(app, *args)
        assert done.stdout.startswith(head)
        assert done.stdout.endswith("\n")
        assert not done.stdout.endswith("\n\n")


# ------------------------------------------------------------------ unsafe text

UNSAFE_TEXT = "\x1b[31mred\x1b[0m \x1b]0;title\x07 \u202egnp.exe\u202c z\u200bw \x9b31m\x7f\r over"
UNTERMINATED_ESCAPE = "\x1b]0;an unterminated sequence"


def make_unsafe_app() -> Tooli:
    app = Tooli(
        "odd", help=f"An app {UNSAFE_TEXT}.\n\n~~~\nan open fence", version=f"1{UNSAFE_TEXT}"
    )

    @app.command(
        help=f"Show: {UNTERMINATED_ESCAPE}\n\n{UNSAFE_TEXT}\n\n```python\ncode\n`` `",
        examples=[{"args": ["--name", UNSAFE_TEXT], "description": f"{UNSAFE_TEXT}\n```"}],
        error_codes={"E3001": UNSAFE_TEXT},
        when_to_use=f"Never \x07 {UNSAFE_TEXT}",
    )
    def show(
        name: Annotated[str, Option(help=f"Its {UNSAFE_TEXT}\n---\n```")] = f"a\nb{UNSAFE_TEXT}",
    ) -> str:
        return name

    @app.command(help=f"Burn it \x07 {UNSAFE_TEXT}")
    def burn() -> str:
        return ""

    return app


def unsafe_documents() -> dict[str, str]:
    app_info = collect_app_info(make_unsafe_app())
    written = {
        "AGENTS.md": render_document(app_info, "agents-md"),
        "CLAUDE.md": render_document(app_info, "claude-md"),
    }
    return {
        **written,
        **build_skill_files(app_info),
        **{f"llms/{name}": text for name, text in build_llms_files(app_info).items()},
    }


def test_documents_have_no_terminal_escapes() -> None:
    app = make_unsafe_app()
    texts = [*unsafe_documents().values(), *build_man_pages(collect_app_info(app)).values()]
    texts += [invoke(app, *args, "--help-agent").stdout for args in ([], ["show"])]
    assert len(texts) > 8
    for text in texts:
        assert is_clean(text)
        assert "\r" not in text
        assert "[31m" not in text
        assert "Burn it" in text or "odd" in text, "other text must stay"


@pytest.mark.parametrize("schema_format", ["json", "mcp", "openai", "anthropic"])
def test_schemas_have_no_terminal_escapes(schema_format: str) -> None:
    descriptions: list[str] = []

    def collect(value: Any) -> None:
        if isinstance(value, dict):
            descriptions.extend([text for name, text in value.items() if name == "description"])
        for item in value.values() if isinstance(value, dict) else value:
            if isinstance(item, (dict, list)):
                collect(item)

    schema = describe_tool(next(iter(make_unsafe_app().catalog)), schema_format)
    schema.pop("examples", None)  # examples are argv, not text
    collect(schema)
    assert len(descriptions) >= 2
    assert all(map(is_clean, descriptions))


@pytest.mark.parametrize("name", ["AGENTS.md", "SKILL.md", "references/show.md", "llms/llms.txt"])
def test_open_code_fences_are_closed(name: str) -> None:
    text = unsafe_documents()[name]
    _, _, body = text.rpartition("\n---\n") if text.startswith("---") else ("", "", text)
    found = MarkdownIt().parse(body)
    heads = [found[i + 1].content for i, one in enumerate(found) if one.type == "heading_open"]
    expected = {"references/show.md": ["Usage", "Result"], "llms/llms.txt": ["Commands"]}
    assert set(expected.get(name, ["Commands", "Output", "burn"])) <= set(heads)


def test_front_matter_is_valid_yaml() -> None:
    yaml = pytest.importorskip("yaml")
    head = unsafe_documents()["SKILL.md"].split("---\n")[1]
    text = yaml.safe_load(head)
    assert list(text) == ["name", "description", "compatibility", "metadata"]
    assert "burn it" in text["description"]


# ------------------------------------------------------------------ llms.txt


def make_shop() -> Tooli:
    app = Tooli(
        "shop",
        version="2",
        description="## Sell\nthings\n\n## Really\n\n- many",
        sections={"Gotchas": "Mind the gap."},
    )

    @app.command(annotations=Destructive)
    def buy(item: str) -> list[str]:
        """Buy something.

        > quoted

        ## Heading
        """
        return [item]

    @app.command()
    def look():
        return None

    group = Tooli("stock")
    group.command("[odd] name")(look)
    app.add_typer(group, name="stock")
    return app


def test_llms_txt() -> None:
    lines = render_llms_txt(collect_app_info(make_shop())).splitlines()
    assert lines[:3] == ["# shop", "", "> ## Sell things."]
    assert lines[4].startswith("shop (version 2) is a command line program.")
    assert "`shop COMMAND … --json`" in lines[4]
    assert lines[5:] == [
        "",
        "## Commands",
        "",
        "- [buy](references/buy.md): Buy something. (destructive)",
        "- [look](references/look.md)",
        "",
        "## Commands: stock",
        "",
        "- [stock (odd) name](references/stock.-odd--name-0267fd.md)",
        "",
        "## Optional",
        "",
        "- [llms-full.txt](llms-full.txt): Everything in one file",
    ]


def test_llms_full_txt() -> None:
    text = render_llms_full(collect_app_info(make_shop()))
    assert text.startswith("# shop\n\n> ## Sell things.\n\nshop (version 2)")
    assert "\n## Really\n\n- many\n" in text
    assert text.index("\n## shop buy\n") < text.index("\n## shop look\n")
    assert text.index("\n### Usage\n") > text.index("\n## shop buy\n")
    assert "\n## Output\n" in text
    assert text.endswith("## Gotchas\n\nMind the gap.\n")


def test_llms_full_txt_contains_every_reference_page() -> None:
    app_info = collect_app_info(sample_apps.make_app())
    whole = render_llms_full(app_info)
    for tool in app_info.tools:
        _, *blocks = render_reference_page(app_info, tool).split("\n\n")
        for block in blocks:
            assert block.removeprefix("#").strip() in whole


def test_llms_txt_of_a_minimal_app() -> None:
    single: Any = collect_app_info(sample_apps.make_single_command_app())
    assert "`single … --json`" in render_llms_txt(single)
    assert "> The commands of single.\n" in render_llms_txt(single)
    assert "\n## single\n" in render_llms_full(single)
    empty = collect_app_info(Tooli("empty"))
    assert "## Commands" not in render_llms_txt(empty)
    assert render_llms_full(empty).startswith("# empty\n")


def test_help_agent_has_one_line_per_command() -> None:
    lines = invoke(make_unsafe_app(), "--help-agent").stdout.splitlines()
    assert [line.split()[0] for line in lines] == [
        "odd",
        "show",
        "burn",
        "call:",
        "any",
        "records:",
    ]
    assert "Show:" in lines[1]
