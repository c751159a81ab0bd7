"""The README's first steps run unchanged in a shell, with a server started as described."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from http_server import read_address

from agentic_rag_backend.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
OPERATOR_KEY = "an-operators-key-for-the-first-steps"
MARK = "--- next block ---"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start the server on a free port and yield its address."""
    data = tmp_path_factory.mktemp("readme")
    command = [Path(sys.executable).with_name("agentic-rag"), "serve", "--data-dir", data, "--port", "0", "--json"]
    settings = {name.upper() for name in Settings.model_fields}
    environment = {name: value for name, value in os.environ.items() if name not in settings} | {"OPERATOR_KEY": OPERATOR_KEY}
    with subprocess.Popen(command, cwd=data, env=environment, stdout=subprocess.PIPE, text=True) as process:
        yield read_address(process)
        process.terminate()


def steps() -> list[str]:
    """Return the blocks of the first steps after the server's start."""
    section = (ROOT / "README.md").read_text(encoding="utf-8").partition("## First steps with curl")[2].partition("\n## ")[0]
    return re.findall(r"^```bash\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)[1:]


@pytest.mark.slow
def test_the_demo_prints_the_answer_that_the_readme_shows() -> None:
    """Except for its times, the demo prints the same in each run. Copy its first answer to the README when it has changed."""
    shown = (ROOT / "README.md").read_text(encoding="utf-8").partition("```text\n")[2].partition("```")[0]
    settings = {name.upper() for name in Settings.model_fields}
    environment = {name: value for name, value in os.environ.items() if name not in settings}
    command = [Path(sys.executable).with_name("agentic-rag"), "demo"]
    run = subprocess.run(command, cwd=ROOT / "examples", env=environment, capture_output=True, text=True, timeout=500)
    assert run.returncode == 0, run.stderr
    first = run.stdout.partition("Question 2:")[0]
    assert first.split() == shown.split(), f"the README shows another answer than the demo:\n{first}"


def replies(printed: str) -> list[Any]:
    """Return the JSON values that a block printed, without the event streams in between."""
    decoder, found, place = json.JSONDecoder(), [], 0
    while (place := printed.find("{", place)) >= 0:
        value, place = decoder.raw_decode(printed, place)
        found.append(value)
    return found


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_first_steps_do_what_the_readme_says(server: str) -> None:
    blocks = [block.replace("http://127.0.0.1:8000", server) for block in steps()]
    script = "set -euo pipefail\n" + f"\necho; echo '{MARK}'\n".join(blocks)
    run = subprocess.run(
        ["bash", "-c", script],
        cwd=ROOT,
        env=os.environ | {"OPERATOR_KEY": OPERATOR_KEY},
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert run.returncode == 0, run.stderr
    _, uploads, levels, seen = [replies(part) for part in run.stdout.split(MARK)]

    assert len(uploads[0]["data"]["documents"]) == 4
    assert all(document["job_id"] for document in uploads[0]["data"]["documents"])
    assert levels[0]["code"] == "feature_disabled"
    assert levels[1]["data"][0]["value"] is True
    both, refused = levels[-2]["data"], levels[-1]["data"]
    assert both["citations"]
    assert both["low_level_results"]
    assert both["high_level_results"]
    assert both["grounded"]
    assert not refused["grounded"]
    status, own, foreign = seen
    assert status["data"]["counts"]["documents_ready"] == 4
    assert own["data"]["key"] == "pier"
    assert (foreign["status"], foreign["code"]) == (404, "not_found")
