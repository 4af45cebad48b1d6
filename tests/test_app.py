"""Tooli: registration, names, attributes of Typer, stages of calls."""

from __future__ import annotations

import inspect
import subprocess
import sys
from typing import Any

import pytest
import typer

import tooli.app
from tooli import Tooli
from tooli.annotations import Destructive
from tooli.core.call import PYTHON_CALLER, Call, Caller, Ok, Options
from tooli.errors import DefinitionError
from tooli.pipeline import stage_name
from tooli.serving import dispatcher


def make_app() -> Tooli:
    """Return an app with a command, a group and a group in the group."""
    app, users, admins = Tooli("shop", version="1.0"), Tooli("users"), Tooli("admins")

    @app.command()
    def find_items(pattern: str = "*") -> list[str]:
        return [pattern]

    @users.command("create")
    def create_user(name: str) -> str:
        return name

    @admins.command()
    def drop_all() -> str:
        return "dropped"

    users.add_typer(admins, name="super_admins")
    app.add_typer(users)
    return app


def run_python(code: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


# ------------------------------------------------------------------ keywords


def test_app_has_default_settings() -> None:
    state = Tooli("shop")._state
    assert (state.name, state.version, state.description) == ("shop", None, None)
    assert (state.policy, state.default_output, state.mcp_transport) == (
        "standard",
        "auto",
        "stdio",
    )
    assert (state.skill_auto_generate, state.framework_help, state.sections) == (False, True, {})


def test_description_is_the_help_of_typer_unless_both_are_given() -> None:
    assert Tooli(description="Sell.").info.help == "Sell."
    both = Tooli(description="Sell.", help="Help.")
    assert (both.info.help, both._state.description) == ("Help.", "Sell.")
    assert Tooli(help="Help.")._state.description == "Help."


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"security_policy": "strcit"}, "strict"),
        ({"default_output": "jsn"}, "json"),
        ({"mcp_transport": "websocket"}, "mcp_transport"),
        ({"permissions": ["fs:raed"]}, "fs:raed"),
        ({"nme": "x"}, r"Tooli\(\) has no keyword 'nme'; did you mean 'name'"),
        ({"descripton": "x"}, r"Tooli\(\) has no keyword 'descripton'; did you mean 'description'"),
    ],
)
def test_invalid_keyword_value_is_rejected(kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        Tooli("shop", **kwargs)


# ------------------------------------------------------------------ registering


def test_registered_functions_are_unchanged() -> None:
    app = Tooli("shop")

    def function() -> None: ...

    assert app.command()(function) is function
    assert app.callback()(function) is function
    assert app.resource("notes://all")(function) is function
    assert app.prompt()(function) is function


@pytest.mark.parametrize(
    ("register", "message"),
    [
        (
            lambda app: app.command(destructive=True),
            r"'destructive'; write annotations=Destructive",
        ),
        (lambda app: app.command(read_only=True), r"write annotations=ReadOnly"),
        (lambda app: app.command(timeuot=3), r"command\(\) has no keyword 'timeuot'"),
        (lambda app: app.callback(no_args_is_hlep=True), r"callback\(\) has no keyword"),
        (lambda app: app.add_typer(Tooli(), nmae="x"), r"add_typer\(\) has no keyword 'nmae'"),
        (lambda app: app.options(dry_rnu=True), r"options\(\) has no keyword 'dry_rnu'"),
        (lambda app: app.lazy_command("module"), "module"),
    ],
)
def test_misspelled_keyword_is_rejected(register: Any, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        register(Tooli("shop"))


def test_lazy_command_is_imported_when_it_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    app = Tooli("shop")
    app.lazy_command("colorsys:rgb_to_hsv", "convert")
    assert "colorsys" not in sys.modules
    tool = app.find("convert")
    assert tool is not None
    assert tool.fn is sys.modules["colorsys"].rgb_to_hsv


def test_root_of_a_group_is_the_app_it_was_added_to() -> None:
    app, users = Tooli("shop"), Tooli("users")
    app.add_typer(users)
    app.add_typer(typer.Typer(), name="plain")
    assert users._state.root is app._state


@pytest.mark.parametrize("is_in_plain_typer", [False, True], ids=["direct", "in a plain Typer"])
def test_group_of_two_apps_uses_the_settings_of_each_app(is_in_plain_typer: bool) -> None:
    """Each app applies its own permissions and stages, and sees commands that are added later."""
    group = Tooli("group")
    group.command("read", capabilities=["net:read"])(lambda: 1)
    group.command("other")(lambda: 1)
    called: list[str] = []

    def log_call(call: Any) -> Any:
        called.append(call.tool.id)
        return (yield call)

    limited, free = Tooli("same-name", permissions=["none"]), Tooli("same-name")
    limited.use(log_call)
    for app in (limited, free):
        if is_in_plain_typer:
            plain = typer.Typer()
            plain.add_typer(group, name="group")
            app.add_typer(plain, name="plain")
        else:
            app.add_typer(group, name="group")
    prefix = "plain.group" if is_in_plain_typer else "group"
    assert free.call(f"{prefix}.read").ok
    assert limited.call(f"{prefix}.read").error.code == "E5000"
    assert called == []
    assert limited.call(f"{prefix}.other").ok
    assert called == [f"same-name.{prefix}.other"]
    assert free.call(f"{prefix}.other").ok
    assert len(called) == 1
    group.command("late")(lambda: 1)
    assert free.call(f"{prefix}.late").ok
    assert limited.call(f"{prefix}.late").ok


# ------------------------------------------------------------------ names


@pytest.mark.parametrize(
    ("name", "tool_id"),
    [
        ("find-items", "shop.find-items"),
        ("find_items", "shop.find-items"),
        ("users.create", "shop.users.create"),
        ("users create", "shop.users.create"),
        ("users/create", "shop.users.create"),
        ("users.super-admins.drop_all", "shop.users.super_admins.drop-all"),
    ],
)
def test_command_is_found_by_any_form_of_its_name(name: str, tool_id: str) -> None:
    tool = make_app().find(name)
    assert tool is not None
    assert tool.id == tool_id


@pytest.mark.parametrize(
    "name", ["", ".", "missing", "users", "create", "users.missing", "find-items.x", "Find-Items"]
)
def test_unknown_name_is_not_found(name: str) -> None:
    assert make_app().find(name) is None


def test_catalog_and_tree_contain_every_command() -> None:
    app = make_app()
    keys = ["find-items", "users.create", "users.super_admins.drop-all"]
    assert [tool.key for tool in app.catalog] == keys
    assert [".".join(path) for path, _ in app.tree().walk()] == keys


# ------------------------------------------------------------------ Typer


def test_app_is_a_typer() -> None:
    assert issubclass(Tooli, typer.Typer)
    assert isinstance(Tooli("shop"), typer.Typer)


def test_base_class_is_set_once() -> None:
    before = Tooli.__bases__
    tooli.app.set_typer_base()
    assert Tooli.__bases__ == before == (typer.Typer,)


def test_typer_becomes_the_base_class_when_it_is_imported() -> None:
    found = run_python(
        "import sys\n"
        "from tooli import Tooli\n"
        "app = Tooli('shop')\n"
        "app.command()(lambda: None)\n"
        "print('typer' in sys.modules, Tooli.__bases__[0].__name__)\n"
        "import typer\n"
        "print(isinstance(app, typer.Typer), app._state.is_typer_initialized)\n"
        "print(len(app.registered_commands), app._state.is_typer_initialized)\n"
    )
    assert found == ["False _TyperPlaceholder", "True False", "1 True"]


def test_typer_is_the_base_class_if_it_was_imported_first() -> None:
    found = run_python(
        "import typer\nfrom tooli import Tooli\nprint(Tooli.__bases__ == (typer.Typer,))"
    )
    assert found == ["True"]


def test_attribute_of_typer_initializes_it() -> None:
    app = make_app()
    assert not app._state.is_typer_initialized
    assert len(app.registered_groups) == 1
    assert app._state.is_typer_initialized


def test_setting_an_attribute_of_typer_initializes_it_first() -> None:
    app = make_app()
    app.other = 1
    assert not app._state.is_typer_initialized
    app.rich_markup_mode = None
    assert app._state.is_typer_initialized
    assert app.rich_markup_mode is None


def test_unknown_attribute_raises_attribute_error() -> None:
    app = make_app()
    with pytest.raises(AttributeError, match="'Tooli' object has no attribute 'no_such_name'"):
        _ = app.no_such_name
    with pytest.raises(AttributeError):
        _ = app.__no_such_name__
    with pytest.raises(AttributeError):
        _ = Tooli.__new__(Tooli).name


def test_commands_can_be_called_as_attributes() -> None:
    app = make_app()
    assert app.find_items(pattern="a").unwrap() == ["a"]
    assert app.users.create(name="Ada").unwrap() == "Ada"
    assert not app._state.is_typer_initialized


# ------------------------------------------------------------------ stages and calls


def test_use_adds_stages_as_function_and_as_decorator() -> None:
    app = make_app()
    seen: list[str] = []

    def outer(call: Call):
        seen.append("outer")
        return (yield call)

    assert app.use(outer) is outer

    @app.use(after="bind")
    def inner(call: Call):
        seen.append(f"inner {call.arguments['pattern']}")
        yield call
        return Ok("replaced")

    assert app.call("find-items", pattern="a").unwrap() == "replaced"
    assert seen == ["outer", "inner a"]


def stage_names(app: Tooli, name: str, options: Options, caller: Caller | None = None) -> set[str]:
    tool = app.find(name)
    assert tool is not None
    return {stage_name(stage) for stage in app.stages_for(tool, options, caller)}


def test_options_add_stages() -> None:
    app = make_app()
    plain = stage_names(app, "find-items", Options())
    assert plain == {"bind"}
    assert stage_names(app, "find-items", Options(dry_run=True)) > plain
    assert stage_names(app, "find-items", Options(timeout=5)) > plain


def test_prepare_adds_the_state_of_the_app() -> None:
    app = Tooli("shop", security_policy="strict")
    app.command("drop", annotations=Destructive)(lambda: None)
    tool = app.find("drop")
    assert tool is not None
    call, stages = app.prepare(Call(tool, {}, PYTHON_CALLER, []))
    assert len(stages) > 1
    assert (call.policy, call.meta, call.secrets) == ("strict", {}, [])


def test_prepare_leaves_a_plain_call_unchanged() -> None:
    app = make_app()
    tool = app.find("find-items")
    assert tool is not None
    call = Call(tool, {}, PYTHON_CALLER, [])
    assert app.prepare(call)[0] is call


def test_options_do_not_change_the_app() -> None:
    app = Tooli("shop")
    app.command("drop", annotations=Destructive)(lambda: "dropped")
    assert app.options(yes=True).call("drop").unwrap() == "dropped"
    assert not app.call("drop").ok


def test_announce_notifies_the_listeners_of_every_app_above() -> None:
    app, users = Tooli("shop"), Tooli("users")
    app.add_typer(users)
    seen: list[Any] = []
    app._state.change_listeners.append(lambda *event: seen.append(event))
    users.announce("notes://1")
    assert seen == [("resource", "notes://1")]


# ------------------------------------------------------------------ surfaces


def test_call_of_the_app_runs_the_command_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["shop", "find-items", "--pattern", "b", "--jsonl"])
    with pytest.raises(SystemExit) as caught:
        make_app()()
    assert caught.value.code in (None, 0)
    assert capsys.readouterr().out == '"b"\n'


def test_builtins_contain_all_or_the_named_groups() -> None:
    app = make_app()
    everything = app.builtins()
    assert isinstance(everything, Tooli)
    assert {"mcp", "docs"} <= everything.tree().groups.keys()
    only = app.builtins("mcp").tree()
    assert set(only.groups) == {"mcp"}
    assert "serve" in only.groups["mcp"].commands


@pytest.mark.parametrize(
    ("mcp", "installed", "mounted"),
    [(True, True, True), (False, True, False), (True, False, False)],
)
def test_asgi_mounts_mcp_if_it_is_installed(
    mcp: bool, installed: bool, mounted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher, "is_installed", lambda package: installed)
    seen: list[Any] = []
    monkeypatch.setattr("tooli.http.asgi.make_api", lambda app, kwargs: seen.append(kwargs))
    mounts = {"/other": object()}
    make_app().asgi(mcp=mcp, mounts=mounts)
    assert set(seen[0]["mounts"]) == ({"/mcp", "/other"} if mounted else {"/other"})


def test_signature_has_the_keywords_of_typer_and_of_tooli() -> None:
    """Tools that read the signature of a Typer class see the same keywords."""
    own, inherited = (inspect.signature(cls.__init__).parameters for cls in (Tooli, typer.Typer))
    assert set(inherited) <= set(own)
    assert {"description", "version", "framework_help"} <= set(own)
    assert not any(p.kind is p.VAR_KEYWORD for p in own.values())
