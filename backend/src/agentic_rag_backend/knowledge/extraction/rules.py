"""The rule-based extractor: names, aliases and relationships of a document without any model."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from agentic_rag_backend.domain.document import Chunk
from agentic_rag_backend.domain.graph import (
    Alias,
    EntityMention,
    ExtractedRelationship,
    Extraction,
    NameDescription,
    normalise_name,
)
from agentic_rag_backend.knowledge.extraction.lexicon import FUNCTION_WORDS, SUBJECT_NOUNS
from agentic_rag_backend.knowledge.extraction.names.aliases import alias_pairs, short_forms, without_legal_form
from agentic_rag_backend.knowledge.extraction.names.foreign import ForeignNames, foreign_language
from agentic_rag_backend.knowledge.extraction.names.label_lines import bare_heading, find_label_lines
from agentic_rag_backend.knowledge.extraction.names.name_descriptions import describe_names, name_forms
from agentic_rag_backend.knowledge.extraction.names.names import DocumentSpellings, Span, find_spans
from agentic_rag_backend.knowledge.extraction.names.references import with_references
from agentic_rag_backend.knowledge.extraction.relations.relations import MAX_FACT_CHARACTERS, Node, Pair, relate
from agentic_rag_backend.knowledge.extraction.relations.validity import Validity, validities
from agentic_rag_backend.knowledge.extraction.tokens import Tokens, tokenise
from agentic_rag_backend.knowledge.extraction.topics import TopicName, find_form, is_file_name, topic
from agentic_rag_backend.knowledge.extraction.types.ballots import Ballot, WordScores, load_scores, types_of
from agentic_rag_backend.knowledge.extraction.types.entity_types import CODE, DATE, ORGANISATION, OTHER, PERSON
from agentic_rag_backend.language.descriptions import describe_title

_IN_LOOP_CHARACTERS = 20_000
_MAX_NAME_CHARACTERS = 160
_SPELLED = (DATE, CODE)
_LIST_MARKS = frozenset({",", "and", "or", "&", ";"})
_LONGEST_LIST_MARK = 2
_ANY_NOUN = frozenset[str]().union(*SUBJECT_NOUNS.values())
_PERSONAL = frozenset({"he", "she", "his", "her"})
_NEUTRAL = frozenset({"it", "its"})


@dataclass(slots=True)
class _Name:
    """One occurrence of a name in a chunk."""

    span: Span
    start: int
    end: int
    text: str
    key: str


@dataclass(slots=True)
class _Passage:
    """A chunk as the rules see it; ``by_sentence`` lists the names of each sentence, in order."""

    chunk: Chunk
    tokens: Tokens
    topics: list[TopicName]
    by_sentence: list[list[_Name]] = field(default_factory=list)

    @property
    def names(self) -> list[_Name]:
        return [name for names in self.by_sentence for name in names]


class RuleExtractor:
    """Finds names and relationships by grammar, spelling and layout; pure, deterministic, linear in the text's length."""

    def __init__(self) -> None:
        self._scores = load_scores()

    @property
    def version(self) -> str:
        """Name of the method and its version, under which results are cached."""
        return "rules-9"

    async def extract(self, title: str, chunks: Sequence[Chunk]) -> list[Extraction]:
        """Extract from the chunks of one document, whose title is ``title``; a long document is read in a thread."""
        if sum(len(chunk.text) for chunk in chunks) <= _IN_LOOP_CHARACTERS:
            return self.extract_document(title, chunks)
        return await asyncio.to_thread(self.extract_document, title, chunks)

    def extract_document(self, title: str, chunks: Sequence[Chunk]) -> list[Extraction]:
        """Extract, synchronously; see `extract`."""
        return with_references(RuledDocument(title, chunks, self._scores).extractions(), chunks, title)


class RuledDocument:
    """The rules' working state over one document."""

    def __init__(self, title: str, chunks: Sequence[Chunk], scores: WordScores) -> None:
        self._scores = scores
        self._title = topic(title, from_title=True)
        vocabulary = DocumentSpellings()
        self._passages: list[_Passage] = []
        for chunk in chunks:
            tokens = tokenise(chunk.text)
            vocabulary.add(tokens)
            self._passages.append(_Passage(chunk, tokens, self._topics_of(chunk)))
        spans = [find_spans(passage.tokens, vocabulary) for passage in self._passages]
        language = foreign_language(passage.tokens for passage in self._passages)
        if language is not None:
            foreign = ForeignNames(language, vocabulary)
            for passage, names in zip(self._passages, spans, strict=True):
                foreign.learn(passage.tokens, names)
            spans = [foreign.correct_spans(passage.tokens, names) for passage, names in zip(self._passages, spans, strict=True)]
        for passage, names in zip(self._passages, spans, strict=True):
            _place_names(passage, names)
        self._drop_labels(vocabulary)
        self.ballots = self._collect_ballots()
        for ballot in self.ballots.values():
            words = [word for word in ballot.words if word[0].isalnum() and word.lower() not in FUNCTION_WORDS]
            ballot.common = sum(map(vocabulary.is_common, words)) / max(len(words), 1)
        self._types = self._decide_types()
        self._pairs = [self._alias_pairs(passage) for passage in self._passages]
        self._short = short_forms(self._types, {key: ballot.words for key, ballot in self.ballots.items()})
        for short, long in self._short.items():
            self._types[short] = self._types[long]
        for key in [key for key, type_ in self._types.items() if type_ == ORGANISATION]:
            if (bare := without_legal_form(key)) in self._types:
                self._types[bare] = ORGANISATION
        self._display = {name.key: name.text for passage in self._passages for name in passage.names}

    def extractions(self) -> list[Extraction]:
        return [self._build_extraction(passage, pairs) for passage, pairs in zip(self._passages, self._pairs, strict=True)]

    def _drop_labels(self, vocabulary: DocumentSpellings) -> None:
        """Drop the names and the headings that only label lines of the document have: see `find_label_lines`."""
        headings = {bare_heading(heading) for passage in self._passages for heading in passage.chunk.location.headings}
        labels = [find_label_lines(passage.chunk.text, headings) for passage in self._passages]
        outside = [
            name
            for passage, lines in zip(self._passages, labels, strict=True)
            for name in passage.names
            if not lines.covers(name.start)
        ]
        stated = {name.key for name in outside if name.span.kind in _SPELLED or not name.text.islower()}
        title = self._title.name if self._title is not None else ""
        if is_file_name(title) and normalise_name(title) not in (stated if title.isalpha() else {name.key for name in outside}):
            for passage in self._passages:
                passage.topics = passage.topics[1:]
            self._title = None
        if self._title is not None:
            stated.update(map(normalise_name, self._title.forms))
        for passage in self._passages:
            passage.by_sentence = [[name for name in names if name.key in stated] for names in passage.by_sentence]
            passage.topics = [
                topic_name
                for topic_name in passage.topics
                if topic_name is self._title
                or not stated.isdisjoint(map(normalise_name, topic_name.forms))
                or not _is_plain_heading(topic_name, vocabulary)
            ]

    def _topics_of(self, chunk: Chunk) -> list[TopicName]:
        topics = [self._title] if self._title is not None else []
        for heading in chunk.location.headings:
            heading_topic = topic(heading, from_title=False)
            if heading_topic is not None and all(heading_topic.name != topic_name.name for topic_name in topics):
                topics.append(heading_topic)
        return topics

    def _collect_ballots(self) -> dict[str, Ballot]:
        """Return the ballot of every name, topics included. Names whose spelling decides (dates, code) have none."""
        ballots: dict[str, Ballot] = {}
        for passage in self._passages:
            tokens = passage.tokens
            for topic_name in passage.topics:
                for form in topic_name.forms:
                    key = normalise_name(form)
                    ballots.setdefault(key, Ballot(key, form.split())).vote(topic_name.type, 4.0)
            for sentence, names in zip(tokens.sentences, passage.by_sentence, strict=True):
                for name in names:
                    if name.span.kind in _SPELLED:
                        continue
                    words = tokens.words[name.span.first : name.span.last]
                    ballot = ballots.setdefault(name.key, Ballot(name.key, words))
                    ballot.add_use(tokens, name.span, sentence)
        return ballots

    def list_neighbours(self) -> list[tuple[str, str]]:
        """Return the pairs of names with nothing but a comma, "and" or "or" between them."""
        return [
            (name.key, right.key)
            for passage in self._passages
            for names in passage.by_sentence
            for name, right in pairwise(names)
            if 0 < right.span.first - name.span.last <= _LONGEST_LIST_MARK
            and _LIST_MARKS.issuperset(passage.tokens.words[name.span.last : right.span.first])
        ]

    def _decide_types(self) -> dict[str, str]:
        types = types_of(self.ballots, self.list_neighbours(), self._scores)
        if self._title is not None:
            # The text uses the short form ("Halden" of "Halden, Norway"), so its type is more reliable.
            short = types[normalise_name(self._title.forms[-1])]
            types[normalise_name(self._title.name)] = short if self._title.type == OTHER else self._title.type
        spelled = {name.key: name.span.kind for passage in self._passages for name in passage.names if name.span.kind in _SPELLED}
        return {**types, **spelled}

    def _alias_pairs(self, passage: _Passage) -> list[Alias]:
        aliases: list[Alias] = []
        for sentence, names in zip(passage.tokens.sentences, passage.by_sentence, strict=True):
            by_span = {name.span: name for name in names if name.span.kind not in _SPELLED}
            for canonical, alias in alias_pairs(passage.tokens, list(by_span), sentence):
                long, short = by_span[canonical], by_span[alias]
                if long.key == short.key:
                    continue
                type_ = self._types[long.key] if self._types[long.key] != OTHER else self._types[short.key]
                self._types[long.key] = self._types[short.key] = type_
                aliases.append(Alias(name=long.text, alias=short.text, type=type_))
        return aliases

    def _build_extraction(self, passage: _Passage, pairs: list[Alias]) -> Extraction:
        mentions = self._list_topics(passage)
        aliases = dict.fromkeys(pairs)
        for topic_name in passage.topics:
            type_ = self._types[normalise_name(topic_name.name)]
            for form in topic_name.aliases:
                aliases[Alias(name=topic_name.name, alias=form, type=type_)] = None
        for name in passage.names:
            mentions.append(EntityMention(name=name.text, type=self._types[name.key], start_char=name.start, end_char=name.end))
            if name.key in self._short:
                long = self._display.get(self._short[name.key], self._short[name.key])
                aliases[Alias(name=long, alias=name.text, type=self._types[name.key])] = None
            elif self._types[name.key] == ORGANISATION and (bare := without_legal_form(name.text)) != name.text:
                aliases[Alias(name=bare, alias=name.text, type=ORGANISATION)] = None
        return Extraction(
            chunk_id=passage.chunk.id,
            mentions=tuple(mentions),
            relationships=tuple(self._list_relationships(passage)),
            aliases=tuple(aliases),
            descriptions=self._describe_bearers(passage),
        )

    def _describe_bearers(self, passage: _Passage) -> tuple[NameDescription, ...]:
        """Return what the passage and its topics say about who or what has a name."""
        passing = (
            (begin, end, [(name.span.first, name.key, name.text) for name in names if self._is_shareable(name)])
            for (begin, end), names in zip(passage.tokens.sentences, passage.by_sentence, strict=True)
        )
        descriptions = describe_names(passage.tokens, passing, lambda key: self._short.get(key, key))
        for topic_name in passage.topics:
            for form in topic_name.forms:
                key, description = normalise_name(form), describe_title(name_forms(form), f"{topic_name.text}.")
                descriptions[key] = (form, description | descriptions[key][1] if key in descriptions else description)
        # Of places, institutions and works, the nouns around a name often belong to something else: "a suburb of New York".
        sorts = {key: "person" if self._types.get(key) == PERSON else "vessel" for key in descriptions}
        fitting = ((name, description.of_sort(sorts[key])) for key, (name, description) in descriptions.items())
        return tuple(NameDescription(name=name, text=description.written) for name, description in fitting if description)

    def _is_shareable(self, name: _Name) -> bool:
        """Return whether others may have this name: it has several words, or is short for one that has."""
        return name.span.kind not in _SPELLED and (" " in name.key or name.key in self._short)

    def _list_topics(self, passage: _Passage) -> list[EntityMention]:
        return [
            EntityMention(name=form, type=self._types[normalise_name(form)], start_char=0, end_char=0, about=True)
            for topic_name in passage.topics
            for form in topic_name.forms
        ]

    def _list_relationships(self, passage: _Passage) -> list[ExtractedRelationship]:
        relationships: list[ExtractedRelationship] = []
        tokens = passage.tokens
        for (begin, end), names in zip(tokens.sentences, passage.by_sentence, strict=True):
            start_char, end_char = tokens.starts[begin], tokens.ends[end - 1]
            if not names or end_char - start_char > MAX_FACT_CHARACTERS:
                continue
            nodes = [Node(name.span.first, name.span.last, name.text, name.key, self._types[name.key]) for name in names]
            implied = self._implied_subject(tokens, begin, names[0])
            if implied is not None:
                nodes.insert(0, implied)
            pairs = relate(tokens, nodes)
            times = validities(tokens, nodes, pairs, (begin, end))
            relationships.extend(
                _build_relationship(pair, tokens.text, (start_char, end_char), time)
                for pair, time in zip(pairs, times, strict=True)
            )
        return relationships

    def _implied_subject(self, tokens: Tokens, begin: int, first_name: _Name) -> Node | None:
        """Return the title as the subject of a sentence that opens with a pronoun or with "The film", "The company".

        A title with common words, such as "Minutes of the meeting", is no subject.
        """
        if self._title is None or first_name.span.first == begin or not self._title.is_proper:
            return None
        type_ = self._types[normalise_name(self._title.name)]
        word = tokens.words[begin].lower()
        personal = word in _PERSONAL and type_ == PERSON
        neutral = word in _NEUTRAL and type_ != PERSON
        described = (
            word in ("the", "this")
            and first_name.span.first > begin + 1
            and tokens.words[begin + 1] in SUBJECT_NOUNS.get(type_, _ANY_NOUN)
            and tokens.words[begin + 2] not in ("'s", "’s")
        )
        if not (personal or neutral or described):
            return None
        return Node(begin, begin + 1 + described, self._title.name, normalise_name(self._title.name), type_)


def _is_plain_heading(heading: TopicName, vocabulary: DocumentSpellings) -> bool:
    """Return whether a heading that no sentence mentions names nothing: only several words with capitals are a name.

    They are no name if the text also writes all of them in lower case.
    """
    words = [word for word in heading.name.split() if word.lower() not in FUNCTION_WORDS]
    capitalised = len(words) > 1 and all(word.isalpha() and word[0].isupper() for word in words)
    return not capitalised or all(vocabulary.is_common(word) for word in words)


def _build_relationship(pair: Pair, text: str, fact_span: tuple[int, int], time: Validity) -> ExtractedRelationship:
    start, end = fact_span
    return ExtractedRelationship(
        source=pair.source.name,
        source_type=pair.source.type,
        target=pair.target.name,
        target_type=pair.target.type,
        relation=pair.relation,
        fact=text[start:end],
        fact_start=start,
        fact_end=end,
        confidence=round(pair.confidence, 3),
        valid_at=time[0],
        invalid_at=time[1],
    )


def _place_names(passage: _Passage, names_found: list[Span]) -> None:
    tokens = passage.tokens
    spans = _with_topics(tokens, names_found, passage.topics)
    position = 0
    for _, end in tokens.sentences:
        names: list[_Name] = []
        while position < len(spans) and spans[position].first < end:
            span = spans[position]
            position += 1
            start, stop = tokens.starts[span.first], tokens.ends[span.last - 1]
            text = tokens.text[start:stop]
            key = normalise_name(text) if stop - start <= _MAX_NAME_CHARACTERS else ""
            if key:
                names.append(_Name(span, start, stop, text, key))
        passage.by_sentence.append(names)


def _with_topics(tokens: Tokens, spans: list[Span], topics: Sequence[TopicName]) -> list[Span]:
    """Add the places of titles and headings in the text; of two overlapping spans, the longer one is kept."""
    extra: list[Span] = []
    for topic_name in topics:
        for form in topic_name.forms:
            for start, end in find_form(tokens.text, form):
                start_token, stop_token = bisect_left(tokens.starts, start), bisect_left(tokens.ends, end) + 1
                if (
                    start_token < len(tokens.starts)
                    and tokens.starts[start_token] == start
                    and tokens.ends[stop_token - 1] == end
                ):
                    extra.append(Span(start_token, stop_token))
    if not extra:
        return spans
    ranked = sorted({*spans, *extra}, key=lambda span: (span.first - span.last, span.kind != "date", span.first, span.kind))
    used = [False] * len(tokens.words)
    chosen: list[Span] = []
    for span in ranked:
        if not any(used[span.first : span.last]):
            used[span.first : span.last] = [True] * (span.last - span.first)
            chosen.append(span)
    return sorted(chosen, key=lambda span: span.first)
