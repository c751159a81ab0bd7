from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.language.languages import (
    READ_CHARACTERS,
    STOP_WORDS,
    foreign_script_of,
    language_in,
    language_near,
    language_of,
    language_of_passage,
    language_of_words,
    likely_languages,
)

TEXTS = {
    "de": "Die Regierung in Berlin hat am Montag ein neues Gesetz beschlossen. "
    "Nach dem langen Streit fahren die Züge wieder, und das ist auch gut so.",
    "en": "The government in Berlin passed a law on Monday, and the trains are running again after a long dispute about it.",
    "es": "El presidente visitó la ciudad con la ministra. "
    "Según el periódico, los ministros hablaron de la situación en el país y de las elecciones.",
    "fr": "Le président a rencontré son homologue dans la ville. "
    "Après la réunion, ils ont parlé de la situation et de la sécurité du pays.",
    "it": "Il presidente ha incontrato il ministro. "
    "Secondo il giornale, la riunione è stata lunga e non è la prima di questo anno nella città.",
    "nl": "De minister is op maandag naar de stad gegaan. Volgens de krant was het een lang gesprek over de boeren en hun land.",
    "pl": "Premier był w mieście na spotkaniu. "
    "Według gazety było ono długie i nie przyniosło rozwiązania, które jest ważne dla kraju i dla nas.",
    "pt": "O presidente visitou a cidade com o ministro. "
    "Segundo o jornal, a reunião foi longa e não houve acordo entre as partes do governo.",
    "sv": "Ministern har varit i staden. Enligt tidningen var det ett långt möte som inte gav något, och det är en viktig fråga.",
}


@pytest.mark.parametrize("language", STOP_WORDS)
def test_languages_are_told_apart(language: str) -> None:
    assert language_of(TEXTS[language]) == language
    assert foreign_script_of(TEXTS[language]) is None


def test_only_the_beginning_of_a_text_shows_its_language() -> None:
    german = "Das ist nicht der Betrieb, den wir von der Stadt haben."
    assert language_of(german) == "de"
    assert language_of("1, " * READ_CHARACTERS + german) is None


def test_short_and_mixed_texts_have_no_language() -> None:
    for text in ("", "Die Regierung", "x " * 100, "Oslo Bergen " * 20, f"{TEXTS['de']} {TEXTS['fr']}"):
        assert language_of(text) is None, text


def test_scripts_other_than_latin_are_named() -> None:
    for text, script in [
        ("Правительство Москвы приняло новый закон.", "Cyrillic"),
        ("Η κυβέρνηση στην Αθήνα ψήφισε νέο νόμο.", "Greek"),
        ("政府在北京通过了一项新的法律，这是一个重要的决定，火车又开始运行了。", "Han"),
        ("وافقت الحكومة على قانون جديد في المدينة", "Arabic"),
        ("The word Москва is Russian, and this sentence is English.", None),
        ("Москва", None),
        ("Größe, naïve, Łódź, œuvre, façade, Ærø and Þór are Latin.", None),
    ]:
        assert foreign_script_of(text) == script


@given(words=st.lists(st.sampled_from(["the", "of", "der", "und", "le", "la", "Oslo", "x"]), max_size=60))
def test_the_order_of_words_does_not_matter(words: list[str]) -> None:
    assert language_of_words(words) == language_of_words(sorted(words))


def test_short_texts_and_scripts_of_one_language() -> None:
    for text, language in [
        ("Am Hafen stehen sieben Häuser. Sie gehören seit dem Brand der Genossenschaft.", "de"),
        ("Sept maisons de brique bordent le port. Elles appartiennent à une coopérative.", "fr"),
        ("The houses at the harbour belong to the city.", "en"),
        ("Die Hard", None),
        ("Paris 2024", None),
        ("| Quay | Berth | Tenant |\n| North Quay | N1 | Crake |\n| South Quay | S1 | Arden |\n| South Quay | S2 | Fenn |", None),
        ("北角的旧灯塔去年秋天由两名工匠重新粉刷，因为雨水冲掉了油漆。", "zh"),
        ("教堂的钟裂开了，将在南方的一家铸造厂焊接。", "zh"),
        ("渡轮停运。", None),
        ("Die 渡轮 heißt Nordstern und fährt", None),
        ("港は冬に閉まります。", "ja"),
        ("북쪽 등대를 칠했다.", "ko"),
        ("北の岬の古い灯台は昨年の秋に二人の職人が塗り直しました。", "ja"),
        ("지난 가을에 두 명의 장인이 북쪽 곶의 오래된 등대를 다시 칠했습니다.", "ko"),
        ("Прошлой осенью два мастера покрасили старый маяк на мысе.", None),
    ]:
        assert language_of(text) == language


def test_function_words_show_the_languages_of_a_query() -> None:
    assert likely_languages("Wem gehört das Haus und der Hafen in der Stadt?").codes == ("de",)
    assert likely_languages("Wem gehört das Haus und der Hafen in der Stadt?").clear
    assert not likely_languages("die hard movie").clear
    assert likely_languages("Häuser Hafen").codes == ()


def test_english_with_words_of_other_languages_is_english() -> None:
    for text in [
        "Do we offer refunds?",
        "Do we need to renew visas in January?",
        "So do we get bonuses?",
        "We ship to Canada?",
        "Was Napoleon a man?",
        "Was war declared in 1939?",
        "Edith Farnsworth sued Ludwig van der Rohe over unpaid fees.",
        "Clay won over Van Buren in 1836.",
        "So Nokia acquired Microsoft in 2013.",
    ]:
        assert language_near(text, "en", least=2) == "en"
        assert language_near(text, None, least=2) is None


@pytest.mark.parametrize(
    "text", ["Do we offer refunds?", "In what year was Kaffa founded?", "What did Japan lift in March 1974?"]
)
@pytest.mark.parametrize("near", ["de", "fr", "es"])
def test_an_english_question_about_a_passage_in_another_language_is_english(text: str, near: str) -> None:
    assert language_near(text, near, least=2) == "en"


def test_a_question_about_an_english_passage_is_in_its_own_language() -> None:
    for text, code in [
        ("Wer war Otto?", "de"),
        ("Wie hoch ist der Turm?", "de"),
        ("Qui est Jean ?", "fr"),
        ("Combien coûte le billet ?", "fr"),
        ("Quién es el alcalde?", "es"),
        ("谁创立了Kaffa?", "zh"),
    ]:
        assert language_near(text, "en", least=2) == code


def test_names_do_not_give_a_passage_a_language() -> None:
    for text in [
        "Offices: Los Angeles, La Jolla, El Paso, Las Vegas.",
        "Board: Jan van den Berg, Dirk de Graaf, Hans van Aken, Rogier van der Weyden.",
        "So ein Millionär hat's schwer is a 1958 Austrian film directed by Géza von Cziffra.",
    ]:
        assert language_of_passage(text) in (None, "en")


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ("de", "de"),
        ("de-AT", "de"),
        ("en_US", "en"),
        ("eng", "en"),
        ("German", "de"),
        ("zh-Hans", "zh"),
        ("klingon", ""),
        (7, ""),
    ],
)
def test_a_language_of_metadata_is_a_code_or_nothing(given: object, code: str) -> None:
    assert language_in({"language": given}) == code
