"""An overview of one document without a model: its most central sentences in reading order, and its sections. A list of the
documents that mention a subject.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from agentic_rag_backend.answering.corpus_wide.overview import EMBEDDED, MIN_STANDING, RatedSentence, choose_sentences, make_point
from agentic_rag_backend.answering.corpus_wide.partial_answers import PartialAnswers, Point
from agentic_rag_backend.answering.evidence.context import Passage, passage_of
from agentic_rag_backend.domain.query import Hit
from agentic_rag_backend.language.independence import rate_independence, reads_as_prose, simplify_sentence
from agentic_rag_backend.language.questions.overviews import describes_itself
from agentic_rag_backend.language.sentences import split_sentences
from agentic_rag_backend.language.words import content_forms
from agentic_rag_backend.models.embedding.base import TextEncoder
from agentic_rag_backend.retrieval.themes.overviews import MAX_MENTIONS

MOST_SENTENCES = 6
LISTED_SECTIONS = 8
LISTED_TITLES = 12
_LEAD = 0.7
"""Value of the first passage, relative to a sentence that describes the document."""


async def select_central(hits: Sequence[Hit], encoder: TextEncoder) -> PartialAnswers:
    """Return the sentences that say most of what the document says, in reading order.

    A sentence is central if the document repeats its words (SumBasic, Nenkova and Vanderwende, 2005), if its vector is near to
    the mean of all, and if it is at the beginning, where documents introduce themselves. Of a document without a sentence that
    stands by itself, such as a list or a form, the first lines are returned.

    Args:
        hits: passages of the document, in reading order.
    """
    sentences = _list_sentences(hits)
    candidates = sorted(range(len(sentences)), key=lambda index: (-sentences[index].expected, index))[:EMBEDDED]
    if not candidates:
        return PartialAnswers(tuple(_list_first_lines(hits)))
    vectors = await encoder.embed([simplify_sentence(sentences[index].passage.text) for index in candidates])
    mean = vectors.mean(axis=0)
    rated = [
        RatedSentence(sentence.passage, sentence.standing, sentence.passage_cosine, sentence.word_share, float(vector @ mean))
        for sentence, vector in zip((sentences[index] for index in candidates), vectors, strict=True)
    ]
    chosen = choose_sentences(
        rated,
        range(len(rated)),
        vectors @ vectors.T,
        least=0.0,
        most=MOST_SENTENCES,
        most_per_document=MOST_SENTENCES,
    )
    points = [make_point(rated[number].passage, rated[number].worth) for number in sorted(chosen, key=candidates.__getitem__)]
    return PartialAnswers(tuple(points))


def introduce_document(points: Sequence[Point], hits: Sequence[Hit]) -> str:
    """Return the sentence that names the document and its sections; empty without points."""
    if not points:
        return ""
    title = hits[0].visible.document_title
    headings = [heading for hit in hits for heading in hit.visible.chunk.location.headings[:2]]
    sections = [f"“{heading}”" for heading in dict.fromkeys(headings) if heading and heading.casefold() != title.casefold()]
    list_of_sections = f" Its sections are {', '.join(sections[:LISTED_SECTIONS])}." if sections[1:LISTED_SECTIONS] else ""
    if len(sections) > LISTED_SECTIONS:
        list_of_sections = list_of_sections.replace("Its sections are", "Its first sections are", 1)
    kind = "most central sentences" if points[0].score > 0 else "first lines"
    return f"These are the {kind} of the document “{title}”.{list_of_sections}"


def _list_first_lines(hits: Sequence[Hit]) -> Iterator[Point]:
    """Yield the first different lines after the title, with the score 0."""
    forms_read = {content_forms(hits[0].visible.document_title)} if hits else set()
    passages = (
        passage_of(hit.visible, sentence.start, sentence.end, 0.0)
        for hit in hits
        for sentence in split_sentences(hit.visible.chunk.text)
    )
    for passage in passages:
        forms = content_forms(passage.text)
        if forms and forms not in forms_read:
            forms_read.add(forms)
            yield make_point(passage, 0.0)
        if len(forms_read) > MOST_SENTENCES:
            return


def list_mentions(subject: str, hits: Sequence[Hit]) -> list[Point]:
    """Return the sentence of each passage that has most words of the subject; of several, one that stands by itself."""
    forms = content_forms(subject)

    def rate(passage: Passage) -> tuple[int, float]:
        return len(forms & content_forms(passage.text)), rate_independence(passage.text)

    points = []
    for hit in hits:
        spans = split_sentences(hit.visible.chunk.text)
        passages = [passage_of(hit.visible, span.start, span.end, hit.score) for span in spans]
        points += [make_point(max(passages, key=rate), hit.score)] if passages else []
    return points


def introduce_mentions(subject: str, hits: Sequence[Hit]) -> str:
    """Return the sentence that names the documents that mention a subject."""
    titles = [f"“{title}”" for title in dict.fromkeys(hit.visible.document_title for hit in hits)]
    others = f" and {len(titles) - LISTED_TITLES} others" if len(titles) > LISTED_TITLES else ""
    noun = "document mentions" if len(hits) == 1 else "documents mention"
    count = f"At least {len(hits)}" if len(hits) == MAX_MENTIONS else len(hits)
    return f"{count} {noun} “{subject}”: {', '.join(titles[:LISTED_TITLES])}{others}."


def _list_sentences(hits: Sequence[Hit]) -> list[RatedSentence]:
    """Return the statements of the passages, each once; ``passage_cosine`` falls from the beginning to the end."""
    statements = []
    forms_read: set[frozenset[str]] = set()
    counts: Counter[str] = Counter()
    for number, hit in enumerate(hits):
        text = hit.visible.chunk.text
        for sentence in split_sentences(text):
            sentence_text = text[sentence.start : sentence.end]
            forms = content_forms(sentence_text)
            introduces = describes_itself(sentence_text)
            standing = 1.0 if introduces else rate_independence(sentence_text)
            if standing >= MIN_STANDING and reads_as_prose(sentence_text) and forms and forms not in forms_read:
                forms_read.add(forms)
                counts.update(forms)
                passage = passage_of(hit.visible, sentence.start, sentence.end, 0.0)
                statements.append((passage, standing, 1.0 if introduces else _LEAD * (1 - number / len(hits)), forms))
    # The title states the subject, so each of its words counts as the most frequent one.
    counts |= dict.fromkeys(content_forms(hits[0].visible.document_title), max(counts.values(), default=0)) if hits else {}
    highest = max((_mean_count(forms, counts) for *_, forms in statements), default=1.0)
    return [
        RatedSentence(passage, standing, lead, word_share=_mean_count(forms, counts) / highest)
        for passage, standing, lead, forms in statements
    ]


def _mean_count(forms: frozenset[str], counts: Counter[str]) -> float:
    return sum(counts[form] for form in forms) / len(forms)
