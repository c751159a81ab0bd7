"""The chunking strategies and their permitted sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from agentic_rag_backend.documents.chunking.base import Chunker
from agentic_rag_backend.documents.chunking.strategies.ast import AstChunker
from agentic_rag_backend.documents.chunking.strategies.fixed import FixedChunker
from agentic_rag_backend.documents.chunking.strategies.parent_chunks import ParentChildChunker
from agentic_rag_backend.documents.chunking.strategies.recursive import RecursiveChunker
from agentic_rag_backend.documents.chunking.strategies.structure import StructureChunker
from agentic_rag_backend.domain.document import ChunkingOptions
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.models.embedding.tokenizer import WordPieceTokenizer

PARENT_CHILD = "parent_child"
STRATEGIES: Mapping[str, Callable[[WordPieceTokenizer], Chunker]] = {
    "recursive": RecursiveChunker,
    "fixed": FixedChunker,
    "structure": StructureChunker,
    "ast": AstChunker,
    PARENT_CHILD: ParentChildChunker,
}
SEMANTIC = "semantic"
AGENTIC = "agentic"
PROPOSITION = "proposition"
KNOWN: tuple[str, ...] = (*STRATEGIES, SEMANTIC, AGENTIC, PROPOSITION)
"""All strategies. Those that are not in `STRATEGIES` need a model; see `ingestion.prepare.chunk_reading`."""
WITH_PARENTS = (PARENT_CHILD, PROPOSITION)
PERCENTILES = (50, 99)
SIZES: Mapping[str, tuple[int, int]] = {"tokens": (16, 2048), "characters": (64, 16384)}
"""Smallest and largest ``chunk_size`` by unit. Beyond 254 word pieces a chunk is embedded in windows."""

DEFAULTS: Mapping[str, tuple[int, int]] = {"tokens": (220, 32), "characters": (1000, 100)}
"""Default ``chunk_size`` and ``overlap`` by unit."""
DEFAULTS_OF: Mapping[str, Mapping[str, tuple[int, int]]] = {
    SEMANTIC: {"tokens": (512, 50), "characters": (2000, 200)},
    "ast": {"tokens": (500, 0), "characters": (2000, 0)},
    AGENTIC: {"tokens": (500, 0), "characters": (2000, 0)},
    PARENT_CHILD: {"tokens": (100, 0), "characters": (400, 0)},
    PROPOSITION: {"tokens": (120, 0), "characters": (500, 0)},
}
"""Defaults of strategies that differ from `DEFAULTS`."""


PARENT_SIZES: Mapping[str, int] = {"tokens": 500, "characters": 2000}
"""Default ``parent_size`` by unit. Twice the ``chunk_size``, if that is more."""


def options_of(strategy: str, chunk_size: int | None, overlap: int | None, unit: str) -> ChunkingOptions:
    """Return options with the defaults of the strategy and the unit for those that are None.

    A smaller ``chunk_size`` reduces the default overlap in the same proportion.
    """
    usual_size, usual_overlap = DEFAULTS_OF.get(strategy, DEFAULTS)[unit]
    size = usual_size if chunk_size is None else chunk_size
    share = usual_overlap * min(size, usual_size) // usual_size
    options = ChunkingOptions(strategy=strategy, chunk_size=size, overlap=share if overlap is None else overlap, unit=unit)
    if strategy not in WITH_PARENTS:
        return options
    return replace(options, parent_size=max(PARENT_SIZES[unit], min(2 * size, SIZES[unit][1])))


def chunker_of(strategy: str, tokenizer: WordPieceTokenizer) -> Chunker:
    """Return the chunker of that name.

    Raises:
        InvalidRequest: the name is unknown; the message lists the known names.
    """
    if strategy not in STRATEGIES:
        raise InvalidRequest(f"chunking strategy {strategy!r} is not known; known are {', '.join(STRATEGIES)}")
    return STRATEGIES[strategy](tokenizer)


def check_options(options: ChunkingOptions) -> None:
    """Check strategy, unit and sizes.

    Raises:
        InvalidRequest: one is outside its limits; the message names limit and value.
    """
    if options.strategy not in KNOWN:
        raise InvalidRequest(f"chunking strategy {options.strategy!r} is not known; known are {', '.join(KNOWN)}")
    if options.unit not in SIZES:
        raise InvalidRequest(f"chunking unit {options.unit!r} is not known; known are {', '.join(SIZES)}")
    least, largest = SIZES[options.unit]
    if not least <= options.chunk_size <= largest:
        raise InvalidRequest(f"chunk_size must be {least} to {largest} {options.unit}; it is {options.chunk_size}")
    if not 0 <= options.overlap <= options.chunk_size // 2:
        raise InvalidRequest(f"overlap must be 0 to {options.chunk_size // 2} (half of chunk_size); it is {options.overlap}")
    if options.strategy in WITH_PARENTS and not options.chunk_size < options.parent_size <= largest:
        raise InvalidRequest(
            f"parent_size must be above chunk_size ({options.chunk_size}) and at most {largest} {options.unit}; "
            f"it is {options.parent_size}"
        )
    low, high = PERCENTILES
    if not low <= options.percentile <= high:
        raise InvalidRequest(f"percentile must be {low} to {high}; it is {options.percentile}")
