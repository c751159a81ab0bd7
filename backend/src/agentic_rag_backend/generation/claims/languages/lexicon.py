"""Words of some languages that a claim check needs: denials, hedges, pronouns, number words and months.

A language without an entry has no such words here. Its claims are compared by their words, names and numbers alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agentic_rag_backend.generation.claims.languages.number_words import english_numbers, french_numbers, german_numbers
from agentic_rag_backend.language.languages import STOP_WORDS
from agentic_rag_backend.language.words import STOP_WORDS as ENGLISH_STOP_WORDS


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _numbers(text: str) -> dict[str, str]:
    """Return the digits of the words at each place, from 2 on; words of one number are joined by "/"."""
    return {word: str(number) for number, group in enumerate(text.split(), 2) for word in group.split("/")}


def _fixed(days: str, directions: str = "", ordinals: str = "") -> dict[str, str]:
    """Return marks of weekdays from Monday, of directions from north clockwise, and of ordinals from the first."""
    groups = {"day": days, "direction": directions, "ordinal": ordinals}
    return {
        word: f"{kind}:{number}"
        for kind, given in groups.items()
        for number, group in enumerate(given.split(), 1)
        for word in group.split("/")
    }


def _months(text: str) -> dict[str, str]:
    return {word: f"month:{number}" for number, group in enumerate(text.split(), 1) for word in group.split("/")}


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The words of a language, in lower case.

    ``only`` are words before or after a denial that take it back ("not only"). ``nouns`` says whether nouns have a capital.
    ``fixed`` are weekdays, directions and
    ordinals, which a claim may not change. ``endings`` are those of names and nouns. ``articles`` are words
    after which a capitalised word may be any noun. ``hundreds`` multiply the number word before them ("three hundred"), and
    ``joining`` may be between them and the rest. In scripts without spaces, ``denials`` and ``hedges`` may be anywhere.
    """

    stops: frozenset[str] = frozenset()
    denials: frozenset[str] = frozenset()
    hedges: frozenset[str] = frozenset()
    only: frozenset[str] = frozenset()
    pronouns: frozenset[str] = frozenset()
    numbers: Mapping[str, str] = field(default_factory=dict)
    hundreds: frozenset[str] = frozenset()
    joining: str = ""
    scales: Mapping[str, int] = field(default_factory=dict)
    months: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, str] = field(default_factory=dict)
    endings: frozenset[str] = frozenset()
    articles: frozenset[str] = frozenset()
    nouns: bool = False


_MILLION, _MILLIARD = 10**6, 10**9
LEXICONS: Mapping[str, Lexicon] = {
    "en": Lexicon(
        stops=STOP_WORDS["en"] | ENGLISH_STOP_WORDS,
        denials=_set(
            "not never no nor neither cannot none nobody nothing without isn't wasn't aren't weren't doesn't didn't don't hasn't "
            "haven't hadn't won't wouldn't can't couldn't shouldn't mustn't hardly barely scarcely failed refused unable "
            "forbidden prohibited"
        ),
        hedges=_set("may might could perhaps maybe possibly probably likely allegedly reportedly supposedly apparently planned"),
        only=_set("only just merely"),
        pronouns=_set("he she it they his her its their him them this these"),
        numbers=english_numbers(),
        hundreds=_set("hundred"),
        joining="and",
        scales={"thousand": 1000, "million": _MILLION, "billion": _MILLIARD},
        fixed=_fixed(
            "monday tuesday wednesday thursday friday saturday/saturdays sunday/sundays",
            "north/northern east/eastern south/southern west/western",
            "first second third fourth fifth",
        ),
        months=_months("january february march april may june july august september october november december"),
    ),
    "de": Lexicon(
        stops=STOP_WORDS["de"]
        | _set("ebenfalls dürfen darf müssen muss können konnte wird würde wurden sei worden gewesen ihres"),
        denials=_set(
            "nicht kein keine keinen keinem keiner keines nie niemals ohne weder nichts niemand nirgends keinerlei kaum verboten "
            "untersagt"
        ),
        hedges=_set(
            "vielleicht möglicherweise angeblich vermutlich wahrscheinlich womöglich eventuell wohl könnte könnten dürfte "
            "mutmaßlich soll sollen geplant plant plante"
        ),
        only=_set("nur bloß allein"),
        pronouns=_set("er sie es ihr ihre ihren ihrem ihrer sein seine seinen seinem seiner diese dieser dieses"),
        numbers={**german_numbers(), "halber": "0.5", "halben": "0.5"}
        | {f"{word}mal": number for word, number in _numbers("zwei drei vier fünf sechs sieben acht neun zehn").items()},
        scales={"tausend": 1000, "million": _MILLION, "millionen": _MILLION, "milliarde": _MILLIARD, "milliarden": _MILLIARD},
        fixed=_fixed(
            "montag/montags dienstag/dienstags mittwoch/mittwochs donnerstag/donnerstags freitag/freitags "
            "samstag/samstags/sonnabend sonntag/sonntags",
            "norden/nord/nördlich/nördliche/nördlichen osten/ost/östlich/östliche/östlichen süden/süd/südlich/südliche/südlichen "
            "westen/west/westlich/westliche/westlichen",
            "erste/ersten/erster/erstes/erstem zweite/zweiten/zweiter/zweites dritte/dritten/dritter/drittes "
            "vierte/vierten/vierter",
        ),
        months=_months("januar/jänner februar märz april mai juni juli august september oktober november dezember"),
        endings=_set("e en er es n ns s em ern in innen"),
        articles=_set(
            "der die das den dem des ein eine einen einem einer eines kein keine keinen keinem keiner keines im am zum zur vom "
            "beim ins ans mein meine unser unsere alle allen aller jede jeder jeden jedem viele vielen einige manche mehrere"
        ),
        nouns=True,
    ),
    "fr": Lexicon(
        stops=STOP_WORDS["fr"] | _set("également aujourd'hui aujourd hui cela celui celle doit doivent peut m t"),
        # "Ne" alone denies nothing ("ne … que"), and "plus" and "personne" need it.
        denials=_set("pas jamais aucun aucune rien sans ni nul nulle guère non interdit interdite interdits interdites"),
        hedges=_set("peut-être probablement éventuellement prétendument apparemment pourrait pourraient serait seraient prévoit"),
        only=_set("seulement uniquement"),
        pronouns=_set("il elle ils elles son sa ses leur leurs ce cette ces lui"),
        numbers={**french_numbers(), "demi": "0.5", "demie": "0.5"},
        hundreds=_set("cent cents"),
        scales={"mille": 1000, "million": _MILLION, "millions": _MILLION, "milliard": _MILLIARD, "milliards": _MILLIARD},
        fixed=_fixed(
            "lundi/lundis mardi/mardis mercredi/mercredis jeudi/jeudis vendredi/vendredis samedi/samedis dimanche/dimanches",
            "nord - sud ouest",
            "premier/première/premiers/premières deuxième/second/seconde troisième quatrième",
        ),
        months=_months("janvier février mars avril mai juin juillet août septembre octobre novembre décembre"),
    ),
    "es": Lexicon(
        stops=STOP_WORDS["es"],
        denials=_set("no nunca jamás ningún ninguno ninguna sin nada nadie tampoco ni"),
        hedges=_set("quizá quizás tal-vez probablemente posiblemente supuestamente podría podrían aparentemente"),
        only=_set("sólo solo solamente"),
        pronouns=_set("él ella ellos ellas su sus este esta estos estas lo"),
        numbers=_numbers("dos tres cuatro cinco seis siete ocho nueve diez once doce"),
        scales={"mil": 1000, "millón": _MILLION, "millones": _MILLION},
        fixed=_fixed(
            "lunes martes miércoles jueves viernes sábado domingo",
            "norte este sur oeste",
            "primer/primero/primera segundo/segunda",
        ),
        months=_months("enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre"),
    ),
    "it": Lexicon(
        stops=STOP_WORDS["it"],
        denials=_set("non mai nessun nessuno nessuna senza niente nulla né"),
        hedges=_set("forse probabilmente possibilmente presumibilmente potrebbe potrebbero apparentemente"),
        only=_set("solo soltanto solamente"),
        pronouns=_set("egli lui lei loro suo sua suoi sue questo questa"),
        numbers=_numbers("due tre quattro cinque sei sette otto nove dieci undici dodici"),
        scales={"mila": 1000, "milione": _MILLION, "milioni": _MILLION, "miliardo": _MILLIARD, "miliardi": _MILLIARD},
        fixed=_fixed(
            "lunedì martedì mercoledì giovedì venerdì sabato domenica",
            "nord - sud ovest",
            "primo/prima secondo/seconda terzo/terza",
        ),
        months=_months("gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre"),
    ),
    "pt": Lexicon(
        stops=STOP_WORDS["pt"],
        denials=_set("não nunca jamais nenhum nenhuma sem nada ninguém nem"),
        hedges=_set("talvez provavelmente possivelmente supostamente poderia poderiam"),
        only=_set("só somente apenas"),
        pronouns=_set("ele ela eles elas seu sua seus suas este esta"),
        numbers=_numbers("dois/duas três quatro cinco seis sete oito nove dez onze doze"),
        scales={"mil": 1000, "milhão": _MILLION, "milhões": _MILLION},
        fixed=_fixed("segunda-feira terça-feira quarta-feira quinta-feira sexta-feira sábado domingo", "norte leste sul oeste"),
        months=_months("janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro"),
    ),
    "nl": Lexicon(
        stops=STOP_WORDS["nl"],
        denials=_set("niet geen nooit zonder noch niemand niets nergens"),
        hedges=_set("misschien mogelijk waarschijnlijk vermoedelijk wellicht zou zouden naar-verluidt"),
        only=_set("alleen slechts"),
        pronouns=_set("hij zij ze het haar zijn hun dit deze"),
        numbers=_numbers("twee drie vier vijf zes zeven acht negen tien elf twaalf"),
        scales={"duizend": 1000, "miljoen": _MILLION, "miljard": _MILLIARD},
        fixed=_fixed(
            "maandag dinsdag woensdag donderdag vrijdag zaterdag zondag", "noorden oosten zuiden westen", "eerste tweede derde"
        ),
        months=_months("januari februari maart april mei juni juli augustus september oktober november december"),
    ),
    "sv": Lexicon(
        stops=STOP_WORDS["sv"],
        denials=_set("inte ej icke aldrig ingen inget inga utan ingenting"),
        hedges=_set("kanske möjligen troligen sannolikt förmodligen eventuellt skulle"),
        only=_set("bara endast"),
        pronouns=_set("han hon den det de hans hennes dess deras"),
        numbers=_numbers("två tre fyra fem sex sju åtta nio tio elva tolv"),
        scales={"tusen": 1000, "miljon": _MILLION, "miljoner": _MILLION, "miljard": _MILLIARD},
        fixed=_fixed("måndag tisdag onsdag torsdag fredag lördag söndag", "norr öster söder väster", "första andra tredje"),
        months=_months("januari februari mars april maj juni juli augusti september oktober november december"),
        endings=_set("s"),
    ),
    "pl": Lexicon(
        stops=STOP_WORDS["pl"],
        denials=_set("nie nigdy bez żaden żadna żadne nikt nic ani"),
        hedges=_set("może prawdopodobnie podobno rzekomo przypuszczalnie"),
        only=_set("tylko jedynie"),
        pronouns=_set("on ona ono oni jego jej ich ten ta"),
        endings=_set("a y i ę ą u ie ii em owi ów om ach ami ego emu iem"),
    ),
    "zh": Lexicon(
        stops=frozenset("的了在是和与於于也就都而及着之这那该有被把由从從到对對为為以他她它们們给給向将將过過一座共曾已"),
        denials=_set("不 没 沒 未 无 無 并非 並非 勿 从未 禁止 停止"),
        hedges=_set("可能 也许 也許 或许 或許 据说 據說 大概 计划 計劃 预计 預計 据称"),
        only=_set(
            "不仅 不僅 不但 不只 不断 不斷 不久 不过 不過 不少 不同 不得不 未来 未來 无线 無線 无论 無論 没收 沉没 淹没 不管 不论"
        ),
        pronouns=frozenset("他她它该此这"),
    ),
    "ja": Lexicon(
        stops=frozenset("のはがをにでとともやへてたしいるすれまだりなかっさ"),
        denials=_set("ない ません なかった ざる せず 停止"),
        hedges=_set("かもしれ だろう らしい とされ 可能性"),
        pronouns=frozenset("彼此"),
    ),
    "ko": Lexicon(denials=_set("않 못 없 아니"), hedges=_set("아마 것으로 수도")),
}
"""Lexicons by ISO 639-1 code."""
NONE = Lexicon()
PARTICLES: Mapping[str, frozenset[str]] = {"zh": frozenset("把给給被由向于於在从從到对對与與和比")}
"""Function characters beside which a Chinese sentence has the names of its agents, objects and places."""
TRANSLITERATION = frozenset(
    "阿埃艾安奥巴贝比彼宾博布查楚茨达丹德登迪蒂杜多厄恩尔法菲费弗福盖戈格古哈海汉赫霍基吉加杰金卡凯坎科克肯孔库奎昆拉莱兰朗劳勒雷里黎"
    "利莉列林琳卢鲁伦罗洛吕马玛迈曼梅米密蒙莫姆穆纳娜奈南尼妮努诺欧帕潘庞佩彭皮平蒲普奇乔切琴丘让热日瑞萨塞桑森莎沙尚舍什圣施史斯丝苏索"
    "塔泰坦汤特腾提图托瓦万威维魏温翁沃乌伍西希夏谢辛欣休许雅亚扬耶叶伊易因英尤约泽扎詹珍芝朱兹佐"
)
"""Characters with which Chinese writes foreign names."""


QUESTION_WORDS: Mapping[str, frozenset[str]] = {
    "de": _set(
        "wer wem wen wessen was wann wo wohin woher wie warum weshalb wieso welche welcher welches welchen welchem viele viel"
    ),
    "en": _set("who whom whose what which when where why how many much long does do did"),
    "fr": _set("qui que qu quoi quand où comment combien pourquoi quel quelle quels quelles est-ce t il elle"),
    "zh": frozenset("谁什么么何哪几多少怎样呢吗嘛时候"),
    "ja": frozenset("誰何どこいつか"),
}
"""Forms of words with which questions ask."""


TRANSLATED = _set(
    "mayor president minister professor doctor director king queen prince princess count duke saint river lake mount city town "
    "university institute company museum street bridge church hospital school harbour port island sea ocean english german "
    "french chinese european north south east west union republic kingdom state university mr mrs ms dr sir"
)
"""Forms of English words that have a capital in names and titles, and that other languages translate."""


def lexicon_of(language: str | None) -> Lexicon:
    """Return the lexicon of a language, by its ISO 639-1 code; an empty one for others."""
    return LEXICONS.get((language or "").split("-")[0], NONE)
