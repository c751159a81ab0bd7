"""OpenAI's client, as its maker publishes it, on the application in process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import openai
import pytest_asyncio
from tests.e2e.api.conftest import Client, World

QUESTION = "Why was the tidal barrage delayed?"
QUESTIONS = (
    QUESTION,
    "Who leads the Harbour Authority?",
    "When did the Harbour Authority begin the tidal barrage?",
    "What did the Amberquoll Society object to?",
    "Who won the football world cup in 1966?",
    "Who delivered the caisson?",
    "What are the main themes of these documents?",
    "How many moons does Jupiter have?",
)


def client_for(world: World, caller: Client, **options: Any) -> openai.AsyncOpenAI:
    """Return the official client of a caller."""
    http = httpx2.AsyncClient(transport=httpx2.ASGITransport(world.app, raise_app_exceptions=False))
    key = caller.caller.key or "none"
    return openai.AsyncOpenAI(api_key=key, base_url="http://test/openai/v1", http_client=http, max_retries=0, **options)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(world: World) -> AsyncIterator[openai.AsyncOpenAI]:
    """Return a client with a key that reads."""
    async with client_for(world, world.alpha_reader) as opened:
        yield opened


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def writer(world: World) -> AsyncIterator[openai.AsyncOpenAI]:
    """Return a client with a key that writes."""
    async with client_for(world, world.alpha_writer) as opened:
        yield opened
