from __future__ import annotations

import pytest
from tests.unit.knowledge.conftest import MakeChunks

from agentic_rag_backend.knowledge.extraction.rules import RuleExtractor

TEXTS = {
    "de": (
        "Die Regierung in Berlin hat am Montag ein neues Gesetz beschlossen. Angela Merkel sagte, die Wirtschaft brauche mehr "
        "Sicherheit. Nach Angaben der Deutschen Bahn fahren die Züge wieder. Merkel lobte die Arbeit der SPD und der Polizei. "
        "Seit dem Sommer gibt es Streit zwischen der Stadt Frankfurt am Main und dem Land.",
        ["Angela Merkel", "Deutschen Bahn", "Merkel", "SPD", "Stadt Frankfurt am Main"],
    ),
    "fr": (
        "Le président Emmanuel Macron a rencontré Olaf Scholz à Paris. Après la réunion, ils ont parlé de la situation. Selon le "
        "journal Le Monde, les deux hommes sont d'accord. Cette décision est importante pour la France. Hier, Macron est parti.",
        ["Emmanuel Macron", "Olaf Scholz", "Paris", "Le Monde", "France", "Macron"],
    ),
    "es": (
        "El presidente Pedro Sánchez visitó Madrid con la ministra. Según el periódico, la reunión fue larga. Los ministros "
        "hablaron de la situación en Cataluña. También se habló de Barcelona. Cuando terminó, Sánchez volvió a su casa.",
        ["Pedro Sánchez", "Madrid", "Cataluña", "Barcelona", "Sánchez"],
    ),
    "it": (
        "Il presidente Sergio Mattarella ha incontrato il ministro a Roma. Secondo il giornale, la riunione è stata lunga. Dopo "
        "la riunione sono andati a Milano. Anche la Ferrari era presente. Questa è la decisione del governo.",
        ["Sergio Mattarella", "Roma", "Milano", "Ferrari"],
    ),
}


@pytest.mark.parametrize("language", TEXTS)
def test_function_words_and_german_nouns_are_no_names(chunks: MakeChunks, language: str) -> None:
    text, expected = TEXTS[language]
    (found,) = RuleExtractor().extract_document("", chunks(text))
    assert [each.name for each in found.mentions] == expected


def test_an_english_text_with_foreign_names_is_english(chunks: MakeChunks) -> None:
    text = (
        "The paper Die Zeit met Le Pen and Der Spiegel in Berlin. It was the first time that they agreed on all of it in public."
    )
    (found,) = RuleExtractor().extract_document("", chunks(text))
    assert {"Le Pen", "Berlin"} <= {each.name for each in found.mentions}
