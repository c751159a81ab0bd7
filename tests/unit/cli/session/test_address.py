"""The files with a running server's address: private, and ignored when outdated."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from agentic_rag_backend.cli.session.address import (
    Address,
    Credentials,
    announce_server,
    read_address,
    read_credentials,
    write_credentials,
)
from agentic_rag_backend.cli.session.remote import find_server
from agentic_rag_backend.errors import ConfigurationError
from agentic_rag_backend.settings import Settings


def test_written_credentials_are_read_back_and_private(tmp_path: Path) -> None:
    made = Credentials(tenant="default", tenant_id="t_1", key="ark_1", operator_key="o")
    address = Address(url="http://127.0.0.1:1", pid=os.getpid())
    previous = os.umask(0)
    try:
        write_credentials(tmp_path, made)
        with announce_server(tmp_path, address):
            assert read_address(tmp_path) == address
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    finally:
        os.umask(previous)
    assert modes == {"credentials.json": 0o600, "server.json": 0o600}
    assert read_credentials(tmp_path) == made
    assert not (tmp_path / "server.json").exists()


def test_an_address_that_a_killed_server_left_is_none(tmp_path: Path) -> None:
    code = (
        "import os, pathlib, sys; from agentic_rag_backend.cli.session.address import Address, announce_server; "
        "held = announce_server(pathlib.Path(sys.argv[1]), Address(url='http://127.0.0.1:1', pid=1)); held.__enter__(); "
        "print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == b"held\n"
        assert read_address(tmp_path) == Address(url="http://127.0.0.1:1", pid=1)
        server.kill()
    assert (tmp_path / "server.json").exists()
    assert read_address(tmp_path) is None
    with announce_server(tmp_path, Address(url="http://127.0.0.1:2", pid=2)):
        assert read_address(tmp_path) == Address(url="http://127.0.0.1:2", pid=2)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"url": 3, "pid": 1}', '{"url": "http://x"}'])
def test_a_damaged_address_is_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "server.json"
    path.write_text(text)
    with path.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert read_address(tmp_path) is None


async def test_an_address_where_nothing_answers_is_no_server(tmp_path: Path) -> None:
    with announce_server(tmp_path, Address(url="http://127.0.0.1:1", pid=os.getpid())):
        assert await find_server(Settings(data_dir=tmp_path, _env_file=None)) is None


def test_a_server_that_ends_late_leaves_its_successors_address(tmp_path: Path) -> None:
    late = announce_server(tmp_path, Address(url="http://127.0.0.1:1", pid=1))
    late.__enter__()
    with announce_server(tmp_path, Address(url="http://127.0.0.1:2", pid=2)):
        late.__exit__(None, None, None)
        assert read_address(tmp_path) == Address(url="http://127.0.0.1:2", pid=2)


def test_damaged_credentials_are_reported_and_kept(tmp_path: Path) -> None:
    assert read_credentials(tmp_path) is None
    (tmp_path / "credentials.json").write_text(json.dumps({"tenant": "default"}))
    with pytest.raises(ConfigurationError, match=r"credentials\.json is damaged"):
        read_credentials(tmp_path)
