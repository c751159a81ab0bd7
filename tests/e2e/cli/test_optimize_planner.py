"""``optimize-planner`` over HTTP, with a scripted model: it writes a prompt that the planner loads."""

from __future__ import annotations

import importlib.util
import json
import logging
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agentic_rag_backend.cli.app import run
from agentic_rag_testing.models.server import ModelServer

NOTES = {
    "harbour.md": "# Harbour of Lowmere\n\nDelphine Aster leads the Lowmere Harbour Authority. It dredged the basin.\n",
    "bank.md": "# Kettle Bank\n\nThe Kettle Bank was founded by Agnes Thorley in 1987. Agnes Thorley grew up in Scarrow.\n",
    "mill.md": "# Mill\n\nThe mill grinds wheat. The miller is Ivo Brandt.\n",
}
ROWS = [
    {"question": "Who leads the Lowmere Harbour Authority today?", "documents": ["harbour.md"]},
    {"question": "When did the authority dredge the basin?", "documents": ["Harbour of Lowmere"], "tenant": "default"},
    {"question": "Who founded the Kettle Bank in 1987?", "passages": ["founded by Agnes Thorley in 1987."]},
    {"question": "Where did Agnes Thorley grow up?", "documents": ["bank.md"], "group": "thorley"},
]
GOOD = "Repeat every name of the question"
PROPOSED = (
    f"Plan the searches. {{number}}\n# User\n{{{{question}}}} {{{{secret}}}}\n{GOOD}. For example: "
    "Who leads the Lowmere Harbour Authority today?"
)
"""A proposal with a section of its own, placeholders, and a question of the training file."""


@dataclass
class Model:
    """Plans badly unless the prompt has the good sentence. The third proposal, and each after it, has it.

    A bad plan excludes what it is to find.
    """

    plans: list[str] = field(default_factory=list)
    proposals: int = 0

    def plan(self, prompt: str) -> str:
        self.plans.append(prompt)
        excluded = [] if GOOD in prompt else ["Harbour", "Kettle Bank"]
        constraints = [{"kind": "phrase", "name": "", "value": each} for each in excluded]
        rest = {"primary_intent": "", "hyde_passage": "", "search_queries": [], "filter_constraints": []}
        return json.dumps({**rest, "negative_constraints": constraints})

    def propose(self, prompt: str) -> str:
        """Answer a signature of DSPy, in its form for chats or as JSON."""
        self.proposals += 1
        text = PROPOSED.replace("{number}", str(self.proposals)) if self.proposals > 2 else f"Plan, {self.proposals}."
        if "new_instruction" in prompt:
            return json.dumps({"new_instruction": text})
        (name, *_) = re.findall(r"starting with the field `\[\[ ## (\w+) ## \]\]`", prompt)
        return f"[[ ## {name} ## ]]\n{text}\n\n[[ ## completed ## ]]"


@pytest.fixture(scope="module")
def model() -> Model:
    return Model()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, model: Model) -> Iterator[Path]:
    """A folder with documents in ``data``, a training file, and the environment of a model."""
    folder = tmp_path_factory.mktemp("planner")
    (folder / "notes").mkdir()
    for name, text in NOTES.items():
        (folder / "notes" / name).write_text(text)
    (folder / "training.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    matchers: list[Any] = [(lambda text: "## ]]" in text, model.propose), (lambda text: True, model.plan)]
    with ModelServer(matchers=matchers) as server, pytest.MonkeyPatch.context() as patch:
        environment = {"LLM": "openai", "LLM_MODEL": "cite", "LLM_FAST_MODEL": "cite+fast", "EXTRACTION": "rules"}
        endpoint = {"OPENAI_API_KEY": "any", "OPENAI_BASE_URL": server.base_url}
        for name, value in {**environment, **endpoint, "DATA_DIR": str(folder / "data"), "HOME": str(folder)}.items():
            patch.setenv(name, value)
        patch.chdir(folder)
        # A command sets the level of the process's log. After each test, that is undone, but not after the fixture of a module.
        level = logging.getLogger().level
        assert run(["ingest", "notes"]) == 0
        logging.getLogger().setLevel(level)
        yield folder


@pytest.fixture(autouse=True)
def _new_run(folder: Path, model: Model) -> None:
    model.plans.clear()
    model.proposals = 0


def result(capsys: pytest.CaptureFixture[str]) -> Any:
    """Stdout, which must be one JSON value."""
    return json.loads(capsys.readouterr().out)


@pytest.mark.slow
def test_a_better_prompt_is_written_and_loaded(
    folder: Path, model: Model, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    capsys.readouterr()
    assert run(["optimize-planner", "training.jsonl", "--max-calls", "60", "--json"]) == 0
    captured = capsys.readouterr()
    done = json.loads(captured.out)
    assert "cite+fast plans for 2 questions for training and 2 for validation, and cite proposes" in captured.err
    assert (done["recall_before"], done["recall_after"], done["questions_better"]) == (0, 1, 2)
    assert done["model_calls"] == len(model.plans) + model.proposals <= 60
    written = folder / done["written"]
    text = written.read_text()
    assert re.search(r"^version: \d{4}-\d\d-\d\d-mipro-[0-9a-f]{8}$", text, re.MULTILINE)
    assert "recall_before: 0.0000\nrecall_after: 1.0000\n---\n# System\nPlan the searches." in text
    # Neither the section, the placeholders nor the question of the proposal are in the file.
    assert (text.count("\n# User\n"), text.count("{{"), "Who leads" in text) == (1, 1, False)

    monkeypatch.setenv("AGENTIC_PLANNER_PROMPT_FILE", str(written))
    model.plans.clear()
    assert run(["search", "Who leads the harbour?", "--strategy", "agentic", "--json"]) == 0
    trace = result(capsys)["trace"]["details"]["agentic"]
    assert trace["planner_prompt"] == f"agentic_plan@{written.stem.removeprefix('agentic_plan-')}"
    assert GOOD in model.plans[0]
    assert "<question>\nWho leads the harbour?\n</question>" in model.plans[0]
    # The present prompt now finds everything: it costs the two questions for validation.
    model.plans.clear()
    assert run(["optimize-planner", "training.jsonl", "--max-calls", "60", "--json"]) == 0
    again = result(capsys)
    assert (again["written"], again["model_calls"]) == (None, 2)
    assert "the present prompt finds everything" in again["reason"]
    # Nothing was cached on disk, and the packages that look up prices on the internet were not loaded.
    assert not list(folder.glob(".dspy*"))
    assert "litellm" not in sys.modules


@pytest.mark.slow
def test_a_spent_budget_ends_the_run(folder: Path, model: Model, capsys: pytest.CaptureFixture[str]) -> None:
    """No proposal is good: GEPA would go on. Without an improvement nothing is written, except by force."""
    model.proposals = -1_000
    capsys.readouterr()
    calls = ["optimize-planner", "training.jsonl", "--optimizer", "gepa", "--max-calls", "22", "--json"]
    before = set(folder.iterdir())
    assert run(calls) == 0
    done = result(capsys)
    assert (done["written"], done["stopped"], done["model_calls"]) == (None, "the budget of calls was spent", 22)
    assert done["reason"].startswith("nothing was written: ")
    assert set(folder.iterdir()) == before


def test_bad_input_is_refused_before_the_model_is_asked(
    folder: Path, model: Model, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*arguments: str) -> str:
        capsys.readouterr()
        assert run(["optimize-planner", *arguments]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        return captured.err

    bad = folder / "bad.jsonl"
    bad.write_text(json.dumps(ROWS[0]) + '\n{"question": "Who?"}\n')
    assert "bad.jsonl is malformed: row 2: it names neither 'documents' nor 'passages'" in refused("bad.jsonl")
    bad.write_text(json.dumps(ROWS[0]) + '\n{"question": "Who?", "documents": ["none.md"]}\n')
    assert "row 2: no document of tenant 'default' has the id, key or title 'none.md'" in refused("bad.jsonl")
    bad.write_text(json.dumps(ROWS[0]) + '\n{"question": "Who?", "documents": ["a"], "tenant": "beta"}\n')
    assert "row 2: tenant 'beta' does not exist" in refused("bad.jsonl")
    assert "--max-calls is 9; 2 questions for validation need at least 19" in refused("training.jsonl", "--max-calls", "9")
    assert "--output bad.jsonl exists" in refused("training.jsonl", "--output", "bad.jsonl")
    assert run(["optimize-planner", "training.jsonl", "--dry-run", "--json"]) == 0
    assert result(capsys)["planned"]["validation"] == 2
    with monkeypatch.context() as patch:
        patch.setattr(importlib.util, "find_spec", lambda name: None)
        assert "pip install './backend[dspy]'" in refused("training.jsonl")
    monkeypatch.setenv("LLM", "extractive")
    assert "needs a language model; set LLM=openai" in refused("training.jsonl")
    assert (model.plans, model.proposals) == ([], 0)
