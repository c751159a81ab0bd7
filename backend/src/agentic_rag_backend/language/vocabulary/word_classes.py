"""English word classes, in the normalised forms of `words`: verbs, nouns that distinguish no subject, and opening words.

Words that make an event or a thing another one, such as "another flood" or "rebuilt in 1950".

Pairs of words with opposite meanings.
"""

from __future__ import annotations

from agentic_rag_backend.language.words import STOP_WORDS, all_forms, comparable


def _list_forms(text: str, *, endings: tuple[str, ...] = ()) -> frozenset[str]:
    """Return the normalised forms of words, also with each of the ``endings``: short words keep theirs ("pay" and "pays")."""
    return frozenset(comparable(f"{word}{ending}") for word in text.split() for ending in ("", *endings))


STARTERS = _list_forms(
    """
    a an the this that these those his her its their our my your some any each every no it them him us me you
    """
)
"""Words that begin an object, so that a word in -ing before them is a verb."""
OPENERS = STARTERS | _list_forms(
    """
    of in on at by for from with without about into between against over under through during across near towards toward
       per via among within beyond behind beside besides despite along around another one two three four five six
    seven eight nine ten eleven twelve twenty thirty forty fifty hundred thousand million several many few more most other

    """
) - _list_forms(
    """
    it them him us me you
    """
)
"""Words that a noun phrase follows."""

LEADING_ADJECTIVES = _list_forms(
    """
    new old first second third fourth last next whole same own other further several full good great little small big large
    long short young early late high low free certain different various able main major important real true only single
    general common similar possible necessary available recent current present former final total entire complete right
    wrong better best worse worst least half extra huge tiny nice fine clear sure easy hard open close ready useful usual
    normal simple special particular specific interesting amazing incredible awesome cool super pretty really kind fantastic
    wonderful excited happy glad bad quick fast slow top many much more most less few later earlier sort such chief senior
    junior latest greatest biggest largest smallest highest lowest longest oldest youngest favourite favorite enough
    previous following original initial additional numerous multiple particularly obvious average double twin joint deep far
    near left north south east west northern southern eastern western annual monthly weekly daily proper beautiful sad
    strong weak broad wide narrow heavy light dark bright warm cold dry wet thick thin
    """
)
"""Adjectives that are left out at the beginning of a phrase and that are no subject by themselves."""

ADVERBS = _list_forms(
    """
    since ever well else still afterwards whoever whatever whichever whenever wherever twice once longer again always often
    never sometimes usually almost already soon yet even just quite rather perhaps maybe instead together apart away forward
    backward indeed therefore thus hence otherwise meanwhile nevertheless nonetheless however although though unless until
    while whereas whether if when where why how who whom whose which that's ashore aboard abroad aside alone altogether
    anyway anytime somehow somewhere anywhere everywhere nowhere here there now then today tomorrow yesterday tonight too very so
    eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy
    eighty ninety fourth fifth sixth seventh eighth ninth tenth sometime later earlier basically literally actually super
    """
)
"""Words that end a noun phrase: adverbs, conjunctions and number words."""

GENERIC_NOUNS = _list_forms(
    """
    thing things way ways time times day days week weeks month months year years hour hours minute minutes moment today
    tomorrow yesterday morning afternoon evening night nights spring summer autumn winter season seasons century decade
    people person man men woman women child children boy girl guy guys folks friend friends anybody everybody somebody
    nobody anyone everyone someone anything everything something nothing place places part parts side sides end ends
    beginning middle hand hands head face eye eyes number numbers amount lot lots bit bits piece pieces kind kinds sort
    sorts type types form forms case cases example examples instance fact facts point points reason reasons idea ideas
    question questions answer answers problem problems issue issues matter matters subject topic topics word words name
    names line lines page pages letter sentence paragraph section chapter title item items list row rows table tables figure
    figures content contents class classes default defaults difference differences duty duties level levels area areas group
    groups set sets result results effect effects cause causes use uses user users sense term terms order orders rule rules
    condition conditions situation state states position role roles job jobs work works life lives world home house room
    rooms door wall floor corner top bottom front back centre center rest remainder half quarter third couple pair dozen
    hundred thousand million billion percent share size length width height depth distance weight speed rate value values
    price prices cost costs degree degrees extent range step steps stage stages start stop chance chances choice choices
    change changes need needs hope hopes wish wishes view views opinion opinions thought thoughts feeling feelings story
    stories news note notes detail details information mention account accounts description explanation version copy copies
    sample samples test tests try attempt attempts success failure loss gain help support care attention interest concern
    concerns mind heart body voice sound look sight touch talk speech conversation discussion meeting meetings visit visits
    call calls move moves turn turns run runs walk drive ride trip trips journey deal deals plenty enough none whole total
    average maximum minimum addition majority minority member members member's colleague colleagues mr mrs ms dr sir madam
    mister hello hi thanks thank please okay yeah yes no gosh wow god hell stuff guess while ago january february march
    april may june july august september october november december monday tuesday wednesday thursday friday saturday sunday
    date dates age ages birth death past future present history reference references link links source sources transcript
    episode episodes podcast podcasts host guest guests listener listeners show audience intro ending introduction overview
    summary conclusion abstract appendix photo picture image caption footnote north south east west left right behind ahead
    hundreds thousands millions father mother brother sister son daughter wife husband uncle aunt parent parents family kid
    kids baby grandfather grandmother cousin nephew niece mile miles metre metres meter meters kilometre kilometres
    kilometer kilometers foot feet inch inches ton tons tonne tonnes pound pounds dollar dollars euro euros crown crowns
    penny cent cents gram grams kilogram kilograms acre acres knot knots each other others another latter former same self
    myself yourself himself herself itself themselves ourselves bunch arm leg edge chunk aspect aspects element elements
    factor factors feature features manner means mean approach course process purpose goal goals aim aims sake ground
    grounds basis background
    """,
    endings=(
        """
    s
    """,
    ),
)
"""Nouns that may occur in every document."""

AMBIGUOUS = _list_forms(
    """
    land plan design report study test ring spring ground light shot row cost record share support state point change file
    form sign sting act count measure play walk ride drive fight dance cook watch offer promise claim cover reach note drop
    fall cut lead close cross wind address attempt
    """,
    endings=("s", "es", "ed", "ing"),
)
"""Forms that are nouns as often as verbs."""
VERBS = (
    _list_forms(
        """
    say says said tell told ask asked answer reply replied speak spoke spoken talk call called name named write wrote
    written read see saw seen look hear heard feel felt think thought know knew known believe remember forget forgot
    forgotten learn understand understood mean meant want wish hope need like love hate prefer seem appear become became
    begin began begun start stop end finish continue go went gone going come came coming leave left arrive return bring
    brought take took taken carry give gave given get got put set keep kept hold held let make made making do did done use
    used try work worked help show shown find found lose lost win won buy bought sell sold pay paid spend spent cost send
    sent receive meet met join follow lead led grow grew grown build built break broke broken cut fall fell fallen rise rose
    risen run ran stand stood sit sat lie lay lain live lived stay die died kill bear bore born wear wore worn draw drew
    drawn drive drove driven ride rode fly flew flown throw threw thrown catch caught fight fought choose chose chosen agree
    refer relate differ distract warn ought worry deliver decide allow accept refuse add include contain consist depend
    belong exist happen occur explain describe discuss mention announce report recall remind suggest propose offer promise
    expect consider suppose imagine realise realize recognise recognize notice admit deny claim argue insist state note
    point provide produce create develop design apply lend lent borrow own share serve open close pass stands makes takes
    gives comes goes keeps holds asks gets puts lets pulls push pulled pull turn turned move moved change changed increase
    reduce improve remain require involve affect cause prevent protect save support teach taught study play sing sang sung
    dance eat ate eaten drink drank sleep slept wake woke wash cook clean wait watch walk laughed laugh cry smile nod shake
    shook shaken lift drop fill cover reach touch enter climb jump escape hide hid hidden appoint elect resign retire
    approve reject sign file publish print record measure count weigh calculate compare check test prove ensure enable
    manage handle treat cure hurt suffer survive act react respond address attend gather collect arrange prepare plan
    organise organize establish form sits land landed cross crossed sail sailed row tie ties tend tends lies lying fits fit
    shut quit might could would should may must can shall will cannot can't won't wouldn't couldn't shouldn't isn't aren't
    wasn't weren't hasn't haven't hadn't i'm i've i'd i'll you're you've you'd you'll we're we've we'd we'll they're they've
    they'd they'll he's she's it'll that'll there's here's what's who's gonna wanna gotta does doing being been having had
    has have was were is are be am talks looks works helps starts begins ends seems enjoy thank congratulate bind bound swim
    swam swum sink sank sunk spring sprang strike struck steal stole stolen shoot shot sweep swept tear tore torn spread
    split hit beat beaten bend bent bite blow blew blown dig dug feed fed flee fled forgive freeze froze frozen grind ground
    hang hung kneel knit leap leapt light lit rid ring rang rung seek sought shed shine shone shrink shrank slide slid spin
    spun stick stuck sting strive swear swore sworn swell tread weave wove weep wept wind wound
    """,
        endings=(
            """
    s
    """,
            "es",
            "ed",
            "ing",
        ),
    )
    - AMBIGUOUS
    - OPENERS
    - STOP_WORDS
)
"""Forms of verbs that are rarely nouns."""
FINITE = _list_forms(
    """
    is are was were be am has have had does did do can could may might must shall should will would cannot isn't aren't
    wasn't weren't hasn't haven't hadn't don't doesn't didn't can't couldn't won't wouldn't shouldn't
    """
)
"""Auxiliary verbs."""


DISTINGUISHING = all_forms(
    "again another second third fourth next previous former last old new original other both also later earlier reopened rebuilt "
    "re-opened re-built refounded renovated restored reelected planned expected proposed intended should will would forecast "
    "estimated target until since north south east west northern southern eastern western upper lower inner outer main"
)
"""Words that make an event or a thing another one: "another flood", "rebuilt in 1950", "will open"."""
BESIDE = 3
"""Words between such a word and the event or thing, at most. Farther away it is about something else."""


_PAIRS = """
increase decrease; before after; first last; north south; east west; northern southern; eastern western; north east; more less;
more fewer; most least; most fewest; largest smallest; larger smaller; highest lowest; higher lower; high low; large small;
big small; best worst; better worse; oldest youngest; older younger; old new; win lose; won lost; begin end; began ended;
start end; start stop; started finished; open close; opened closed; opened demolished; accept reject; accepted rejected;
accept decline; accepted declined; like dislike; support oppose; supported opposed; import export; always never; major minor;
majority minority; maximum minimum; strong weak; strongest weakest; allow prevent; allow forbid; legal illegal; male female;
men women; mother father; son daughter; sons daughters; brother sister; king queen; husband wife; early late; earliest latest;
long short; longest shortest; fast slow; fastest slowest; hot cold; inside outside; above below; upper lower; public private;
possible impossible; true false; agree disagree; agreed disagreed; easy difficult; easier harder; simple complex;
positive negative; rise fall; rose fell; gain lose; gained lost; attack defend; attacked defended; enter leave; entered left;
arrive leave; arrived left; include exclude; included excluded; add remove; added removed; create destroy; created destroyed;
build destroy; built destroyed; built demolished; buy sell; bought sold; love hate; friend enemy; victory defeat;
known unknown; common rare; common uncommon; natural artificial; internal external; rich poor; dry wet; right left; light dark;
light heavy; full empty; success failure; succeed fail; succeeded failed; ancient modern; domestic foreign; urban rural;
odd even; finite infinite; direct indirect; active passive; formal informal; founded abolished; founded dissolved;
founded cancelled; made cancelled; signed cancelled; granted refused; approved rejected; approved refused; hired dismissed;
appointed dismissed; joined left; lent borrowed; lend borrow; teach learn; taught learned; parent child; employer employee
"""


def _load_opposites() -> dict[str, frozenset[str]]:
    opposites: dict[str, set[str]] = {}
    for pair in _PAIRS.replace("\n", " ").split(";"):
        first_form, opposite_form = (comparable(word) for word in pair.split())
        opposites.setdefault(first_form, set()).add(opposite_form)
        opposites.setdefault(opposite_form, set()).add(first_form)
    return {form: frozenset(opposite_forms) for form, opposite_forms in opposites.items()}


OPPOSITES = _load_opposites()
"""The opposites of each form."""
