"""Recognises questions that ask for an overview: of all documents, or of one document that they name.

Every word of such a question is in the vocabulary below, apart from the title of the document. A question with any other word has
a subject, so it is no such question. The vocabulary is English, German, French and Spanish.
"""

from __future__ import annotations

import re
import unicodedata

_WORD = re.compile(r"[^\W_]+")
_WORD_OR_FILE = re.compile(r"[\w-]{1,100}\.[^\W_]{1,5}(?![\w.])|[^\W_]+")
"""A word or the name of a file, whose parts are no vocabulary: "report.pdf"."""
_MAX_WORDS, _MAX_CHARACTERS = 40, 400
"""A longer text has a subject."""


def _split_words(text: str) -> frozenset[str]:
    return frozenset(map(_fold, text.split()))


def _fold(word: str) -> str:
    """Return a word in small letters without accents."""
    return "".join(letter for letter in unicodedata.normalize("NFKD", word.casefold()) if not unicodedata.combining(letter))


_THEMES = _split_words(
    "theme themes topic topics overview summary summaries summarise summarize summarised summarized outline gist tour "
    "thema themen hauptthema hauptthemen themenbereiche überblick übersicht zusammenfassung zusammenfassen fasse fasst thème "
    "thèmes sujets aperçu résumé résume résumer résumez synthèse tema temas tópicos resumen resume resumir resúmeme "
    "panorama visión"
)
"""Words that ask for an overview by themselves."""
_SAYING = _split_words(
    "about cover covers covered discuss discusses discussed describe describes say says speak talk deal deals contain contains "
    "worum handeln handelt geht behandeln behandelt sagen sagt steht stehen beschreibe parle parlent agit traite traitent "
    "aborde abordent contient contiennent disent dit décris trata tratan abarca abarcan habla hablan contiene contienen dice "
    "dicen"
)
"""Words that ask for an overview together with documents: "What is this document about?"."""
_OF_A_NAME = _split_words(
    "about cover covers contain contains describe describes worum handelt beschreibt parle traite contient trata contiene"
)
"""Words that ask for an overview together with the title of a document: "What is Tides about?"."""
_DOCUMENTS = _split_words(
    "document documents text texts file files source sources collection corpus corpora dataset library archive material "
    "materials page pages article articles paper papers report reports content contents everything dokument dokumente "
    "dokumenten dokuments texte texten datei dateien sammlung quellen unterlagen bestand inhalt documento documentos texto "
    "textos archivo archivos colección biblioteca fuentes contenido fichier fichiers bibliothèque contenu base"
)
_REST = _split_words(
    "a an the of in on for from with and or all these this those them it is are was what which do does did here there "
    "available me us you your my our can could would will please give tell show list name provide write brief short quick "
    "that together taken stored uploaded been has mainly mostly primarily basically largely "
    "general main central key major important principal chief common recurring frequent overall broad whole entire subject "
    "subjects sentences sentence words few i want need have has be knowledge welche welches welchen sind ist die der das den "
    "dem des dieser dieses diesem diese diesen ein eine einen einem aller alle allen gib gibt geben mir uns es bitte zusammen "
    "über im von zu kurz kurze kurzen kurzer wichtigsten zentrale zentralen nenne nenn liste und davon darin um ganze gesamte "
    "gesamten kannst du quels quelles quel quelle sont est les le la l de d ces ce cet cette un une tous tout toute toutes "
    "donne donner donnez moi nous fais fait faire principaux principales principale en sur quoi que qu et il s dans ensemble "
    "cuáles cuál son los las el lo este esta estos estas ese esos una todos todas todo toda dame dar da haz hazme qué del "
    "sobre y se breve nos puedes"
)
_THIS = _split_words("this the dies dieses diese das ce cet cette le este esta el")
_VOCABULARY = _THEMES | _SAYING | _DOCUMENTS | _REST


def asks_about_everything(question: str) -> bool:
    """Return whether a question asks for an overview of the documents and names no subject."""
    question_words = [_fold(match[0]) for match in _WORD.finditer(question[:_MAX_CHARACTERS])]
    return len(question) < _MAX_CHARACTERS and _asks_for_overview(question_words) and all(map(_is_known, question_words))


def find_named_document(question: str) -> str | None:
    """Return the words that may be the title of the document that the question wants an overview of, or None.

    The rest of the question must ask for an overview: "What is Tides about?". The caller looks for a document with this title.
    Compare it with `strip_vocabulary` of titles: "the" or "report" at the beginning or the end of a title is missing.
    """
    title = strip_vocabulary(question)
    if not title:
        return None
    start = question.find(title)
    question_words = [_fold(match[0]) for match in _WORD.finditer(f"{question[:start]} {question[start + len(title) :]}")]
    return title if _asks_for_overview(question_words) or not _OF_A_NAME.isdisjoint(question_words) else None


_MENTIONING = re.compile(
    r"\W*(?:(?:which|what) (?:documents?|files?|sources?|texts?|reports?) (?:mentions?|names?|discuss(?:es)?|covers?|describes?|"
    r"contains?|(?:is|are) about|(?:talk|speak|say something)s? about|deals? with|refers? to) (?P<en>.+?)"
    r"|in (?:which|what) (?:documents?|files?|sources?|texts?|reports?) (?:is|are|does|do) (?P<of>.+?) "
    r"(?:mentioned|named|discussed|described|appear|occur)"
    r"|(?:list|find|show)(?: me)?(?: all)?(?: the)? (?:documents|files|sources|texts|reports) "
    r"(?:about|that mention|mentioning|which mention) (?P<list>.+?)"
    r"|(?:welche[sn]?) (?:dokumente?|dateien?|texte?|quellen?) "
    r"(?:erwähn(?:t|en)|nenn(?:t|en)|behandel[nt]|handel[nt] von) (?P<de>.+?)"
    r"|quels? (?:documents?|fichiers?|textes?) (?:mentionnent|mentionne|parlent de|parle de|traitent de) (?P<fr>.+?)"
    r"|¿?qué (?:documentos?|archivos?|textos?) (?:mencionan?|hablan? de|tratan? de) (?P<es>.+?))\W*",
    re.IGNORECASE,
)


def find_mentioned(question: str) -> str | None:
    """Return the subject of a question for the documents that mention it: "Which documents mention the eel passage?"."""
    match = _MENTIONING.fullmatch(question[:_MAX_CHARACTERS].strip())
    return next(filter(None, match.groups()), "").strip(" \"'“”„«»‘’") or None if match else None


def describes_itself(text: str) -> bool:
    """Return whether a sentence begins with the document as its subject: "This page explains …"."""
    first_words = [_fold(match[0]) for match in _WORD.finditer(text[:60])][:2]
    return len(first_words) > 1 and first_words[0] in _THIS and first_words[1] in _DOCUMENTS


def strip_vocabulary(text: str) -> str:
    """Return ``text`` without the words at both ends that questions for an overview consist of. Empty if no other is left."""
    matches = list(_WORD_OR_FILE.finditer(text[:_MAX_CHARACTERS]))
    subjects = [number for number, match in enumerate(matches) if not _is_known(_fold(match[0]))]
    return text[matches[subjects[0]].start() : matches[subjects[-1]].end()] if subjects else ""


def _is_known(word: str) -> bool:
    return word in _VOCABULARY or word.isdecimal()


def _asks_for_overview(question_words: list[str]) -> bool:
    terms = set(question_words)
    if not 0 < len(question_words) <= _MAX_WORDS:
        return False
    return not terms.isdisjoint(_THEMES) or not (terms.isdisjoint(_SAYING) or terms.isdisjoint(_DOCUMENTS))
