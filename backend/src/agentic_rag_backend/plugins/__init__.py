"""Optional parts of the product, each in a folder of its own.

No other package imports these folders. The table `PLUGINS` names what each part offers, and `load_plugin` imports it when a
setting or a command asks for it, so a deployment that does not use a part never loads its code or its libraries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from agentic_rag_backend.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Plugin:
    """What one part offers.

    Attributes:
        module: the module below this package.
        attribute: the function or class of the module.
        feature: the setting or command that asks for it, for the error message.
        extra: the extra of the distribution with the libraries of the part; empty if it has none.
    """

    module: str
    attribute: str
    feature: str
    extra: str = ""


PLUGINS: Mapping[str, Plugin] = {
    "fact_search": Plugin("graphiti.search", "open_fact_search", "GRAPHITI_SEARCH_ENABLED=true", "server"),
    "episodes": Plugin("graphiti.episodes", "open_episodes", "EXTRACTION=graphiti", "server"),
    "optimize_planner": Plugin("planner_optimizer.command", "optimize_planner", "optimize-planner", "dspy"),
    "planner_optimizers": Plugin("planner_optimizer.dspy_adapter.optimizers", "optimizer", "optimize-planner", "dspy"),
    "find_ocr": Plugin("tesseract.installation", "find_tesseract", "OCR"),
    "ocr": Plugin("tesseract.tesseract", "Tesseract", "OCR"),
    "clauses": Plugin("question_grammar.clauses", "clauses", "POST /evaluation/datasets"),
    "clause_questions": Plugin("question_grammar.forming", "questions_of", "POST /evaluation/datasets"),
    "question_grammar": Plugin("question_grammar.patterns", "PatternQuestions", "SYNTHETIC_QUESTIONS=patterns"),
}
"""The parts by name. A new part is a folder beside this file and a row here."""


def load_plugin(name: str) -> Any:
    """Import the part of a name of `PLUGINS`, and return what it offers.

    Raises:
        ConfigurationError: a library of its extra is missing.
    """
    plugin = PLUGINS[name]
    try:
        module = import_module(f"{__name__}.{plugin.module}")
    except ModuleNotFoundError as error:
        if not plugin.extra:
            raise
        raise missing_extra(plugin.feature, plugin.extra, error) from error
    return getattr(module, plugin.attribute)


def missing_extra(feature: str, extra: str, reason: object) -> ConfigurationError:
    """Return the error of a feature that needs an extra. The package is on no index yet, so the command names the checkout."""
    return ConfigurationError(
        f"{feature} requires the extra {extra!r}: {reason}. To install it, run in the checkout: pip install './backend[{extra}]'"
    )
