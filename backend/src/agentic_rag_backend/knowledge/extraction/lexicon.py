"""Closed word classes of English that the rules read: function words, titles, head nouns, months, countries.

They are cues of grammar and of word formation, not lists of names: no person, company or town is in them.
"""

from __future__ import annotations


def word_set(text: str) -> frozenset[str]:
    """Return the words of ``text``, which is separated by spaces: the form in which the classes are written down."""
    return frozenset(text.split())


FUNCTION_WORDS = word_set(
    """
    a an the this that these those some any each every all both either neither no none another such other others own same several
    many few much more most less least enough i me my mine myself you your yours yourself he him his himself she her hers
    herself it its itself we us our ours ourselves they them their theirs themselves one ones someone anyone everyone nobody
    somebody anybody everybody something anything everything nothing who whom whose which what whatever whoever whichever
    where when why how wherever whenever however and or but nor so yet for because although though unless until while
    whereas whether if than then as since once lest of in on at by to from with without within into onto upon over under
    above below between among amongst through throughout during before after about against along across behind beside
    besides beyond despite down except inside near off opposite out outside past per round toward towards underneath unlike
    like up via versus vs is are was were be been being am has have had having do does did doing done can could may might
    must shall should will would ought not never ever also too very quite rather just only even still already again almost
    always often sometimes usually here there now today tomorrow yesterday thus hence therefore moreover furthermore
    meanwhile nevertheless nonetheless otherwise instead indeed perhaps maybe please yes let lets get gets got make makes
    made go goes went come comes came take takes took see sees saw give gives gave given known called named based born two
    three four five six seven eight nine ten eleven twelve twenty thirty forty fifty hundred thousand million first second
    third fourth fifth last next later earlier early late former latter previous previously originally initially finally
    eventually subsequently additionally currently recently typically generally similarly according due thanks following
    including included includes etc eg ie cf compared together apart aside ago around because plus minus amid amidst
    alongside notwithstanding regarding concerning considering
    """
)
"""Words that are no name by themselves however they are spelled at the start of a sentence."""

COMMON_INITIALS = word_set(
    """
    call visit use run see add set click select ignore read write create check try keep ensure install start stop people men
    women children man woman girl boy members critics fans students workers scientists researchers historians scholars
    sources reports reviews production filming development construction work research music art history part parts number
    population education government construction sales results evidence data information water land food money power
    construction operations plans production recording release reception tourism traffic training transport unlike upon
    example examples note notes overview introduction summary abstract background conclusion discussion references contents
    january february march april may june july august september october november december monday tuesday wednesday thursday
    friday saturday sunday spring summer autumn fall winter new old young high low north south east west northern southern
    eastern western central
    """
)
"""Common nouns that often open a sentence. They are part of a name only if the document gives other evidence."""

MONTHS = word_set(
    """
    january february march april may june july august september october november december jan feb mar apr jun jul aug sep
    sept oct nov dec
    """
)
WEEKDAYS = word_set("monday tuesday wednesday thursday friday saturday sunday")
SEASONS = word_set("spring summer autumn fall winter")

PERSON_TITLES = word_set(
    """
    mr mrs ms miss mx dr prof professor sir madam lady lord dame rev reverend fr father mother brother sister capt captain
    col colonel lt lieutenant gen general maj major sgt sergeant cpl corporal pvt adm admiral cmdr commander president
    chairman chairwoman chancellor senator sen representative rep congressman congresswoman governor gov mayor minister
    secretary ambassador judge justice attorney king queen prince princess duke duchess earl count countess baron baroness
    emperor empress tsar pope cardinal bishop archbishop rabbi imam sheikh sultan saint st coach director ceo author poet
    actor actress singer engineer architect dean provost hon nurse manager inspector detective constable superintendent
    commissioner treasurer headteacher matron midwife
    """
)
STRIPPED_TITLES = word_set(
    """
    leader mr mrs ms miss mx dr prof professor sir madam rev reverend capt captain col colonel lt lieutenant gen general maj
    major sgt sergeant cpl corporal pvt adm admiral cmdr commander president chairman chairwoman chancellor senator sen
    representative rep congressman congresswoman governor gov mayor minister secretary ambassador judge justice coach
    director ceo author poet actor actress singer engineer architect dean provost hon dame premier nurse manager inspector
    detective constable superintendent
    commissioner treasurer headteacher matron midwife
    """
)
"""Titles that are left out of the name: "Dr. Keller" is the name "Keller"."""

FORMS_OF_ADDRESS = word_set("mr mrs ms miss mx dr prof professor sir madam rev reverend capt lt sgt cpl nurse")
"""Titles that no organisation, place or work opens with."""

ROLE_NOUNS = word_set(
    """
    actor actress singer songwriter musician composer conductor pianist guitarist drummer rapper dancer author writer
    novelist poet playwright journalist editor critic painter sculptor artist architect engineer scientist physicist chemist
    biologist mathematician astronomer economist historian philosopher psychologist physician surgeon doctor nurse lawyer
    attorney judge politician statesman senator governor mayor president minister king queen prince princess emperor duke
    bishop priest monk theologian missionary soldier officer general admiral colonel captain commander explorer inventor
    entrepreneur businessman businesswoman founder co-founder chairman director producer screenwriter filmmaker
    cinematographer comedian presenter broadcaster footballer cricketer player golfer boxer wrestler swimmer athlete cyclist
    driver skier racer coach manager professor teacher lecturer scholar researcher student activist wife husband son
    daughter father mother brother sister uncle aunt nephew niece cousin widow sons daughters brothers sisters parents
    colleague friend bassist vocalist frontman designer photographer model chef
    """
)

ORGANISATION_HEADS = word_set(
    """
    university college school academy institute institution laboratory laboratories observatory hospital clinic museum
    library foundation trust society association union federation league club team company corporation corp inc ltd llc plc
    gmbh ag group holdings industries enterprises partners brothers sons bank council committee commission agency bureau
    department ministry office authority board court parliament senate congress assembly cabinet government party church
    diocese archdiocese order army navy force forces guard regiment brigade division battalion corps squadron police band
    orchestra choir ensemble quartet trio records studios studio entertainment pictures films productions press publishing
    publishers times post herald tribune gazette network television radio broadcasting airlines airways railways motors
    technologies systems software solutions services consortium alliance coalition organization organisation movement front
    conservatory seminary faculty centre center legion railroad railway ensemble fc afc cf sc united rovers wanderers
    athletic insurance pharmaceuticals electric works mission machines exchange fund practice infirmary surgery pharmacy
    bakery brewery dairy distillery networks logistics instruments optics estates forum charity cooperative co-operative
    syndicate associates communications consulting consultants chemicals foods stores healthcare petroleum shipping
    conservatoire committees trustees constabulary municipality
    """
)
PLACE_HEADS = word_set(
    """
    river lake sea ocean bay gulf strait straits channel canal creek falls waterfall island islands isle isles archipelago
    peninsula cape coast beach mountain mountains mount hill hills peak ridge range valley canyon desert forest woods plain
    plains plateau city town township village county province state district region territory prefecture parish borough
    municipality republic kingdom empire street avenue road boulevard lane square bridge tunnel highway motorway route
    station airport port harbour harbor park garden gardens zoo castle palace tower fort fortress abbey cathedral temple
    mosque monastery stadium arena theatre theater hall house hotel building cemetery campus quarter heights springs spring
    point head volcano glacier basin delta reservoir dam mine field farm crossing junction lighthouse prison plaza
    """
)
PLACE_OPENERS = word_set(
    """
    mount lake river cape fort port lough loch isle gulf bay strait san santa saint st el los las rio north south east west
    new
    """
)
EVENT_HEADS = word_set(
    """
    war wars battle siege revolution rebellion revolt uprising campaign operation massacre treaty agreement accord
    convention conference congress summit festival olympics games cup championship championships tournament trophy open
    masters league prix tour rally race season election elections referendum census award awards prize medal act bill
    amendment constitution protocol declaration day week era period dynasty age ceremony series draft final finals bowl
    marathon derby crisis earthquake hurricane
    """
)
WORK_HEADS = word_set(
    """
    journal magazine review symphony concerto sonata opera ballet suite overture bible gospel encyclopedia dictionary
    anthology chronicle chronicles trilogy saga
    """
)
WORK_CUES = word_set(
    """
    film movie novel novella book play album song single poem opera musical series sitcom show episode soundtrack
    documentary painting sculpture magazine newspaper journal memoir autobiography essay story comic manga anime game video
    ep mixtape record track sequel
    """
)
THING_CUES = {
    "software": word_set(
        "software library package framework database compiler editor kernel plugin app application browser toolkit middleware "
        "daemon interpreter shell filesystem parser module tool"
    ),
    "standard": word_set("standard specification protocol format encoding norm"),
    "law": word_set("act bill treaty agreement accord convention constitution amendment directive regulation statute ordinance"),
    "product": word_set("product phone smartphone console laptop printer camera processor chip vehicle car aircraft handset"),
    "form": word_set("form questionnaire"),
}
"""Nouns that say what a named thing is, by type. They end its name, or stand around it: "the library X", "X is a format"."""
SUBJECT_NOUNS = {
    "person": frozenset[str](),
    "organisation": ORGANISATION_HEADS | word_set("company firm"),
    "place": PLACE_HEADS,
    "work": WORK_CUES | WORK_HEADS,
    "event": EVENT_HEADS,
    **THING_CUES,
}
"""Nouns that stand for the subject of a document, by its type: "The company was founded in Leeds"."""
COMPANY_SUFFIXES = word_set(
    """
    inc inc. ltd ltd. llc llc. llp plc corp corp. co co. gmbh ag kg bv nv spa srl sarl oy oyj ab asa pty pte jr jr. sr sr. l.p.
    n.v. s.a. b.v. s.p.a. incorporated limited
    """
)
LEGAL_FORMS = word_set("inc incorporated ltd limited llc llp plc gmbh corp corporation oyj pty pte co")
"""Words at the end of a company's name that its own texts leave out, as normalised."""
UNDERTAKINGS = word_set("project operation programme program plan initiative mission task")
GENERATIONS = word_set("jr jr. sr sr. i ii iii iv vi vii viii ix xi xii xiii xiv xv xvi")
ROLE_WORDS = STRIPPED_TITLES | word_set(
    """
    supreme leader prime vice chief executive officer deputy general assistant acting foreign first lady head state managing
    operating financial technical member senior junior attorney secretary-general commander-in-chief king queen prince
    princess emperor empress pope bishop archbishop cardinal duke earl count baron lord co-chief rear brigadier
    """
)
"""A name made of these words alone is a role, not a name."""

GENERIC_ALONE = (
    PLACE_HEADS | EVENT_HEADS | ORGANISATION_HEADS | WORK_CUES | WORK_HEADS | PERSON_TITLES | ROLE_NOUNS | MONTHS
) - word_set(
    """
    congress parliament senate bible guard motors army navy republic empire may amazon times post herald tribune olympics
    """
)
"""Head nouns that name nothing by themselves, in any spelling: "the Board", "the University"."""

OF_HEADS_WITH_AND = word_set(
    """
    ministry department institute school museum faculty college academy centre center office bureau committee council
    university society association board secretary minister
    """
)
"""Heads after which "and" inside a name joins: "Ministry of Health and Welfare"."""

ORGANISATION_CUES = word_set(
    """
    company firm organisation organization club team band group university college label agency party magazine newspaper
    publisher startup
    """
)
"""Nouns before the name of an organisation: "the company X"."""

IMPERSONAL = (
    FUNCTION_WORDS
    | PLACE_HEADS
    | EVENT_HEADS
    | ORGANISATION_HEADS
    | WORK_HEADS
    | WORK_CUES
    | MONTHS
    | word_set(
        """
    north south east west northern southern eastern western central upper lower greater new old great big grand royal
    national international united federal public free general social economic political natural human modern ancient holy
    black white red blue green golden silver world global state music art arts science sciences history economy energy
    language literature law testament chart charts singles stars kings lions tigers bears eagles giants union people peoples
    national metropolitan urban rural navy naval military civil common open home water fire night day time life love death
    dream dreams heart story best number top one
    """
    )
)
"""Words that are not part of a person's name without other evidence."""

PLACE_PREPOSITIONS = word_set(
    """
    in at from near into to towards toward around throughout across outside within via through
    """
)
NAME_PARTICLES = word_set(
    """
    de del della der den des di da do dos das du la le las los van von ver zu zur af av ibn bin al el ben bint abu ter ten y
    e et og och und am im
    """
)
"""Lower-case words inside names of persons and places; the next word is capitalised."""

CONNECTORS = word_set("of for the in on to and or a an with & at under against from")

ABBREVIATIONS = word_set(
    """
    mr mrs ms dr prof rev fr capt col lt gen maj sgt cpl pvt adm cmdr sen rep gov hon st ste mt ft jr sr no nos vol pp ca
    approx est dept univ inc ltd corp co bros vs etc eg ie cf al fig figs ed eds jan feb mar apr jun jul aug sep sept oct
    nov dec ave blvd rd
    """
)
"""Words whose full stop does not end a sentence."""

INNER_TITLES = word_set(
    """
    leader chairman chairwoman general judge justice archbishop bishop cardinal marshal president minister senator governor
    mayor dr mr mrs ms admiral captain colonel lieutenant sergeant professor chancellor ambassador sir
    """
)
"""Titles that open a new name wherever a capitalised name follows."""

RANK_OPENERS = word_set("supreme vice rear prime deputy chief brigadier major lieutenant assistant co-chief executive")

LABELS = word_set(
    """
    name names surname forename phone telephone tel mobile fax email e-mail mail address street postcode website web url date
    time day year month department unit title role position location room office status id no nr number code type category
    item quantity amount price total sum page figure fig table chart diagram listing chapter section part appendix annex
    contents index notes note remarks comment comments description details subject from to cc bcc sent attachment reference
    ref version revision author owner contact extension signature signed approved present apologies agenda minutes patient
    diagnosis yes no n/a tbd regards sincerely best dear hi hello thanks thank step warning caution question answer
    """
)
"""Labels of columns, fields, figures and letters: a name made of these words and numbers alone names nothing."""

GENERIC_HEADINGS = word_set(
    """
    introduction overview summary abstract background conclusion conclusions discussion results methods method references
    bibliography notes contents appendix history description details usage examples example installation faq changelog
    license see also links external further reading acknowledgements acknowledgments glossary index preface foreword purpose
    scope motivation biography career life legacy reception plot cast production awards publications works about the of and
    to in a early personal
    """
)
"""Headings made of these words alone name no entity."""


_PLACES = """
afghanistan, albania, algeria, andorra, angola, argentina, armenia, australia, austria, azerbaijan, bahamas, bahrain,
bangladesh, barbados, belarus, belgium, belize, benin, bhutan, bolivia, bosnia, bosnia and herzegovina, botswana,
brazil, brunei, bulgaria, burkina faso, burma, burundi, cambodia, cameroon, canada, cape verde, chad, chile, china,
colombia, comoros, congo, costa rica, croatia, cuba, cyprus, czech republic, czechoslovakia, denmark, djibouti,
dominica, dominican republic, east timor, ecuador, egypt, el salvador, england, eritrea, estonia, eswatini, ethiopia,
fiji, finland, france, gabon, gambia, georgia, germany, ghana, great britain, greece, greenland, grenada, guatemala,
guinea, guyana, haiti, honduras, hong kong, hungary, iceland, india, indonesia, iran, iraq, ireland, israel, italy,
ivory coast, jamaica, japan, jordan, kazakhstan, kenya, kiribati, kosovo, kuwait, kyrgyzstan, laos, latvia, lebanon,
lesotho, liberia, libya, liechtenstein, lithuania, luxembourg, madagascar, malawi, malaysia, maldives, mali, malta,
mauritania, mauritius, mexico, micronesia, moldova, monaco, mongolia, montenegro, morocco, mozambique, myanmar, namibia,
nauru, nepal, netherlands, new zealand, nicaragua, niger, nigeria, north korea, north macedonia, macedonia, northern
ireland, norway, oman, pakistan, palau, palestine, panama, papua new guinea, paraguay, peru, philippines, poland,
portugal, prussia, puerto rico, qatar, romania, russia, rwanda, samoa, san marino, saudi arabia, scotland, senegal,
serbia, seychelles, sierra leone, singapore, slovakia, slovenia, solomon islands, somalia, south africa, south korea,
south sudan, soviet union, spain, sri lanka, sudan, suriname, sweden, switzerland, syria, taiwan, tajikistan, tanzania,
thailand, tibet, togo, tonga, trinidad and tobago, tunisia, turkey, turkmenistan, tuvalu, uganda, ukraine, united arab
emirates, united kingdom, united states, united states of america, uruguay, us, usa, uk, ussr, uae, uzbekistan, vanuatu,
vatican city, venezuela, vietnam, wales, yemen, yugoslavia, zambia, zimbabwe, africa, america, antarctica, asia, europe,
oceania, eurasia, north america, south america, latin america, central america, central europe, eastern europe, western
europe, southeast asia, middle east, central asia, caribbean, balkans, scandinavia, alabama, alaska, arizona, arkansas,
california, colorado, connecticut, delaware, florida, hawaii, idaho, illinois, indiana, iowa, kansas, kentucky,
louisiana, maine, maryland, massachusetts, michigan, minnesota, mississippi, missouri, montana, nebraska, nevada, new
hampshire, new jersey, new mexico, new york, new york city, north carolina, north dakota, ohio, oklahoma, oregon,
pennsylvania, rhode island, south carolina, south dakota, tennessee, texas, utah, vermont, virginia, washington, west
virginia, wisconsin, wyoming, alberta, british columbia, manitoba, new brunswick, newfoundland, nova scotia, ontario,
quebec, saskatchewan, new south wales, queensland, tasmania, south australia, western australia
"""

REGIONS = frozenset(" ".join(name.split()) for name in _PLACES.split(","))
"""Normalised names (see `domain.graph.normalise_name`)."""

ADJECTIVES = word_set(
    """
    french dutch greek swiss czech thai afghan iraqi israeli pakistani bangladeshi kuwaiti saudi nepali yemeni omani
    german american african mexican moroccan chilean cuban soviet welsh basque filipino icelandic arab arabic hindu
    jewish slavic celtic nordic catholic protestant orthodox muslim islamic buddhist latin hebrew kurdish tamil zulu
    slovak slovene croat serb argentine
    """
)
"""Adjectives of peoples and faiths that no ending gives away."""
