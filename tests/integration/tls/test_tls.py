"""Each store is accessed over TLS, and only with a trusted certificate."""

from __future__ import annotations

import asyncio
import gc
import json
import shutil
import ssl
import subprocess
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import psycopg
import pytest
from services import Missing, free_port, postgres

from agentic_rag_backend.errors import ConfigurationError, StoreUnavailable
from agentic_rag_backend.stores.catalogue.base import Catalogue
from agentic_rag_backend.stores.graph.bolt import Neo4jAddress, Neo4jConnections
from agentic_rag_backend.stores.vector.qdrant.server import QdrantServer, connect

Answers = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
_BOLT = b"\x60\x60\xb0\x17"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a certificate authority (``ca.pem``) and a certificate for this machine (``server.*``)."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("there is no `openssl` to make certificates with")
    folder = tmp_path_factory.mktemp("certificates")

    def run(*arguments: str) -> None:
        subprocess.run([openssl, *arguments], cwd=folder, check=True, capture_output=True)

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    run("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=tests",
        "-addext", "keyUsage=critical,keyCertSign", "-addext", "basicConstraints=critical,CA:TRUE")  # fmt: skip
    run("req", *key, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=localhost")
    (folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\nauthorityKeyIdentifier=keyid\n")
    run("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
        "-extfile", "names", "-out", "server.pem")  # fmt: skip
    run("req", "-x509", *key, "-keyout", "other.key", "-out", "other.pem", "-days", "2", "-subj", "/CN=stranger")
    return folder


@asynccontextmanager
async def served(certificates: Path, answer: Answers) -> AsyncIterator[int]:
    """Answer connections over TLS and yield the port."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificates / "server.pem", certificates / "server.key")
    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def _as_qdrant(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    body = json.dumps({"title": "qdrant", "version": "1.19.0"}).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    writer.write(head.encode() + body)
    await writer.drain()
    writer.close()


async def _version(port: int, ca_file: Path | None) -> str:
    server = QdrantServer(connect(f"https://localhost:{port}", timeout_s=5, ca_file=ca_file), timeout_s=5)
    try:
        return str((await server.call("telling its version", server.client.info)).version)
    finally:
        await server.close()


async def test_qdrant_is_trusted_by_its_authority_alone(certificates: Path) -> None:
    async with served(certificates, _as_qdrant) as port:
        assert await _version(port, certificates / "ca.pem") == "1.19.0"
        for stranger in (None, certificates / "other.pem"):
            with pytest.raises(StoreUnavailable):
                await _version(port, stranger)


@pytest.mark.parametrize(
    ("url", "named"),
    [("http://localhost:1", {}), ("https://localhost:1", {"prefer_grpc": True}), ("https://localhost:1", {"missing": True})],
)
def test_certificates_that_would_not_be_used_are_refused(certificates: Path, url: str, named: dict[str, bool]) -> None:
    ca_file = certificates / ("none.pem" if named.pop("missing", False) else "ca.pem")
    with pytest.raises(ConfigurationError):
        connect(url, ca_file=ca_file, **named)  # type: ignore[arg-type]


async def _first_bytes(certificates: Path, uri: str, ca_file: Path | None) -> bytes:
    """Return the driver's first bytes inside TLS. Empty if it does not trust the server."""
    said: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        said.append(await reader.read(4))
        writer.close()

    async with served(certificates, answer) as port:
        address = Neo4jAddress(uri=uri.format(port), password="p", timeout_s=3, write_timeout_s=3, ca_file=ca_file)
        connections = Neo4jConnections.open(address)
        with pytest.raises(StoreUnavailable):  # the server does not speak Bolt
            await connections.read(lambda transaction: transaction.run("RETURN 1", {}))
        await connections.close()
    gc.collect()
    return b"".join(said[:1])


# The driver leaves the socket of a failed handshake to the garbage collector.
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.parametrize("scheme", ["bolt+s", "neo4j+s"])
async def test_neo4j_is_trusted_by_its_authority_alone(certificates: Path, scheme: str) -> None:
    uri = scheme + "://localhost:{}"

    assert await _first_bytes(certificates, uri, certificates / "ca.pem") == _BOLT
    assert await _first_bytes(certificates, uri, certificates / "other.pem") == b""
    assert await _first_bytes(certificates, uri, None) == b""


def test_neo4j_without_tls_takes_no_certificates(certificates: Path) -> None:
    with pytest.raises(ConfigurationError, match="needs NEO4J_URI to begin with"):
        Neo4jConnections.open(Neo4jAddress(uri="bolt://localhost:1", ca_file=certificates / "ca.pem"))


@contextmanager
def postgres_with_tls(certificates: Path, folder: Path) -> Iterator[str]:
    """Start PostgreSQL with the server's certificate, and yield its URL with the certificate's host name."""
    with postgres(folder, durable=False, port=free_port()) as server, psycopg.connect(server.url, autocommit=True) as connection:
        (data,) = connection.execute("SHOW data_directory").fetchone() or ("",)
        for name in ("server.pem", "server.key"):
            held = Path(data) / name
            held.write_bytes((certificates / name).read_bytes())
            shutil.chown(held, Path(data).owner())
            held.chmod(0o600)
        for name, value in {"ssl_cert_file": "server.pem", "ssl_key_file": "server.key", "ssl": "on"}.items():
            connection.execute(f"ALTER SYSTEM SET {name} = '{value}'")
        connection.execute("SELECT pg_reload_conf()")
        yield server.url.replace("127.0.0.1", "localhost")


async def test_postgresql_is_trusted_by_its_authority_alone(
    certificates: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:

    monkeypatch.delenv("TEST_DATABASE_URL", raising=False)
    with tempfile.TemporaryDirectory(prefix="agentic-rag-tls-") as named:
        try:
            running = postgres_with_tls(certificates, Path(named))
            with running as url:
                ca, other = certificates / "ca.pem", certificates / "other.pem"
                catalogue = await Catalogue.open(f"{url}?sslmode=verify-full&sslrootcert={ca}")
                await catalogue.migrate()
                await catalogue.ping()
                await catalogue.close()
                with pytest.raises(StoreUnavailable):
                    await Catalogue.open(f"{url}?sslmode=verify-full&sslrootcert={other}")
        except Missing as missing:
            pytest.skip(str(missing))
