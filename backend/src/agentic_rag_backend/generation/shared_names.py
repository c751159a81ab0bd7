"""Introduction of an answer whose question names several people, ships or places of one name without saying which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from agentic_rag_backend.domain.query import KnownBearer, Retrieval, SharedName
from agentic_rag_backend.domain.text.descriptions import Description
from agentic_rag_backend.generation.answerability.judge import Judgement
from agentic_rag_backend.generation.answerability.namesakes import Bearer
from agentic_rag_backend.generation.context import Context


def introduction(retrieval: Retrieval, judgement: Judgement, context: Context) -> str:
    """Return sentences that say who bears the names of the question, and whom the quoted passages are about.

    Empty if the question decides, or if the judge's own introduction already tells the bearers apart.
    """
    told = {each.name.casefold() for each in judgement.namesakes}
    quoted = [context.passages[each.passage] for each in judgement.sentences]
    titles = {each.document_id: each.title for each in reversed(quoted)}
    open_ = (each for each in retrieval.shared_names if not each.decided and each.name.casefold() not in told)
    return " ".join(_told(each, titles) for each in open_)


def labelled(judgement: Judgement, retrieval: Retrieval, context: Context) -> Judgement:
    """Return the judgement with labels for bearers that its passages do not describe, from other documents."""
    ids: dict[str, set[str]] = {}
    for passage in context.passages:
        ids.setdefault(passage.title, set()).add(passage.document_id)
    known = {each.name.casefold(): each.bearers for each in retrieval.shared_names}

    def label(name: str, bearer: Bearer) -> Bearer:
        documents = frozenset[str]().union(*(ids.get(title, ()) for title in bearer.documents))
        meant = [each for each in known.get(name.casefold(), ()) if documents & each.documents]
        return bearer if bearer.label or len(meant) != 1 else replace(bearer, label=_label(meant[0]))

    return replace(
        judgement,
        namesakes=tuple(
            replace(each, bearers=tuple(label(each.name, bearer) for bearer in each.bearers)) for each in judgement.namesakes
        ),
    )


def _told(name: SharedName, titles: Mapping[str, str]) -> str:
    called = [_called(each) for each in name.bearers]
    about = [(bearer, title) for bearer in name.bearers if (title := _title(bearer, titles)) is not None]
    first = f"The documents speak of more than one {name.name}: {listed(called)}."
    if not about:
        return first
    return f"{first} The quoted passages are about {listed([f'{_called(bearer)} (“{title}”)' for bearer, title in about])}."


def _called(bearer: KnownBearer) -> str:
    label = _label(bearer)
    return f"the one {label}" if label[-1:].isdigit() else f"the {label}"


def _label(bearer: KnownBearer) -> str:
    return Description.parse(bearer.entity.description).label


def _title(bearer: KnownBearer, titles: Mapping[str, str]) -> str | None:
    return next((title for id, title in titles.items() if id in bearer.documents), None)


def listed(texts: Sequence[str]) -> str:
    """Return texts as an enumeration: "a, b and c"."""
    *others, last = texts
    return f"{', '.join(others)} and {last}" if others else last
