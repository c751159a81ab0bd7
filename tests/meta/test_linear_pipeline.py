"""Everything that runs after parsing takes linear time, for names that are arranged to cost most.

No function is listed here: the profile of the whole pipeline has every function that a document reaches (`profiled_pipeline`),
so a new one is measured without a change of this file. `NOT_MEASURED` names the modules that the pipeline does not reach.
"""

from __future__ import annotations

import asyncio
import pkgutil
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

import pytest
from profiled_pipeline import PACKAGE, Corpus, Cost, cost_of, run_in_this_thread
from sampling import budget
from shapes_of_names import SHAPES

GROWTH = 4
SIZE = budget(gate=100, deep=400)
"""Names of the smallest corpus. The next ones have `GROWTH` times as many."""
FLOOR_S = budget(gate=0.03, deep=0.06)
"""CPU time of a function below which its growth has no meaning."""
TOLERANCE = 2.0
"""Growth of time over growth of size that is noise. Four times the names give 1 for linear and 4 for quadratic time."""

MEASURED = (
    "themes/communities/detection",
    "themes/communities/summaries",
    "language",
    "ingestion",
    "ingestion/accept",
    "ingestion/commit",
    "ingestion/prepare",
    "ingestion/vectors",
    "knowledge/contradictions",
    "knowledge/extraction",
    "knowledge/identity",
    "knowledge/paths",
    "knowledge/resolution",
    "knowledge/tenant_graph",
    "knowledge/visible",
    "retrieval/rewriting",
)
"""Packages and modules that run after parsing. Of `ingestion`, only the modules directly in it do."""
_IMPORT = "computes at import only"
_MODEL = "reads replies of a language model, which are bounded"
_REQUEST = "runs for requests about one chunk, page or document"
_UPKEEP = "copies values between stores"
NOT_MEASURED: Mapping[str, str] = {
    "language/prompt_marks.py": "reads prompts, which are bounded",
    "language/vocabulary/word_classes.py": _IMPORT,
    "ingestion/commit/attaching.py": "reads messages, whose parts are bounded by the parser",
    "ingestion/prepare/estimating.py": _REQUEST,
    "ingestion/prepare/extracting.py": _REQUEST,
    "ingestion/vectors/mirroring.py": _UPKEEP,
    "ingestion/accept/originals.py": _REQUEST,
    "ingestion/document_pages.py": _REQUEST,
    "ingestion/prepare/previewing.py": _REQUEST,
    "ingestion/vectors/reindexer.py": _UPKEEP,
    "knowledge/extraction/base.py": "a port",
    "knowledge/extraction/model/by_model.py": _MODEL,
    "knowledge/extraction/model/grounding.py": _MODEL,
    "knowledge/extraction/model/inquiries.py": _MODEL,
    "knowledge/extraction/lexicon.py": _IMPORT,
    "knowledge/extraction/model/replies.py": _MODEL,
    "knowledge/extraction/model/temporal.py": _MODEL,
    "themes/communities/detection/top_level.py": "runs with more than 15 clusters, which no corpus here has",
}


def corpus_of(shapes: Sequence[str], size: int) -> Corpus:
    """Return the documents of several shapes, with the questions of the first one."""
    corpora = [SHAPES[shape](size) for shape in shapes]
    documents = {f"{number}-{name}": text for number, corpus in enumerate(corpora) for name, text in corpus.documents.items()}
    return Corpus(documents, corpora[0].questions)


ALL = tuple(SHAPES)
SAMPLE = ("a chain of aliases", "a list of names", "the same names twice")
EACH_ALONE = tuple((shape,) for shape in SHAPES)
TRIED: Sequence[tuple[str, ...]] = (SAMPLE, *(*EACH_ALONE, ALL)[: budget(gate=0, deep=len(SHAPES) + 1)])


def measure(folder: Path, shapes: Sequence[str], size: int) -> Cost:
    home = folder / str(size)
    home.mkdir()
    return asyncio.run(cost_of(home, corpus_of(shapes, size)))


def superlinear(smaller: Cost, larger: Cost) -> dict[str, str]:
    """Return the functions whose time grew more than the size."""
    found = {}
    for function, seconds in larger.seconds.items():
        before = smaller.seconds.get(function, 0.0)
        if seconds > FLOOR_S and seconds > TOLERANCE * GROWTH * max(before, FLOOR_S / 16):
            found[function] = f"{before:.3f} s, then {seconds:.3f} s"
    return found


@pytest.mark.sampled
@pytest.mark.parametrize("shapes", TRIED, ids=lambda shapes: shapes[0] if len(shapes) == 1 else f"{len(shapes)} shapes")
def test_every_function_takes_linear_time(shapes: Sequence[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_in_this_thread(monkeypatch)
    smaller, larger = (measure(tmp_path, shapes, size) for size in (SIZE, GROWTH * SIZE))
    if suspected := superlinear(smaller, larger):
        # A function that begins to work at the second size, or reaches its bound there, grows once. Quadratic time grows again.
        again = superlinear(larger, measure(tmp_path, shapes, GROWTH**2 * SIZE))
        suspected = {function: f"{times}; {again[function]}" for function, times in suspected.items() if function in again}
    assert suspected == {}


def test_every_module_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_in_this_thread(monkeypatch)
    reached = measure(tmp_path, ALL, 12).modules
    assert {module for package in MEASURED for module in modules_of(package)} - reached == set(NOT_MEASURED)


def modules_of(package: str) -> set[str]:
    """Return the modules of a package that define functions, or the module itself, as paths below the whole package."""
    imported = import_module(f"agentic_rag_backend.{package.replace('/', '.')}")
    walk = pkgutil.iter_modules if package == "ingestion" else pkgutil.walk_packages
    inside = walk(getattr(imported, "__path__", ()), f"{imported.__name__}.")
    modules = [info.name for info in inside if not info.ispkg] or [imported.__name__]
    files = [str(import_module(module).__file__) for module in modules]
    return {file.removeprefix(PACKAGE) for file in files if "def " in Path(file).read_text(encoding="utf-8")}
