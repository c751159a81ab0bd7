"""Recorded extractions are found in a prompt by the words of their passage."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from agentic_rag_backend.evaluation.datasets import evaluation_data
from agentic_rag_backend.prompts import fence
from agentic_rag_testing.models.recordings import load_recordings

CORPUS = [
    {
        "id": "p0",
        "title": "Halden Institute",
        "text": "The Halden Institute was founded in 1994 by Mira Voss in the town of Sund [2]. "
        "It studies the tides of the northern fjords and has a library of nine thousand books.",
    },
    {
        "id": "p1",
        "title": "Tidal Array",
        "text": "The Tidal Array was switched on in 2011 and feeds forty megawatts into the grid of Sund.",
    },
]
TRIPLES = [
    {
        "id": "p0",
        "entities": ["Halden Institute", "Mira Voss", "1994", "Northern fjords"],
        "triples": [["Halden Institute", "founded by", "Mira Voss"], ["Halden Institute", "studies", "tides"]],
    },
    {"id": "p1", "entities": ["Tidal Array"], "triples": [["Tidal Array", "switched on in", "2011"], ["broken", "pair"]]},
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    own = tmp_path / "small"
    own.mkdir()
    for name, rows in (("corpus", CORPUS), ("llm_triples", TRIPLES)):
        (own / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return own


def prompt_of(*texts: str) -> str:
    return "Extract.\n" + "\n".join(fence("passage", text, attributes={"id": number}) for number, text in enumerate(texts, 1))


def test_a_passage_is_found_however_it_is_fenced(folder: Path) -> None:
    recordings = load_recordings(folder)
    for prompt in (CORPUS[0]["text"], prompt_of(CORPUS[0]["text"]), f"# Title\n\n{CORPUS[0]['text'].upper()}\nWell?"):
        assert [found.passage_id for found in recordings.find(prompt)] == ["p0"]
    both = recordings.find(prompt_of(CORPUS[1]["text"], CORPUS[0]["text"]))
    assert [found.passage_id for found in both] == ["p1", "p0"]
    assert both[0].triples == (("Tidal Array", "switched on in", "2011"),)
    assert recordings.find("Who founded the Halden Institute in Sund?") == []


def test_of_half_a_passage_only_what_it_says(folder: Path) -> None:
    start, _, end = CORPUS[0]["text"].partition(". ")
    recordings = load_recordings(folder)
    (first,) = recordings.find(prompt_of(start))
    (second,) = recordings.find(prompt_of(end))
    assert first.entities == ("Halden Institute", "Mira Voss", "1994")
    assert first.triples == (("Halden Institute", "founded by", "Mira Voss"),)
    assert (second.entities, second.triples) == (("Northern fjords",), ())


def test_every_passage_of_the_evaluation_set_is_found_and_none_besides() -> None:
    data = evaluation_data(Path(__file__).resolve().parents[4])
    if data is None:
        pytest.skip("no evaluation data")
    recordings = load_recordings(data / "musique")
    rows = [json.loads(line) for line in (data / "musique" / "corpus.jsonl").read_text().splitlines()]
    plain = {row["id"]: " ".join(re.findall(r"\w+", row["text"])).casefold() for row in rows}
    for row in rows[::19]:
        found = [each.passage_id for each in recordings.find(prompt_of(row["text"]))]
        assert row["id"] in found
        assert all(plain[id] in plain[row["id"]] for id in found), "one passage may hold another"
