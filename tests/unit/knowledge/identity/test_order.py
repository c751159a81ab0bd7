"""The entities of names do not depend on the order in which documents are written, changed and deleted."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st
from sampling import sampled

from agentic_rag_backend.domain.graph import Alias, EntityMention, Extraction, NameDescription
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.knowledge.resolution import Resolver
from agentic_rag_backend.stores.graph.sqlite import SqliteGraphStore

TENANT = TenantId("t_" + "a" * 32)
NAMES = ("Rowan Teller", "North Sea Institute", "Institute of the North Sea", "NSI", "Mara Voss", "Scarrow", "Hollin Bank")
ALIASES = (
    ("North Sea Institute", "NSI"),
    ("Institute of the North Sea", "NSI"),
    ("North Sea Institute", "Institute of the North Sea"),
)
DESCRIPTIONS = ("nurse", "oceanographer; female", "chair", "male", "")


@dataclass(frozen=True)
class Said:
    """What a document says."""

    names: tuple[str, ...]
    aliases: tuple[tuple[str, str], ...] = ()
    teller: str = ""

    @property
    def extraction(self) -> Extraction:
        """The extraction of its only chunk."""
        named = dict.fromkeys(
            (*self.names, *(name for pair in self.aliases for name in pair), *(["Rowan Teller"] * bool(self.teller)))
        )
        described = (NameDescription(name="Rowan Teller", text=self.teller),) if self.teller else ()
        return Extraction(
            chunk_id="c",
            mentions=tuple(EntityMention(name=name, type="other", start_char=0, end_char=0) for name in named),
            aliases=tuple(Alias(name=name, alias=alias, type="other") for name, alias in self.aliases),
            descriptions=described,
        )


DOCUMENTS = st.lists(
    st.builds(
        Said,
        names=st.lists(st.sampled_from(NAMES), max_size=4, unique=True).map(tuple),
        aliases=st.lists(st.sampled_from(ALIASES), max_size=1).map(tuple),
        teller=st.sampled_from(DESCRIPTIONS),
    ),
    min_size=2,
    max_size=7,
)


class Tenant:
    """Writes documents as commits do, and settles names as the relay does."""

    def __init__(self, store: SqliteGraphStore) -> None:
        self._store = store
        self._resolver = Resolver(store)
        self._said: dict[str, Said] = {}

    async def write(self, document: str, said: Said) -> None:
        self._said[document] = said
        await self._settle(await self._resolve(document))

    async def delete(self, document: str) -> None:
        unsettled = await self._resolver.identities.before_removal(TENANT, document)
        await self._store.delete_document(TENANT, document, up_to_version=1)
        await self._settle(unsettled)

    async def _resolve(self, document: str) -> frozenset[str]:
        knowledge = await self._resolver.resolve(TENANT, document, 1, "", [self._said[document].extraction])
        await self._store.write_document(TENANT, knowledge)
        return knowledge.unsettled

    async def _settle(self, names: frozenset[str] | set[str]) -> None:
        waiting = sorted(names)
        for _ in range(100):
            if not waiting:
                return
            for document in await self._resolver.identities.outdated(TENANT, waiting.pop(0)):
                await self._store.delete_document(TENANT, document, up_to_version=1)
                await self._resolve(document)
        raise AssertionError("names are never settled")

    async def entities(self) -> set[frozenset[tuple[str, str]]]:
        """Return the entities as sets of documents with names."""
        found: dict[str, set[tuple[str, str]]] = {}
        async for batch in self._store.all_names(TENANT):
            for naming in batch:
                found.setdefault(naming.entity_id, set()).add((naming.document_id, naming.name))
        return {frozenset(each) for each in found.values()}


async def result(documents: Sequence[tuple[str, Said]], deleted: Sequence[str] = ()) -> set[frozenset[tuple[str, str]]]:
    with tempfile.TemporaryDirectory() as folder:
        store = await SqliteGraphStore.open(Path(folder) / "graph.db")
        tenant = Tenant(store)
        for document, said in documents:
            await tenant.write(document, said)
        for document in deleted:
            await tenant.delete(document)
        found = await tenant.entities()
        await store.close()
        return found


FIRST_BARE = [Said(("NSI",)), Said((), (ALIASES[0],)), Said(("NSI",), (ALIASES[1],))]
THREE_BEARERS = [Said(("Scarrow",), teller="nurse"), Said((), teller="chair"), Said((), teller="oceanographer; female")]


@sampled(gate=15, deep=400)
@example(said=FIRST_BARE, order=[2, 1, 0])
@example(said=THREE_BEARERS, order=[1, 2, 0])
@given(said=DOCUMENTS, order=st.permutations(range(7)))
def test_the_order_of_documents_does_not_matter(said: list[Said], order: list[int]) -> None:
    documents = [(f"d{number}", each) for number, each in enumerate(said)]
    other = [documents[number] for number in order if number < len(documents)]

    async def compare() -> None:
        expected = await result(documents)
        assert await result(other) == expected
        # A document that was there for a while leaves no trace.
        gone = Said(NAMES, (ALIASES[1],), "oceanographer; female")
        assert await result([documents[0], ("gone", gone), *documents[1:]], ["gone"]) == expected

    asyncio.run(compare())
