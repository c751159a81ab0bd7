"""Names that change places in German, French and Spanish, and sentences in another order that are right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from sample_passages import passage_of

from agentic_rag_backend.answering.claims.reading import Claim
from agentic_rag_backend.answering.claims.verifiers.lexical import LexicalVerifier

ACTIVE = (
    "Anna Petersen besiegte Karl Meier bei der Wahl 2014. Karl Meier wurde danach Stellvertreter. "
    "Siemens verkaufte Osram an Ledvance."
)
PASSIVE = "Anna Petersen wurde 2014 von Karl Meier besiegt. Die Firma Osram wurde von Siemens an Ledvance verkauft."
PILOT = (
    "Der Lotse Jan Claasen rettete 1962 den Kapitän Hinrich Voss vor Borkum. Voss schenkte Claasen später eine Uhr aus Silber."
)
FRENCH = (
    "Anna Petersen a battu Karl Meier aux élections de 2014. Karl Meier est ensuite devenu adjoint. "
    "Siemens a vendu Osram à Ledvance."
)
SPANISH = (
    "Anna Petersen venció a Karl Meier en las elecciones de 2014. Karl Meier fue después su suplente. "
    "Siemens vendió Osram a Ledvance."
)
SWAPPED: Mapping[str, Sequence[str]] = {
    ACTIVE: (
        "Karl Meier besiegte Anna Petersen bei der Wahl 2014.",
        "Siemens verkaufte Ledvance an Osram.",
    ),
    PASSIVE: ("Karl Meier wurde 2014 von Anna Petersen besiegt.",),
    PILOT: ("Claasen schenkte Voss später eine Uhr aus Silber.",),
    FRENCH: (
        "Karl Meier a battu Anna Petersen aux élections de 2014.",
        "Osram a vendu Siemens à Ledvance.",
        "Anna Petersen est ensuite devenue adjointe.",
    ),
    SPANISH: (
        "Karl Meier venció a Anna Petersen en las elecciones de 2014.",
        "Osram vendió Siemens a Ledvance.",
        "Anna Petersen fue después su suplente.",
    ),
}
IN_ANOTHER_ORDER: Mapping[str, Sequence[str]] = {
    ACTIVE: (
        "Bei der Wahl 2014 besiegte Anna Petersen Karl Meier.",
        "2014 besiegte Anna Petersen bei der Wahl Karl Meier.",
        "Karl Meier wurde bei der Wahl 2014 von Anna Petersen besiegt.",
        "Petersen besiegte Meier bei der Wahl 2014.",
        "Osram wurde von Siemens an Ledvance verkauft.",
        "An Ledvance verkaufte Siemens Osram.",
        "Danach wurde Karl Meier Stellvertreter.",
    ),
    PASSIVE: (
        "Karl Meier besiegte Anna Petersen 2014.",
        "Die Firma Osram verkaufte Siemens an Ledvance.",
    ),
    PILOT: (
        "Später schenkte Voss Claasen eine Uhr aus Silber.",
        "Claasen bekam von Voss später eine Uhr aus Silber.",
        "Kapitän Hinrich Voss schenkte Claasen später eine Uhr.",
    ),
    FRENCH: (
        "Aux élections de 2014, Anna Petersen a battu Karl Meier.",
        "Karl Meier a été battu par Anna Petersen en 2014.",
        "Osram a été vendu à Ledvance par Siemens.",
    ),
    SPANISH: ("En las elecciones de 2014, Anna Petersen venció a Karl Meier.", "Después, Karl Meier fue su suplente."),
}


def verdicts(text: str, claims: Sequence[str]) -> dict[str, str | None]:
    held = passage_of(text)
    lexical = LexicalVerifier([held])
    return {claim: lexical.check(Claim(claim, (1,))).reason for claim in claims}


@pytest.mark.parametrize("text", SWAPPED, ids=["active", "passive", "pilot", "French", "Spanish"])
def test_two_names_that_change_places_are_roles(text: str) -> None:
    """The words around a name contain the other name, so that a full exchange had no words in common with the quote."""
    found = verdicts(text, SWAPPED[text])
    assert found == dict.fromkeys(SWAPPED[text], "roles")


@pytest.mark.parametrize("text", IN_ANOTHER_ORDER, ids=["active", "passive", "pilot", "French", "Spanish"])
def test_a_sentence_in_another_order_is_kept(text: str) -> None:
    found = verdicts(text, IN_ANOTHER_ORDER[text])
    assert found == dict.fromkeys(IN_ANOTHER_ORDER[text])
