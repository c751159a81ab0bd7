"""Ids of an archive in the tenant that receives it."""

from __future__ import annotations

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.knowledge.identity.decisions import entity_id
from agentic_rag_backend.transfer.identity import Identity

SOURCE, TARGET = TenantId("t_" + "a" * 32), TenantId("t_" + "b" * 32)


def test_an_entity_is_found_by_its_name_in_another_tenant() -> None:
    identity = Identity(SOURCE, TARGET)
    for name, type_ in (("Scarrow", "place"), ("5 May 2019", "date")):
        kind = type_ if type_ == "date" else ""
        source = entity_id(SOURCE, name.lower(), kind)
        identity.note_name(source, name, type_)
        assert identity.entity_id(source) == entity_id(TARGET, name.lower(), kind)


def test_one_of_several_bearers_keeps_an_id_of_its_own() -> None:
    identity = Identity(SOURCE, TARGET)
    identity.note_name("3ed7a903-4f19-54a0-bbf5-fa6051a1387e", "Rowan Teller", "person")
    moved = identity.entity_id("3ed7a903-4f19-54a0-bbf5-fa6051a1387e")
    assert moved not in (entity_id(TARGET, "rowan teller"), "3ed7a903-4f19-54a0-bbf5-fa6051a1387e")
    assert moved == Identity(SOURCE, TARGET).entity_id("3ed7a903-4f19-54a0-bbf5-fa6051a1387e")


def test_ids_stay_in_the_same_tenant() -> None:
    identity = Identity(SOURCE, SOURCE)
    source = entity_id(SOURCE, "scarrow")
    identity.note_name(source, "Scarrow", "place")
    assert identity.entity_id(source) == source
