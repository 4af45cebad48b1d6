"""Generators make clients from the OpenAPI document of the sample app, and the clients compile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.integration.node import environment_for_node, install, node
from tests.parity.sample_apps import make_app

from tooli.describe.openapi_document import build_openapi

PYTHON_TOOLS = ("openapi-python-client==0.29.1", "mypy==2.4.1", "ruff==0.17.4")
NODE_TOOLS = (
    "openapi-typescript@7.13.0",
    "typescript@5.9.3",
    "openapi-fetch@0.17.0",
    "@hey-api/openapi-ts@0.99.0",
)
TSC_FLAGS = (
    *("--noEmit", "--strict", "--target", "es2022", "--module", "esnext"),
    *("--moduleResolution", "bundler", "--skipLibCheck", "--lib", "es2022,dom,dom.iterable"),
)


@pytest.fixture
def document(tmp_path: Path) -> Path:
    app = make_app()
    state = app._state
    path = tmp_path / "openapi.json"
    built = build_openapi(state.name, state.version, state.description, app.catalog)
    path.write_text(json.dumps(built))
    return path


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**environment_for_node(), **environment},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout + done.stderr


def test_python_client(document: Path, tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    uv = (sys.executable, "-m", "uv")
    run(*uv, "venv", venv, cwd=tmp_path)
    run(*uv, "pip", "install", "--python", venv / "bin" / "python", *PYTHON_TOOLS, cwd=tmp_path)
    path = f"{venv / 'bin'}{os.pathsep}{os.environ['PATH']}"
    generate = (venv / "bin" / "openapi-python-client", "generate", "--path", document)
    shown = run(*generate, "--output-path", "client", "--meta", "none", cwd=tmp_path, PATH=path)
    assert "arning" not in shown
    # the generator's own file client.py has errors for every document
    run(
        venv / "bin" / "mypy",
        "client/api",
        "client/models",
        "--follow-imports",
        "silent",
        cwd=tmp_path,
    )


def test_typescript_clients(document: Path, tmp_path: Path) -> None:
    folder = install(NODE_TOOLS[0], *NODE_TOOLS[1:])
    modules = folder / "node_modules"
    (tmp_path / "node_modules").symlink_to(modules)
    run(node(), modules / "openapi-typescript/bin/cli.js", document, "-o", "types.ts", cwd=tmp_path)
    generator = modules / "@hey-api/openapi-ts/bin/run.js"
    run(node(), generator, "-i", document, "-o", "sdk", cwd=tmp_path)
    (tmp_path / "use.ts").write_text(
        """import createClient from "openapi-fetch";
import type { paths } from "./types";
import { argumentBytes, getFindFiles, planDelete, uploadArgumentBytes, usersCreate } from "./sdk";
export async function use() {
  const client = createClient<paths>({ baseUrl: "http://localhost" });
  const created = await client.POST("/tools/users/create", { body: { user: { name: "Ada" } } });
  const name: string | undefined = created.data?.result.name;
  const query = { pattern: "*.py", kinds: ["a"] };
  const found = await client.GET("/tools/find-files", { params: { query } });
  const plan = await planDelete({ body: { path: "a" } });
  const basis: string | undefined = plan.data?.result.basis;
  const user = await usersCreate({ body: { user: { name: "A" } } });
  const age: number | undefined = user.data?.result.age;
  await getFindFiles({ query });
  await argumentBytes({ body: { value: "text" } });
  await uploadArgumentBytes({ body: { value: new Blob(["text"]) } });
  return [name, found, basis, age];
}
"""
    )
    run(node(), modules / "typescript/bin/tsc", *TSC_FLAGS, "use.ts", cwd=tmp_path)
