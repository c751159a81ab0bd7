"""Countries, continents and the states of large federations: a closed class, used to type names and never to find them."""

from __future__ import annotations

from agentic_rag_backend.knowledge.extraction.lexicon import word_set

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
