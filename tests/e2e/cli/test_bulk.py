"""Many documents: rows of tables, folders of small files, reports of failures and of duplicate documents."""

from __future__ import annotations

import json
import re
import resource
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from .conftest import START_S, stop, wait_for_address

BAD = {
    20: "{",
    60: '["a list"]',
    100: '{"id": "r100"}',
    140: '{"text": "no key"}',
    180: '{"id": "r180", "text": "nested", "place": {"x": 1}}',
}
OPTIONS = ("--text-column", "text", "--key-column", "id", "--title-column", "name", "--metadata-columns", "place,year")
OPEN_FILES = 64
FILES = 150


def _line(number: int) -> str:
    if number in BAD:
        return BAD[number]
    text = f"Ledger entry {number}: the Lowmere Harbour Authority paid {number * 37} crowns to dock crew {number} at Scarrow."
    row = {"id": f"r{number}", "text": text, "name": f"Entry {number}", "place": "Scarrow", "year": 1900 + number}
    return json.dumps({**row, "ignored": {"nested": True}})


@pytest.fixture(scope="module")
def ledger(served: Any) -> Path:
    path: Path = served.cli.folder / "ledger.jsonl"
    path.write_text("\n".join(map(_line, range(1, 201))) + "\n")
    return path


@pytest.mark.slow
def test_rows_are_documents_and_each_bad_row_is_reported(served: Any, ledger: Path) -> None:
    done = served.cli("ingest", ledger.name, *OPTIONS, "--json")
    assert done.code == 1, done.err
    summary = done.json["summary"]
    assert (summary["documents"], summary["ready"], summary["refused"]) == (200, 195, 5)
    failures = {failure["row"]: failure["error"] for failure in done.json["failures"]}
    assert set(failures) == set(BAD)
    assert {error["code"] for error in failures.values()} == {"bad_row"}
    assert all(error["message"].startswith(f"row {row}: ") for row, error in failures.items())
    found = served.cli("search", "What did the authority pay to dock crew 17?", "--filter", '{"year": 1917}', "--json").json
    assert [each["title"] for each in found["results"]] == ["Entry 17"]

    again = served.cli("ingest", ledger.name, *OPTIONS, "--json")
    assert again.code == 1
    assert {name: again.json["summary"][name] for name in ("unchanged", "refused")} == {"unchanged": 195, "refused": 5}
    assert "ready" not in again.json["summary"]


@pytest.mark.slow
def test_a_folder_of_small_files_needs_few_open_files(served: Any) -> None:
    folder = served.cli.folder / "small"
    for number in range(FILES):
        path = folder / f"{number % 10}" / f"{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"Note {number}: the lamp of buoy {number} in the Scarrow narrows was lit.\n")
    program = "from agentic_rag_backend.cli.app import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "ingest", "small", "--json-lines"],
        cwd=served.cli.folder,
        env=served.cli._environment(),
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, OPEN_FILES)),
    )
    assert done.returncode == 0, done.stderr
    *items, ending = map(json.loads, done.stdout.splitlines())
    assert {item["key"] for item in items} == {f"{number % 10}/{number}.txt" for number in range(FILES)}
    assert {item["state"] for item in items} == {"ready"}
    assert ending["summary"]["documents"] == ending["summary"]["ready"] == FILES


def test_progress_is_lines_on_stderr_without_a_terminal(served: Any) -> None:
    folder = served.cli.folder / "piped"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.txt").write_text(f"The lamp of buoy {number} in the Scarrow narrows was lit in 195{number}.\n")
    often = served.cli.folder / "often.py"
    often.write_text("from agentic_rag_backend.cli import app, progress\nprogress.LINE_INTERVAL_S = 0.0\napp.main()\n")
    done = served.cli(often.name, "ingest", "piped", "--json")

    assert done.code == 0, done.err
    assert done.json["summary"]["ready"] == 3
    lines = done.err.splitlines()
    shown = [found for line in lines if (found := re.fullmatch(r"ingest: (\d) documents? of 3 files, \w+, (\d+) %", line))]
    counts, shares = [int(found[1]) for found in shown], [int(found[2]) for found in shown]
    assert (counts, shares) == (sorted(counts), sorted(shares))
    assert (counts[-1], shares[-1]) == (3, 100)
    rebuilding = [line for line in lines if re.fullmatch(r"communities: \w+(, \d+ of \d+)?", line)]
    assert rebuilding
    assert len(shown) + len(rebuilding) == len(lines)


def test_duplicates_are_reported_and_ingested(served: Any) -> None:
    folder = served.cli.folder / "alike"
    folder.mkdir()
    text = " ".join(f"On day {day} the dredger Osprey moved {day * 13} tonnes of silt from berth {day % 7}." for day in range(60))
    (folder / "a.txt").write_text(text)
    (folder / "b.txt").write_text(text)
    (folder / "c.txt").write_text(text.replace("day 30 ", "day thirty "))
    (folder / "d.txt").write_text("The Kettle Bank was founded by Agnes Thorley in 1987.")
    done = served.cli("ingest", "alike", "--json")
    assert done.code == 0, done.out
    assert done.json["summary"] == {"documents": 4, "skipped": 0, "ready": 4, "duplicates": 2}
    exact, near = done.json["duplicates"]
    assert exact == {"key": "b.txt", "of": "a.txt", "similarity": 1.0, "exact": True}
    assert (near["key"], near["of"], near["exact"]) == ("c.txt", "a.txt", False)
    assert 0.9 <= near["similarity"] < 1
    shown = served.cli("ingest", "alike").out
    assert "2 near duplicates" in shown
    without = served.cli("ingest", "alike", "--no-report-duplicates", "--json").json
    assert (without["duplicates"], without["summary"]) == ([], {"documents": 4, "skipped": 0, "unchanged": 4})


def test_a_folder_of_mixed_formats(served: Any) -> None:
    """Texts that parsers made are compared, tables are documents, and skipped files are listed with the reason."""
    folder = served.cli.folder / "mixed"
    folder.mkdir()
    text = " ".join(f"On day {day} the tug Merganser pulled {day * 7} barges to berth {day % 5}." for day in range(60))
    (folder / "a.txt").write_text(text)
    (folder / "b.html").write_text(f"<html><body><p>{text}</p></body></html>")
    (folder / "c.csv").write_text("name,phone\nPetra Lund,555-1\n")
    (folder / "d.gif").write_bytes(b"GIF8")
    done = served.cli("ingest", "mixed", "--json")
    assert done.code == 0, done.out
    assert done.json["summary"] == {"documents": 3, "skipped": 1, "ready": 3, "duplicates": 1}
    assert done.json["skipped"] == [{"path": "d.gif", "reason": ".gif is not a supported type"}]
    (pair,) = done.json["duplicates"]
    assert (pair["key"], pair["of"], pair["similarity"]) == ("b.html", "a.txt", 1.0)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("t.csv", "--text-column", "text"), "there is no column 'text'; the columns are 'id', 'body'"),
        (("t.csv", "--key-column", "id"), "--key-column is for tables, which require --text-column"),
        (("t.csv", "--text-column", "body", "--key", "k"), "use --key-column for the rows of a table"),
        (("t.csv", "--text-column", "body", "--delimiter", "::"), "--delimiter must be one character"),
    ],
)
def test_wrong_use_ends_before_any_store_is_opened(cli: Any, arguments: tuple[str, ...], told: str) -> None:
    (cli.folder / "t.csv").write_text("id,body\n1,text\n")
    done = cli("ingest", *arguments)
    assert (done.code, done.out) == (2, "")
    assert told in done.err
    assert done.err.count("\n") == 1
    assert not cli.data.exists()


def test_csv_from_the_command_line(served: Any) -> None:
    path = served.cli.folder / "t.csv"
    path.write_bytes('\ufeffid;body;city\r\n1;"Åse Holm kept\r\nthe light; alone";Oslo\r\n2;short\r\n'.encode())
    done = served.cli("ingest", "t.csv", "--text-column", "body", "--metadata-columns", "city", "--json")
    (taken, bad) = done.json["documents"]
    assert (taken["key"], taken["row"], taken["state"]) == ("t.csv#1", 1, "ready")
    assert (bad["row"], bad["error"]["message"]) == (2, "row 2: the row has 2 fields; the header has 3")
    document = served.cli("documents", "show", taken["document_id"], "--json").json
    assert document["metadata"] == {"city": "Oslo"}


@pytest.mark.slow
def test_ingestion_of_a_folder_continues_after_the_server_restarts(cli: Any) -> None:
    folder = cli.folder / "many"
    folder.mkdir()
    for number in range(FILES):
        (folder / f"{number}.md").write_text(f"# Entry {number}\n\nDock crew {number} at Scarrow got {number * 37} crowns.\n")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    server = cli.start("serve", "--port", port)
    url = wait_for_address(cli, server)
    key = json.loads((cli.data / "credentials.json").read_text())["key"]
    taking = cli.start("ingest", "many", "--url", url, "--api-key", key, "--json")
    try:
        until(lambda: ready(cli) > FILES // 10)
        server.kill()
        server.communicate()
        assert 0 < ready(cli) < FILES
        server = cli.start("serve", "--port", port)
        told, _ = taking.communicate(timeout=400)
        assert taking.returncode == 0, told
        counts = json.loads(told)["summary"]
        # The killed process submitted it without reporting it, so it already exists.
        assert counts["documents"] == counts["ready"] + counts.get("unchanged", 0) == FILES
        assert ready(cli) == FILES
    finally:
        taking.kill()
        stop(server)


def ready(cli: Any) -> int:
    """Return the number of visible documents."""
    with closing(sqlite3.connect(f"file:{cli.data / 'catalogue.db'}?mode=ro", uri=True)) as catalogue:
        return int(catalogue.execute("SELECT count(*) FROM documents WHERE state = 'ready'").fetchone()[0])


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + START_S
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)
