"""``agentic-rag mcp``: the tools over stdio, started by the official client."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters

from .conftest import CommandLine, make_notes

pytestmark = [pytest.mark.alone, pytest.mark.slow]
MAIN = "from agentic_rag_backend.cli.app import main; main()"


async def test_a_program_asks_local_stores(tmp_path: Path) -> None:
    cli = CommandLine(tmp_path)
    make_notes(cli.folder)
    assert cli("ingest", "notes").code == 0
    command = StdioServerParameters(command=sys.executable, args=["-c", MAIN, "mcp"], env=cli._environment(), cwd=str(cli.folder))
    async with Client(command, read_timeout_seconds=120) as client:
        answer = (await client.call_tool("ask", {"question": "Who founded the Kettle Bank?"})).structured_content
        assert answer is not None
        assert "Agnes Thorley" in answer["answer"]
        assert answer["citations"][0]["url"].startswith("agentic-rag:/console/#/d/")
        added = await client.call_tool("add_document", {"text": "The ferry Zinnia sails on Mondays.", "key": "ferry"})
        assert not added.is_error, added.content
