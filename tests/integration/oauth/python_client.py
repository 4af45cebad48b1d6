"""The OAuth client of the Python SDK, with a user who agrees to everything."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from tests.integration.oauth.processes import REDIRECT_URI


class Storage:
    """Keeps the tokens and the registration of a client in memory."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class Browser:
    """Follows the redirects of the authorization server, as the browser of a user does."""

    def __init__(self) -> None:
        self.requested: list[dict[str, str]] = []  # the parameters of the authorization requests
        self._answer: dict[str, list[str]] = {}

    async def open(self, url: str) -> None:
        query = parse_qs(urlsplit(url).query)
        self.requested.append({name: values[0] for name, values in query.items()})
        async with httpx2.AsyncClient() as browser:
            while not url.startswith(REDIRECT_URI):
                answer = await browser.get(url)
                assert answer.is_redirect, answer.text
                url = urljoin(url, answer.headers["location"])
        self._answer = parse_qs(urlsplit(url).query)

    async def read_answer(self) -> AuthorizationCodeResult:
        answer = self._answer
        return AuthorizationCodeResult(
            code=answer["code"][0], state=answer["state"][0], iss=answer["iss"][0]
        )


@asynccontextmanager
async def connect(
    url: str, mode: Any, storage: Storage, browser: Browser
) -> AsyncIterator[tuple[Client, OAuthClientProvider, list[httpx2.Response]]]:
    """Connect to a server that needs a token; yield the client, its OAuth state and responses."""
    metadata = OAuthClientMetadata(
        client_name="a test",
        redirect_uris=[REDIRECT_URI],
        token_endpoint_auth_method="client_secret_post",
    )
    auth = OAuthClientProvider(url, metadata, storage, browser.open, browser.read_answer)
    responses: list[httpx2.Response] = []

    async def keep(response: httpx2.Response) -> None:
        responses.append(response)

    hooks: Any = {"response": [keep]}
    async with httpx2.AsyncClient(auth=auth, event_hooks=hooks, timeout=60) as http_client:
        transport = streamable_http_client(url, http_client=http_client)
        async with Client(transport, mode=mode) as client:
            yield client, auth, responses
