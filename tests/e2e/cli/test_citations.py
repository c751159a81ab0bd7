"""``ask`` with its options for citations and generators, on a running server whose model adds a false sentence."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from agentic_rag_testing.models.server import ModelServer

from .conftest import CommandLine, Served, make_notes, stop, wait_for_address

QUESTION = "Who founded the Kettle Bank?"
TRUE = "The Kettle Bank was founded by Agnes Thorley in 1987."
FALSE = "The Kettle Bank was founded by Delphine Aster in 1987."
ENDINGS = {"numeric": " [1]", "title": " (Kettle Bank)", "none": ""}


def reply(prompt: str) -> str:
    if "<answer>" in prompt and "<passage" not in prompt:
        return json.dumps({"questions": ["When was the Kettle Bank founded?"]})
    return f"{TRUE} [1] {FALSE} [1]"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with ModelServer(matchers=[(lambda _: True, reply)]) as model:
        environment = {
            "LLM": "openai",
            "EXTRACTION": "rules",
            "OPENAI_API_KEY": "any",
            "OPENAI_BASE_URL": model.base_url,
            "LLM_MODEL": "writer",
        }
        cli = CommandLine(tmp_path_factory.mktemp("citations"), environment)
        make_notes(cli.folder)
        process = cli.start("serve", "--port", "0", "--json")
        try:
            url = wait_for_address(cli, process)
            assert cli("ingest", "notes").code == 0
            yield Served(cli, process, url, "")
        finally:
            stop(process)


@pytest.mark.parametrize("policy", ["strict", "mark"])
@pytest.mark.parametrize("style", ENDINGS)
def test_styles_and_policies(served: Served, style: str, policy: str) -> None:
    options = ("--citation-style", style, "--citation-policy", policy)
    answer = served.cli("ask", QUESTION, *options, "--json").json
    marked = f" {FALSE} [unsupported]" if policy == "mark" else ""
    assert answer["answer"] == f"{TRUE}{ENDINGS[style]}{marked}"
    assert [(claim["supported"], claim["reason"]) for claim in answer["claims"]] == [(True, None), (False, "name")]
    assert [citation["quote"] for citation in answer["citations"]] == [TRUE]
    shown = " ".join(served.cli("ask", QUESTION, *options, "--stream").out.split())
    assert f"{TRUE}{ENDINGS[style]}{marked}" in shown
    assert "[1] Kettle Bank" in shown


@pytest.mark.parametrize(("generator", "marks"), [("standard", True), ("attributed", False), ("verified", False)])
def test_generators(served: Served, generator: str, marks: bool) -> None:
    answer = served.cli("ask", QUESTION, "--generator", generator, "--json").json
    assert (answer["generator"], answer["grounded"]) == (generator, True)
    assert (f"{FALSE} [unsupported]" in answer["answer"]) is marks
    assert (answer["verification"] is not None) is (generator == "verified")
