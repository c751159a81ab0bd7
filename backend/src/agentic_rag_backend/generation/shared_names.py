"""Introduction of an answer whose question names several people, ships or places of one name without saying which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentic_rag_backend.domain.query import KnownBearer, Retrieval, SharedName
from agentic_rag_backend.generation.evidence.context import Passage
from agentic_rag_backend.language.descriptions import Description


def introduce_bearers(retrieval: Retrieval, quoted: Sequence[Passage]) -> str:
    """Return sentences that say who bears the names of the question, and whom the quoted passages are about.

    Empty if the question says whom it means.
    """
    titles = {passage.document_id: passage.title for passage in reversed(quoted)}
    return " ".join(_describe_name(name, titles) for name in retrieval.shared_names if not name.decided)


def _describe_name(name: SharedName, titles: Mapping[str, str]) -> str:
    called = [_describe_bearer(bearer) for bearer in name.bearers]
    about = [(bearer, title) for bearer in name.bearers if (title := _title_of(bearer, titles)) is not None]
    first = f"The documents speak of more than one {name.name}: {join_texts(called)}."
    if not about:
        return first
    quoted = join_texts([f"{_describe_bearer(bearer)} (“{title}”)" for bearer, title in about])
    return f"{first} The quoted passages are about {quoted}."


def _describe_bearer(bearer: KnownBearer) -> str:
    label = _label_of(bearer)
    return f"the one {label}" if label[-1:].isdigit() else f"the {label}"


def _label_of(bearer: KnownBearer) -> str:
    return Description.parse(bearer.entity.description).label


def _title_of(bearer: KnownBearer, titles: Mapping[str, str]) -> str | None:
    return next((title for id, title in titles.items() if id in bearer.documents), None)


def join_texts(texts: Sequence[str]) -> str:
    """Return texts as an enumeration: "a, b and c"."""
    *leading, last = texts
    return f"{', '.join(leading)} and {last}" if leading else last
