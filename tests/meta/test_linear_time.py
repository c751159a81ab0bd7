"""Code that reads a tenant's text takes linear time for any text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pytest
from regular_expressions import superlinear
from sample_passages import chunk_of
from sampling import budget

from agentic_rag_backend.answering.claims.reading import Claim, read_claims
from agentic_rag_backend.answering.claims.verifiers.lexical import LexicalVerifier
from agentic_rag_backend.answering.evidence.context import Passage
from agentic_rag_backend.documents.chunking.passages import chunks_of
from agentic_rag_backend.documents.parsing.base import ParsedDocument
from agentic_rag_backend.documents.parsing.markdown import MarkdownParser, headings_of
from agentic_rag_backend.domain.document import Chunk, ChunkingOptions
from agentic_rag_backend.domain.graph import normalise_name
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import UnreadableDocument
from agentic_rag_backend.knowledge.extraction.rules import RuleExtractor
from agentic_rag_backend.language.entries.reading import read_entries
from agentic_rag_backend.language.sentences import is_statement, split_sentences
from agentic_rag_backend.language.words import content_forms, names_and_numbers
from agentic_rag_backend.models.embedding.tokenizer import WordPieceTokenizer
from agentic_rag_backend.models.llm.replies.reply_reading import RawReply, read_object, read_text
from agentic_rag_backend.plugins.question_grammar.patterns import pattern_questions
from agentic_rag_backend.retrieval.options.leg_weights import preset_for

TENANT = TenantId("t_" + "1" * 32)
UNITS = (
    "# a\n", "# a", "## A b\n\ntext\n\n", "a\n===\n", "a\n-\n", "`", "```\n", "~~~a`\n", "[", "[a](", "![a](b)", "](", "*",
    "_a_ ", "> ", "- ", "1. ", "| a ", "|\n", " ", "\t", "\n", "\n \n", ".", ". ", "a. ", "A.", "A. ", "Dr. ", "U.S. ", "...",
    "!?", "。", "[1]", "[1] ", "[1,", ".)", ".\"", "'", "'s ", "’s", "A", "Ab ", "Ab Cd of ", "Ab, ", "Ab (", "Ab (AB) ",
    "AB ", "the ", "Ab the ", "Anna Lee and ", "in 1999 ", "1,", "1.", "1-", "May 5, 1999, ", "-", "a-", "A-b", "_", "a_b.",
    "aB", "http://a", "www.", "\"A\" ", "“", "Ab & ", "AbCd ", "é", "\u0301", "雨", "雨。", "what is ", "how many ", "<", "&lt;",
    "---\n", "a: b\n", "Ab is Cd. ", "a,b\n", "a\tb\n", "|-|\n", "a|b\n-|-\n", "<td>", "<table><tr><th>a", "Ab:\n- a\n", "\"a,",
    "千万", "万亿千", "{'", "{\"a\":", "[1,", "</think> ", "\n</think>\n", "<think>", "{\"a", "\\",
)  # fmt: skip
BEGINNINGS = ("", "# a", "---\na: b\n", "Ab (")

TOKENIZER = WordPieceTokenizer()
EXTRACTOR = RuleExtractor()


ENDINGS = ("b", "")[: budget(gate=1, deep=2)]
"""An ending that fits nothing is the worse one: a search that backtracks fails only there."""


def texts(size: int) -> Iterator[str]:
    for unit in UNITS:
        for ending in ENDINGS:
            yield (unit * size)[:size] + ending
    for beginning in BEGINNINGS[1:]:
        for unit in ("[", " ", ".", "#", "(", "\n"):
            yield beginning + unit * size + "b"


def _chunks(text: str) -> list[Chunk]:
    parsed = ParsedDocument(text=text, headings=tuple(headings_of(text)))
    return chunks_of(TENANT, "document", 1, parsed, ChunkingOptions(), tokenizer=TOKENIZER)


def _parse(text: str) -> None:
    try:
        MarkdownParser().parse(text)
    except UnreadableDocument:
        return


def _extract(text: str) -> None:
    EXTRACTOR.extract_document("Ab Cd", _whole(text))


def _whole(text: str) -> list[Chunk]:
    """Return the text in chunks of the maximum allowed length."""
    starts = range(0, len(text), 2048)
    return [chunk_of(text[at : at + 2048], str(at), ordinal=at, start=at, headings=("Ab", "Ef (Gh)")) for at in starts]


def _ask(text: str) -> object:
    return [pattern_questions("Ab Cd", chunk, 3) for chunk in _whole(text)]


def _read_object(text: str) -> object:
    try:
        return read_object(text, {"type": "object"}, partial=True)
    except ValueError:
        return None


def _check(text: str) -> object:
    passage = Passage(marker=1, chunk_id="c", document_id="d", title=text[:200], text=text, start_char=0, score=1.0)
    return LexicalVerifier((passage,)).check(Claim(text[: len(text) // 2], (1,)))


READERS: Mapping[str, Callable[[str], object]] = {
    "parsing": _parse,
    "chunking": _chunks,
    "extraction": _extract,
    "sentences": split_sentences,
    "statements": is_statement,
    "tables and lists": read_entries,
    "synthetic questions": _ask,
    "claims": read_claims,
    "checks of claims": _check,
    "words": content_forms,
    "names and numbers": names_and_numbers,
    "form of a question": preset_for,
    "a name": normalise_name,
    "a reply of a model": lambda text: read_text(RawReply(text)),
    "an object of a model": _read_object,
}


@pytest.mark.sampled
@pytest.mark.parametrize("reader", READERS)
def test_it_takes_linear_time(reader: str) -> None:
    assert superlinear(READERS[reader], texts, sizes=(600, 2_400, 9_600)) is None
