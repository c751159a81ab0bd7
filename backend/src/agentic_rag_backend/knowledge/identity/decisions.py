"""Decides which entity documents mean by a name, from what the documents say: functions of values, without reads.

Their cost grows with the number of documents that describe the bearer of a name. `Identities` runs them off the event loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from agentic_rag_backend.domain.document import stable_id
from agentic_rag_backend.domain.graph import NameUse
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.knowledge.identity.bearers import Bearer, Division, choose_ids, divide
from agentic_rag_backend.language.descriptions import Description

MAX_BEARERS = 100
"""Documents that describe the bearer of a name and decide how many bearers it has: the first by id. It bounds the cost."""
SPELLED = frozenset({"date", "code"})
"""Types of names that mean the same wherever they are: they have no aliases and no bearers."""

Near = Mapping[str, frozenset[str]]
"""Names that share a chunk with a name, by document. All are normalised."""


@dataclass(frozen=True, slots=True)
class NameCase:
    """A name of one document, and what other documents say about its bearer.

    Attributes:
        name: the normalised full name.
        description: what the document says about the bearer.
        uses: descriptions of the bearer in other documents.
        near: the document's other names that share a chunk with the name. Only read if several bearers are possible.
        others_near: the same of the other documents.
    """

    name: str
    description: Description
    uses: Sequence[NameUse]
    near: frozenset[str] = frozenset()
    others_near: Near = field(default_factory=dict)

    @property
    def items(self) -> int:
        """The size of this value, for `Offload`: bearers are compared in pairs."""
        return len(self.uses) ** 2 + len(self.near) + sum(map(len, self.others_near.values()))


def entity_id(tenant: TenantId, key: str, type_: str = "") -> str:
    """Return the id of the entity that a normalised name means. Dates and code have entities of their own."""
    return stable_id("entity", tenant, key, type_) if type_ in SPELLED else stable_id("entity", tenant, key)


def bearers_of(uses: Sequence[NameUse], document_id: str = "", neighbours: Near | None = None) -> list[Bearer]:
    """Return what the newest version of each other document says about a bearer, ordered by document."""
    newest = {use.document_id: use for use in uses if use.document_id != document_id and use.type not in SPELLED}
    ordered = sorted(newest.items(), key=lambda item: item[0])[:MAX_BEARERS]
    return [
        Bearer(id, Description.parse(use.description), (neighbours or {}).get(id, frozenset()), use.assigned_id)
        for id, use in ordered
    ]


def list_contested_cases(document_id: str, cases: Sequence[NameCase]) -> list[bool]:
    """Return for each name whether descriptions may tell several bearers apart, without regard to names nearby."""
    contested = []
    for case in cases:
        bearers = [*bearers_of(case.uses, document_id), Bearer(document_id, case.description)]
        # Equal descriptions are about one bearer, so one document of each is enough.
        distinct = {bearer.description: bearer for bearer in bearers if bearer.description.tells_kind}
        contested.append(len(distinct) > 1 and bool(divide(distinct.values())))
    return contested


def choose_entities(tenant: TenantId, document_id: str, cases: Sequence[NameCase]) -> list[tuple[str, bool]]:
    """Return for each contested name its entity, and whether the name may now mean other entities in other documents."""
    chosen = []
    for case in cases:
        bearer = Bearer(document_id, case.description, case.near)
        other_bearers = bearers_of(case.uses, document_id, case.others_near)
        division = divide([*other_bearers, *([bearer] if case.description else [])])
        moves = bool(case.description) and (bool(division) or has_several_bearers(tenant, case.name, other_bearers))
        chosen.append((choose_entity(tenant, case.name, division, bearer), moves))
    return chosen


def find_outdated_documents(tenant: TenantId, case: NameCase, uses: Sequence[NameUse], near_names: Near) -> list[str]:
    """Return the documents in which a name means another entity than it should.

    Args:
        case: the full name of the name, and what documents say about its bearers.
        uses: the newest use of the name in each document.
        near: the names near the name in these documents.
    """
    division = divide(bearers_of(case.uses, neighbours=case.others_near))
    outdated = []
    for use in uses:
        nearby = near_names.get(use.document_id, frozenset())
        bearer = Bearer(use.document_id, Description.parse(use.description), nearby, use.assigned_id)
        if use.assigned_id != choose_entity(tenant, case.name, division, bearer):
            outdated.append(use.document_id)
    return outdated


def has_several_bearers(tenant: TenantId, name: str, bearers: Iterable[Bearer]) -> bool:
    """Return whether documents have several bearers of a name now."""
    return any(bearer.entity_id != entity_id(tenant, name) for bearer in bearers)


def choose_entity(tenant: TenantId, name: str, division: Division, bearer: Bearer) -> str:
    """Return the id of the entity that a document means by a name."""
    shared_id = entity_id(tenant, name)
    if not division or (number := division.place(bearer)) is None:
        return shared_id
    group_ids = choose_ids(division, shared_id)
    new = stable_id("entity", tenant, name, division.groups[number][0].document_id)
    return group_ids[number] or (new if new not in group_ids else stable_id("entity", tenant, name, new))
