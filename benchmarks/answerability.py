"""Fits and measures the confidence of answers without a model.

``squad2`` is fitted on one half of its articles and measured on the other, in both directions; HotpotQA and MuSiQue on one half
of their questions. ``--fit`` writes the coefficients that the product ships, fitted on everything. Writes
``results/answerability.json`` and ``.md``. ``--shipped`` measures the shipped coefficients, which have seen these sets: it shows
what a change of the encoder's arithmetic does to them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import agentic_rag_backend.answering.answerability as package
from agentic_rag_backend.answering.answerability.estimate import (
    SPECIFIC,
    account_confidence,
    account_features,
    answer_features,
    estimate_confidence,
)
from agentic_rag_backend.answering.answerability.evidence import (
    EvidenceReading,
    read_evidence,
)
from agentic_rag_backend.answering.answerability.judge import AnswerJudge
from agentic_rag_backend.answering.answerability.question import read_question
from agentic_rag_backend.answering.answerability.selection import (
    FILE,
    Bridges,
    Coefficients,
    Linear,
    Selection,
    added_features,
    load_coefficients,
    select,
    sum_new_rarity,
)
from agentic_rag_backend.answering.answerability.sentence_features import lexical_features
from agentic_rag_backend.evaluation.estimate_metrics import auroc, calibration_error, reliability
from agentic_rag_backend.language.questions.kinds import AnswerKind
from agentic_rag_backend.models.embedding.base import TextVectors, Vectors
from agentic_rag_backend.models.embedding.bundled import BundledEmbedder
from agentic_rag_backend.models.embedding.onnx.onnx_sessions import Arithmetic
from fitting import fit_choice, fit_logistic
from judged_questions import (
    ADVERSARIAL,
    ANSWERABLE,
    EXAMPLES,
    FOREIGN,
    OFF,
    PODCASTS,
    REMOVED,
    SETS,
    JudgedQuestion,
    collected,
)
from report import data, finish, quiet

CANDIDATE = (
    *("held", "window", "passage", "passage_score", "type_absent", "names_absent_passage"),
    "numbers_absent_passage",
)
SENTENCE = (
    *("held", "window", "passage_score", "names_absent_passage", "numbers_absent_passage", "type_absent"),
    *("cosine", "similar", "similar_window", "near", "question_word", "question", "headed"),
)
FURTHER = (
    *("score", "bridge", "added", "added_to_window", "likeness", "title_named", "same_passage"),
    *("type_absent", "question_word", "near", "follows", "adjacent", "item_added"),
)
BRIDGE = ("score", "bridge", "added")
FACT = (
    *("cosine", "similar_window", "share", "names_absent", "numbers_absent", "negation", "opposite", "count_absent"),
    *("type_absent", "year_differs"),
)
ALIKE = ("numbers_absent", "negation", "opposite", "count_absent", "year_differs")
"""Features whose weights are fitted on one document and hold for several as well. Too few questions about several have them."""
HOPS = ("cosine", "names_absent", "connected", "covered")
ACCOUNT = ("nearness",)
_POSITIVE = (
    *(
        "cosine",
        "similar",
        "similar_window",
        "near",
        "question_word",
        "share",
        "connected",
        "covered",
        "held",
        "headed",
    ),
    *("window", "nearness"),
)
_NEGATIVE = (
    *("type_absent", "names_absent_passage", "numbers_absent_passage", "names_absent", "numbers_absent"),
    *("negation", "opposite", "count_absent", "year_differs", "question"),
)
SIGNS = dict.fromkeys(_POSITIVE, 1) | dict.fromkeys(_NEGATIVE, -1)
VALUE_ABSENT = -2.0
"""Weight of an absent colour, price, share or measure, set by hand: the sets have some twenty such questions. The recognisers
miss one in ten of such answers, and nearly no sentence without an answer has a colour or a price by chance."""
STATEMENT = 1.0
"""Value of a full sentence, set by hand: SQuAD has hardly any headings, captions or rows."""
SHARES = {ADVERSARIAL: 0.5, REMOVED: 1.0, OFF: 0.6}
"""Weight of a row of `squad2` by variant; an answerable question has 1. Half of the mass is then answerable."""
HOP_SHARES = {REMOVED: 0.5, FOREIGN: 0.6}
HOP_SHARE = 5.0
"""Weight of a question of HotpotQA or MuSiQue, of which there are few."""
ACCOUNT_SHARE = 2.0
"""Weight of a question for an account that the passages hold. There are more of the other kind."""
SQUAD_SHARE = 0.1
"""Weight of a question of SQuAD in the fit of accounts, relative to the others. They ask for one place in the documents."""
MATTER_ABSENT = -1.6
"""Weight of an account of which the passages contain the names only, set by hand: the sets have hardly any."""
ANSWERED = 0.9
DEFAULT_THRESHOLD = 0.25


class RememberedEncoder:
    """Encodes each text once with the bundled weights.

    Args:
        arithmetic: "float32" or "int8"; None: what a new installation uses on this processor.
    """

    def __init__(self, arithmetic: Arithmetic | None = None) -> None:
        self._encoder = BundledEmbedder(arithmetic=arithmetic)
        self.arithmetic = self._encoder.arithmetic
        self._known: dict[str, TextVectors] = {}
        self._whole: dict[str, NDArray[np.float32]] = {}

    async def encode_words(self, texts: Sequence[str], spans: Sequence[Sequence[tuple[int, int]]]) -> list[TextVectors]:
        """See `WordEncoder`."""
        unknown = {text: span for text, span in zip(texts, spans, strict=True) if text not in self._known}
        if unknown:
            found = await self._encoder.encode_words(list(unknown), list(unknown.values()))
            self._known.update(zip(unknown, found, strict=True))
        return [self._known[text] for text in texts]

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """See `TextEncoder`."""
        if unknown := [text for text in texts if text not in self._whole]:
            self._whole.update(zip(unknown, await self._encoder.embed(unknown), strict=True))
        return np.stack([self._whole[text] for text in texts])

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        """See `TextEncoder`."""
        return await self._encoder.embed_query(text)


@dataclass(frozen=True)
class Row:
    """A question with its selection. ``right`` says of each candidate whether it holds a gold answer."""

    asked: JudgedQuestion
    selection: Selection
    right: NDArray[np.bool_]
    features: Mapping[str, float]
    nearness: float = 0.0

    @property
    def account(self) -> bool:
        """Whether the question asks for an account."""
        return self.asked.corpus == PODCASTS or self.selection.reading.question.asked is AnswerKind.THEME

    @property
    def answered(self) -> bool:
        """Whether a chosen sentence holds a gold answer. A set without answer texts answers its own questions."""
        if not self.asked.answers:
            return self.asked.answerable
        return bool(self.right[list(self.selection.chosen)].any())

    @property
    def first(self) -> bool:
        """Whether the first sentence does."""
        return bool(self.right[self.selection.first])


def plain(text: str) -> str:
    """Return the words of a text, in lower case."""
    return " ".join(re.findall(r"\w+", text.casefold()))


def holds(text: str, answers: Sequence[str]) -> bool:
    """Return whether a text contains one of the answers as whole words."""
    words = f" {plain(text)} "
    return any(f" {plain(answer)} " in words for answer in answers if plain(answer))


def right_sentences(asked: JudgedQuestion, reading: EvidenceReading, *, of_gold: bool) -> NDArray[np.bool_]:
    """Return which sentences hold a gold answer; ``of_gold``: in a gold passage only."""
    if not asked.answerable:
        return np.zeros(len(reading.sentences), dtype=bool)
    found = [
        holds(each.text, asked.answers) and (not of_gold or asked.keys[each.passage] in asked.gold) for each in reading.sentences
    ]
    return np.array(found, dtype=bool)


# --- fitting, in the order in which a question is judged


def fit_candidates(questions: Sequence[JudgedQuestion]) -> Linear:
    """Fit the value of a sentence before it is encoded, on answerable questions about one passage."""
    groups = []
    for asked in questions:
        reading = read_evidence(read_question(asked.question), asked.passages)
        if asked.answerable and reading.sentences:
            groups.append(
                (
                    lexical_features(reading),
                    right_sentences(asked, reading, of_gold=True),
                )
            )
    return Linear({**fit_choice(groups, CANDIDATE, SIGNS), "statement": STATEMENT})


def fit_bridges(
    questions: Sequence[JudgedQuestion],
    candidate: Linear,
    leaders: int = 3,
    direct: int = 4,
) -> Linear:
    """Fit the value of a sentence that a name leads to, on questions over several passages."""
    groups = []
    for asked in questions:
        reading = read_evidence(read_question(asked.question), asked.passages)
        if not asked.answerable or not reading.sentences:
            continue
        bridges, scores = Bridges(reading), candidate.of(lexical_features(reading))
        order = [int(number) for number in np.argsort(-scores, kind="stable")]
        others = order[direct:]
        rows = [
            (
                scores[number],
                max(bridges.strength(leader, number) for leader in order[:leaders]),
                max(sum_new_rarity(reading, [leader], number) for leader in order[:leaders]),
            )
            for number in others
        ]
        if rows:
            values = dict(zip(BRIDGE, np.array(rows, dtype=np.float32).T, strict=True))
            groups.append((values, right_sentences(asked, reading, of_gold=False)[others]))
    return Linear(fit_choice(groups, BRIDGE, {}))


def select_all(judge: AnswerJudge, questions: Sequence[JudgedQuestion]) -> list[Row]:
    """Return the selection for each question whose passages say anything."""

    accounts = {each.question for each in questions if each.corpus == PODCASTS and each.answerable}

    async def run() -> list[Row]:
        rows = []
        for asked in questions:
            selection = await judge.select(asked.question, asked.passages)
            if selection is not None:
                right = right_sentences(asked, selection.reading, of_gold=False)[list(selection.interaction.chosen)]
                row = Row(asked, selection, right, {})
                if row.account or asked.question in accounts:
                    row = replace(row, nearness=await judge.nearness(asked.question, asked.passages))
                rows.append(row)
        return rows

    return asyncio.run(run())


def reselected(rows: Sequence[Row], weights: Coefficients) -> list[Row]:
    """Return the rows with sentences chosen by other weights among the same candidates."""
    found = []
    for row in rows:
        old = row.selection
        selection = select(old.reading, old.bridges, old.interaction, old.features, weights)
        found.append(replace(row, selection=selection, features=answer_features(selection)))
    return found


def fit_sentences(rows: Sequence[Row]) -> Linear:
    """Fit the choice of the best sentence."""
    groups = []
    for row in rows:
        gold = right_sentences(row.asked, row.selection.reading, of_gold=True)[list(row.selection.interaction.chosen)]
        groups.append((row.selection.features, gold))
    return Linear({**fit_choice(groups, SENTENCE, SIGNS), "statement": STATEMENT, "value_absent": VALUE_ABSENT})


def fit_further(rows: Sequence[Row], sentence: Linear) -> Linear:
    """Fit the choice of a further sentence, on questions that the best sentence does not answer."""
    groups = []
    for row in rows:
        if not row.right.any():
            continue
        scores = sentence.of(row.selection.features)
        chosen = [int(np.argmax(scores))]
        for _ in range(2):
            if row.right[chosen].any():
                break
            values = added_features(row.selection, scores, chosen)
            left = np.array([place not in chosen for place in range(len(scores))])
            groups.append(({name: each[left] for name, each in values.items()}, row.right[left]))
            worth = 0.5 * scores + 3.0 * values["bridge"]
            worth[chosen] = -np.inf
            chosen.append(int(np.argmax(worth)))
    # A heading or a row is worth one less than a full sentence, as in `fit_sentences`.
    return Linear({**fit_choice(groups, FURTHER, {}), "statement": STATEMENT, "value_added": -VALUE_ABSENT}, -STATEMENT)


def fit_estimate(rows: Sequence[Row], names: Sequence[str]) -> Linear:
    """Fit the chance that the chosen sentences hold a gold answer."""
    values = {name: np.array([row.features[name] for row in rows]) for name in names}
    share = np.array([share_of(row.asked) for row in rows])
    weights, intercept = fit_logistic(values, np.array([row.answered for row in rows]), share, names, SIGNS)
    return Linear({**weights, "value_absent": VALUE_ABSENT}, intercept)


def fit_account(rows: Sequence[Row]) -> Linear:
    """Fit the chance that many passages hold an account."""
    features = [account_features(row.selection, row.nearness) for row in rows]
    values = {name: np.array([each[name] for each in features]) for name in ACCOUNT}
    share = np.array([ACCOUNT_SHARE if row.asked.answerable else 1.0 for row in rows])
    share[[row.asked.corpus == "squad2" for row in rows]] *= SQUAD_SHARE
    found, intercept = fit_logistic(values, np.array([row.answered for row in rows]), share, ACCOUNT, SIGNS)
    return Linear({**found, "matter_absent": MATTER_ABSENT}, intercept)


def share_of(asked: JudgedQuestion) -> float:
    """Return the weight of a question in the fit of the estimate."""
    if asked.corpus == "squad2":
        return SHARES.get(asked.variant, 1.0)
    return HOP_SHARE * HOP_SHARES.get(asked.variant, 1.0)


def fit_first(questions: Sequence[JudgedQuestion]) -> Coefficients:
    """Fit what chooses the candidates; the other functions stay as they are."""
    single = [each for each in questions if each.corpus == "squad2"]
    several = [each for each in questions if each.corpus in ("hotpotqa", "musique")]
    candidate = fit_candidates(single)
    empty = Linear({})
    return Coefficients(candidate, fit_bridges(several, candidate), empty, empty, empty, empty, empty)


def fit_rest(first: Coefficients, rows: Sequence[Row]) -> Coefficients:
    """Fit the choice of sentences and the estimates on rows with the candidates of ``first``."""
    sentence = fit_sentences([row for row in rows if row.asked.corpus == "squad2"])
    further = fit_further(rows, sentence)
    chosen = replace(first, sentence=sentence, further=further)
    again = reselected(rows, chosen)
    accounts = {row.asked.question for row in again if row.asked.corpus == PODCASTS and row.asked.answerable}
    facts = [row for row in again if row.asked.corpus != PODCASTS and row.asked.question not in accounts]
    alone = [row for row in facts if row.features["connected"] == 0.0]
    connected = [row for row in facts if row.features["connected"] > 0.0]
    fact, hops = fit_estimate(alone, FACT), fit_estimate(connected, HOPS)
    shared = {name: fact.weights[name] for name in ALIKE}
    chosen = replace(chosen, fact=fact, hops=Linear({**hops.weights, **shared}, hops.intercept))
    asked = [row for row in again if row.account or row.asked.question in accounts]
    asked = [row for row in asked if estimate_confidence(row.selection, chosen) < SPECIFIC]
    return replace(chosen, account=fit_account(asked))


# --- measuring


def in_half(asked: JudgedQuestion, articles: Sequence[str], half: int) -> bool:
    """Return whether a question belongs to a half: of `squad2` by article, of other sets by a hash of the question."""
    if asked.corpus == "squad2":
        return articles.index(asked.article) % 2 == half
    return zlib.crc32(asked.question.encode()) % 2 == half


def estimates(rows: Sequence[Row], weights: Coefficients) -> NDArray[np.float64]:
    """Return the confidence of each row."""
    return np.array([_estimate(row, weights) for row in rows])


def _estimate(row: Row, weights: Coefficients) -> float:
    sure = estimate_confidence(row.selection, weights)
    broad = row.account and sure < SPECIFIC
    return account_confidence(row.selection, row.nearness, weights) if broad else sure


def figures(rows: Sequence[Row], weights: Coefficients) -> dict[str, dict[str, Any]]:
    """Return the figures of each set."""
    found: dict[str, dict[str, Any]] = {}
    for name, own in by_set(rows).items():
        if not own:
            continue
        answerable = [row for row in own if row.asked.answerable]
        sure = estimates(answerable, weights)
        threshold = float(np.quantile(sure, 1.0 - ANSWERED))
        natural = [row for row in own if row.asked.answerable or row.asked.variant in (ADVERSARIAL, FOREIGN, REMOVED)]
        if name.startswith("squad2"):
            natural = [row for row in own if row.asked.variant in (ANSWERABLE, ADVERSARIAL)]
        result: dict[str, Any] = {
            "questions": len(answerable),
            "first_sentence_right": np.mean([row.first for row in answerable]),
            "two_sentences_right": np.mean([row.right[list(row.selection.chosen)[:2]].any() for row in answerable]),
            "answer_right": np.mean([row.answered for row in answerable]),
            "sentences": np.mean([len(row.selection.chosen) for row in answerable]),
            "threshold_of_90": threshold,
            "answered": np.mean(sure >= DEFAULT_THRESHOLD),
            "calibration_error": calibration_error(estimates(natural, weights), [row.answered for row in natural]),
            "reliability": reliability(estimates(natural, weights), [row.answered for row in natural]),
        }
        for variant in (ADVERSARIAL, REMOVED, OFF, FOREIGN):
            wrong = estimates([row for row in own if row.asked.variant == variant], weights)
            if len(wrong):
                result[variant] = {
                    "questions": len(wrong),
                    "auroc": auroc(sure, wrong),
                    "refused": np.mean(wrong < DEFAULT_THRESHOLD),
                    "refused_where_90_are_answered": np.mean(wrong < threshold),
                }
        found[name] = rounded(result)
    return found


def by_set(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the rows of each set. Questions of SQuAD for an account are also a set of their own."""
    found = {name: [row for row in rows if row.asked.corpus == name] for name in SETS}
    return found | {"squad2, accounts": [row for row in found["squad2"] if row.account]}


def rounded(value: Any) -> Any:
    """Return numbers with three digits, in nested lists and objects, too."""
    if isinstance(value, Mapping):
        return {key: rounded(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(each) for each in value]
    return round(float(value), 3) if isinstance(value, float | np.floating) else value


def markdown(results: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the tables of both halves."""
    head = (
        "first",
        "first two",
        "answer",
        "sentences",
        "answered",
        "calibration error",
    )
    keys = (
        "first_sentence_right",
        "two_sentences_right",
        "answer_right",
        "sentences",
        "answered",
        "calibration_error",
    )
    lines_ = []
    for half, sets in results.items():
        lines_ += [
            f"## {half}",
            "",
            f"| set | questions | {' | '.join(head)} |",
            "|---" * (len(head) + 2) + "|",
        ]
        lines_ += [
            f"| {name} | {row['questions']} | " + " | ".join(str(row[key]) for key in keys) + " |" for name, row in sets.items()
        ]
        lines_ += [
            "",
            "| set | without an answer | questions | AUROC | refused | refused where .90 are answered |",
            "|---|---|---|---|---|---|",
        ]
        for name, row in sets.items():
            for variant in (ADVERSARIAL, REMOVED, OFF, FOREIGN):
                if each := row.get(variant):
                    values = (
                        each["questions"],
                        each["auroc"],
                        each["refused"],
                        each["refused_where_90_are_answered"],
                    )
                    lines_.append(f"| {name} | {variant} | " + " | ".join(map(str, values)) + " |")
        lines_.append("")
    return "\n".join(lines_)


def cross_fitted(questions: Sequence[JudgedQuestion], encoder: RememberedEncoder) -> dict[str, dict[str, Any]]:
    """Fit on each half and measure on the other."""
    articles = sorted({each.article for each in questions if each.corpus == "squad2"})
    found = {}
    for half in (0, 1):
        fitting = [each for each in questions if each.corpus != EXAMPLES and in_half(each, articles, half)]
        first = fit_first(fitting)
        judge = AnswerJudge(encoder, placeholder(first))
        weights = fit_rest(first, select_all(judge, fitting))
        others = [each for each in questions if each.corpus == EXAMPLES or not in_half(each, articles, half)]
        found[f"fitted on half {half + 1}, measured on the other"] = figures(
            reselected(select_all(judge, others), weights), weights
        )
    return found


def shipped(questions: Sequence[JudgedQuestion], encoder: RememberedEncoder) -> dict[str, dict[str, Any]]:
    """Measure the coefficients that the product ships on all questions."""
    weights = load_coefficients()
    rows = reselected(select_all(AnswerJudge(encoder, weights), questions), weights)
    return {f"shipped coefficients, {encoder.arithmetic}": figures(rows, weights)}


def placeholder(first: Coefficients) -> Coefficients:
    """Return coefficients that choose candidates; any sentence is the best until the rest is fitted."""
    zero = Linear({"cosine": 1.0})
    never = Linear({"score": 0.0}, -1.0)
    return replace(first, sentence=zero, further=never)


def stored(weights: Coefficients) -> str:
    """Return coefficients as the file that the product reads."""
    names = ("candidate", "bridge", "sentence", "further", "fact", "hops", "account")
    each = {name: getattr(weights, name) for name in names}
    rows = {
        name: {
            "intercept": round(float(linear.intercept), 4),
            "weights": {key: round(float(value), 4) for key, value in linear.weights.items()},
        }
        for name, linear in each.items()
    }
    return json.dumps(rows, indent=2) + "\n"


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--fit",
        action="store_true",
        help="write the coefficients that the product ships",
    )
    parser.add_argument("--cache", type=Path, help="folder that keeps the questions with their passages")
    parser.add_argument(
        "--every",
        type=int,
        default=1,
        help="take every n-th question of squad2 only, to save time",
    )
    parser.add_argument("--no-measure", action="store_true", help="only fit")
    parser.add_argument("--shipped", action="store_true", help="measure the shipped coefficients instead of fits on each half")
    parser.add_argument("--arithmetic", choices=("float32", "int8"), help="arithmetic of the encoder that judges")
    chosen = parser.parse_args()
    quiet()
    folder = data()
    if folder is None:
        return 0
    sets = collected(folder, SETS, chosen.cache)
    questions = [each for name, found in sets.items() for each in found[:: chosen.every if name == "squad2" else 1]]
    encoder = RememberedEncoder(chosen.arithmetic)
    if chosen.shipped:
        results = shipped(questions, encoder)
        return finish(f"answerability-{encoder.arithmetic}", results, markdown(results), [])
    if chosen.fit:
        fitting = [each for each in questions if each.corpus != EXAMPLES]
        first = fit_first(fitting)
        weights = fit_rest(first, select_all(AnswerJudge(encoder, placeholder(first)), fitting))
        (Path(package.__file__).parent / FILE).write_text(stored(weights), encoding="utf-8")
        print(stored(weights))
        if chosen.no_measure:
            return 0
    results = cross_fitted(questions, encoder)
    return finish("answerability", results, markdown(results), [])


if __name__ == "__main__":
    raise SystemExit(main())
