"""Every command of the guide and of the README's command line runs, block by block in a shell, with a running server.

A block that cannot run here has a comment before it, which is invisible on the page:

- ``<!-- not run: needs a Neo4j server -->``: left out; `REASONS` lists the accepted reasons;
- ``<!-- run: without a server -->``: runs on its own folder;
- ``<!-- run: a conflict is an answer -->``: an error is accepted, such as 409 for the retry of a job that succeeded.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from programs import Program, environment_of_templates, run

from agentic_rag_backend.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted((ROOT / "docs" / "guide").glob("*.md")), ROOT / "README.md"]
REASONS = {
    "Docker", "a Neo4j server", "a Qdrant server", "stores that processes share", "a server at that address", "a model server",
    "a package index", "the model hub", "the packages of the frameworks", "keys of the first steps, which another test runs",
    "a collector",
}  # fmt: skip
ALONE, CONFLICTS = "run: without a server", "run: a conflict is an answer"
OPERATOR_KEY = "an-operators-key-for-the-guide-0123456789"
CORPUS = ("narrows-accord-2012.md", "courier-2011-hearing-at-scarrow.md", "courier-2014-array-opens.md")
_BLOCK = re.compile(r"(?:^<!-- (?P<mark>[^>]*) -->\n)?^```(?P<language>\w*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = '''#!{python}
"""`agentic-rag` as the pages call it, forked from a template process: to start an interpreter takes longer than most commands.

`serve` is stopped as soon as it serves, on a free port and a folder of its own.
"""
import os, pathlib, sys, tempfile, time
sys.path.insert(0, {fixtures!r})
from programs import Program
arguments, data = sys.argv[1:], None
if arguments[:1] == ["serve"]:
    data = pathlib.Path(tempfile.mkdtemp())
    arguments += ["--port", "0", "--data-dir", str(data)]
process = Program(arguments, cwd=pathlib.Path.cwd(), env=os.environ, stdin=0, stdout=1, stderr=2)
while data and not (data / "server.json").exists() and process.poll() is None:
    time.sleep(0.05)
if data:
    process.terminate()
sys.exit(process.wait())
'''
_PRELUDE = """set -euo pipefail
curl() { command curl $FAILING "$@"; }
FAILING=--fail-with-body
make() { command make --dry-run --directory="$ROOT" "$@" > /dev/null; }
"""


@dataclass(frozen=True)
class Block:
    """One block of a page."""

    page: str
    language: str
    code: str
    mark: str | None


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page in order."""
    found = _BLOCK.finditer(page.read_text(encoding="utf-8"))
    return [Block(page.name, each["language"], each["code"], each["mark"]) for each in found]


@dataclass(frozen=True)
class Site:
    """A server, its folder, and the environment for a page's commands."""

    folder: Path
    url: str
    environment: dict[str, str]

    def ask(self, method: str, path: str, body: Any = None, *, key: str = OPERATOR_KEY) -> Any:
        """Send a request and return its data."""
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        sent = None if body is None else json.dumps(body).encode()
        with urlopen(Request(f"{self.url}/api/v1{path}", sent, headers, method=method), timeout=60) as answer:
            return json.load(answer)["data"]

    def names(self) -> dict[str, str]:
        """Return the values of the pages' variables: a new tenant with a key to delete, a document with its job, an entity."""
        tenant = self.ask("POST", "/tenants", {"name": f"page-{time.monotonic_ns()}"})["id"]
        key = self.ask("POST", f"/tenants/{tenant}/keys", {"name": "page"})["id"]
        own = json.loads((self.folder / "data" / "credentials.json").read_text())["key"]
        text = f"# Slipway\n\nThe slipway of Scarrow was rebuilt in 1957 by Ada Kemp ({time.monotonic_ns()})."
        made = self.ask("POST", "/documents", {"text": text}, key=own)
        while self.ask("GET", f"/documents/{made['document_id']}", key=own)["state"] != "ready":
            time.sleep(0.1)
        entity = self.ask("GET", "/graph/entities?name=vassall&limit=1", key=own)[0]["id"]
        names = {"TENANT_ID": tenant, "KEY_ID": key, "KEY": own, "OPERATOR_KEY": OPERATOR_KEY, "ENTITY_ID": entity}
        return {**names, "DOCUMENT_ID": made["document_id"], "JOB_ID": made["job_id"]}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Run a server on a folder with a few documents."""
    folder = tmp_path_factory.mktemp("guide")
    (folder / "examples" / "corpus").mkdir(parents=True)
    for name in CORPUS:
        shutil.copy(ROOT / "examples" / "corpus" / name, folder / "examples" / "corpus")
    shutil.copy(ROOT / ".env.example", folder)
    (folder / "minutes.md").write_text("# Minutes\n\nThe council of Scarrow met in May 2019.\n")
    (folder / "letter.txt").write_text("Ada Kemp wrote to the harbour authority in June 2019.\n")
    (folder / "tickets.csv").write_text("id,subject,body,status,team\n1,Lamp,The lamp of the pier is broken.,open,works\n")
    (folder / ".venv" / "bin").mkdir(parents=True)
    (folder / "examples.csv").write_text("text,label\nWhere is my new card?,card_arrival\nI lost my card.,lost_card\n")
    (folder / "new.csv").write_text("text,category\nMy card was lost on the train.,lost_card\n")
    (folder / ".venv" / "bin" / "activate").write_text("")
    (folder / "bin").mkdir()
    (folder / "bin" / "agentic-rag").write_text(_COMMAND.format(python=sys.executable, fixtures=str(ROOT / "tests" / "fixtures")))
    (folder / "bin" / "agentic-rag").chmod(0o755)
    (folder / "bin" / "python").symlink_to(sys.executable)
    settings = {name.upper() for name in Settings.model_fields} | {"AGENTIC_RAG_CONFIG"}
    environment = {name: value for name, value in os.environ.items() if name not in settings}
    environment |= {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "ROOT": str(ROOT)}
    environment |= environment_of_templates()
    process = Program(["serve", "--port", "0", "--json"], cwd=folder, env=environment | {"OPERATOR_KEY": OPERATOR_KEY})
    try:
        while not (folder / "data" / "server.json").exists():
            assert process.poll() is None
            time.sleep(0.05)
        url = json.loads((folder / "data" / "server.json").read_text())["url"]
        environment |= {"API": f"{url}/api/v1", "ORIGIN": url}
        ingested = run(["ingest", "examples/corpus"], cwd=folder, env=environment, timeout=500)
        assert ingested.returncode == 0, ingested.stdout + ingested.stderr
        yield Site(folder, url, environment)
    finally:
        process.terminate()
        process.wait(60)


def runnable(page: Path) -> list[Block]:
    """Return the shell blocks of a page that run. Of the README, those after the first steps, which another test runs."""
    found = [block for block in blocks(page) if block.language == "bash" and not (block.mark or "").startswith("not run")]
    walk = page.read_text(encoding="utf-8").partition("## Command line")[0] if page.name == "README.md" else ""
    return [block for block in found if block.code not in walk]


def typed(site: Site, code: str, *, alone: bool) -> None:
    """Run a block. Every command must exit with 0."""
    names = {**site.names(), **({"DATA_DIR": "alone"} if alone else {})}
    code = code.replace("http://127.0.0.1:8000", site.url)
    done = subprocess.run(
        ["bash", "-c", _PRELUDE + code],
        cwd=site.folder,
        env={**site.environment, **names},
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, f"{code}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize("page", [page for page in PAGES if runnable(page)], ids=lambda page: page.stem)
def test_the_commands_of_a_page_run(site: Site, page: Path) -> None:
    found = runnable(page)
    together = "".join(
        f"FAILING=\n{block.code}FAILING=--fail-with-body\n" if block.mark == CONFLICTS else block.code
        for block in found
        if block.mark != ALONE
    )
    for code, alone in [(together, False), *((block.code, True) for block in found if block.mark == ALONE)]:
        if code:
            typed(site, code, alone=alone)


@pytest.mark.slow
@pytest.mark.parametrize("page", ["README.md", "docs/guide/first-steps.md", "docs/guide/python-client.md"])
def test_the_python_of_a_page_runs_as_it_stands(site: Site, page: str) -> None:
    code = "".join(block.code for block in blocks(ROOT / page) if block.language == "python" and block.mark is None)
    (site.folder / "example.py").write_text(code.replace("http://127.0.0.1:8000", site.url))
    shutil.rmtree(site.folder / "data-python", ignore_errors=True)
    environment = {**site.environment, **site.names()}
    done = subprocess.run(
        [sys.executable, "example.py"], cwd=site.folder, env=environment, capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "Accord" in done.stdout


def test_a_block_is_marked_only_for_a_reason_that_counts() -> None:
    marks = {block.mark for page in PAGES for block in blocks(page) if block.mark is not None}
    assert marks <= {ALONE, CONFLICTS} | {f"not run: needs {reason}" for reason in REASONS}


def test_commands_stand_in_blocks_that_say_they_are_shell() -> None:
    plain = [block for page in PAGES for block in blocks(page) if block.language == ""]
    assert [block.code for block in plain if re.search(r"^(agentic-rag|curl|make) ", block.code, re.MULTILINE)] == []


def test_a_command_that_fails_is_noticed(tmp_path: Path) -> None:
    for code in ("false", "curl -s file:///nowhere", "make no-such-target", "agentic-rag fly | cat"):
        done = subprocess.run(
            ["bash", "-c", _PRELUDE + code], env={**os.environ, "ROOT": str(ROOT)}, capture_output=True, check=False
        )
        assert done.returncode != 0, code
