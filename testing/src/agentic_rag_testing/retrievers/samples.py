"""Documents of two tenants for the contract of retrievers. They share a title, and have words that the other lacks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class SampleDocument:
    """A document's title, its paragraphs under headings, and its metadata."""

    title: str
    paragraphs: tuple[str, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def markdown(self) -> str:
        """The document's text, with one heading for each paragraph."""
        sections = (f"## Part {number}\n\n{text}" for number, text in enumerate(self.paragraphs, 1))
        return "\n\n".join((f"# {self.title}", *sections)) + "\n"


OWN: Mapping[str, SampleDocument] = {
    "ferry": SampleDocument(
        "Ottermouth Ferry",
        (
            "The Ottermouth Ferry crosses the Grey Sound twice a day. The Ottermouth Ferry was built by Halvard Yards.",
            "Ida Brandt commands the Ottermouth Ferry. Ida Brandt was born in Kestrel Bay.",
            "The ferry carries forty cars. In winter it waits in Kestrel Bay until the storm has passed.",
        ),
        {"topic": "transport", "year": 2019},
    ),
    "yards": SampleDocument(
        "Halvard Yards",
        (
            "Halvard Yards was founded by Signe Halvard in Kestrel Bay. Halvard Yards employs ninety people.",
            "Halvard Yards repaired the lightship Morning Star after the great storm.",
        ),
        {"topic": "industry", "year": 2015},
    ),
    "halvard": SampleDocument(
        "Signe Halvard",
        ("Signe Halvard studied in Lindmark and painted seabirds. Signe Halvard joined the Northern Lights Society.",),
        {"topic": "people", "year": 2016, "valid_from": "2016", "valid_to": "2020"},
    ),
    "society": SampleDocument(
        "Northern Lights Society",
        (
            "The Northern Lights Society (NLS) measures the aurora over the Grey Sound. Anders Vik directs the NLS.",
            "The society publishes a yearbook with photographs of the night sky.",
        ),
        {"topic": "science", "year": 2021},
    ),
    "lightship": SampleDocument(
        "Morning Star",
        (
            "The Morning Star is a lightship in the Grey Sound. Anders Vik counted the birds around the Morning Star.",
            "The lamp of the lightship burns whale-free oil and is lit at dusk.",
        ),
        {"topic": "transport", "year": 2022},
    ),
    "storm": SampleDocument(
        "The Great Storm",
        (
            "The great storm of 2014 damaged the Morning Star and the quay of Kestrel Bay.",
            "Halvard Yards and the Northern Lights Society collected money for the repairs.",
        ),
        {"topic": "weather", "year": 2014},
    ),
    "soup": SampleDocument(
        "Fish soup",
        ("Fish soup needs cod, leeks, cream and dill. It simmers for half an hour and is served with bread.",),
        {"topic": "food", "year": 2017},
    ),
}

OTHER: Mapping[str, SampleDocument] = {
    "ferry": SampleDocument(
        "Ottermouth Ferry",
        (
            "The Ottermouth Ferry was bought by Quillon Partners. Zara Thimblewick commands the Ottermouth Ferry.",
            "Zara Thimblewick founded Quillon Partners in Kestrel Bay.",
        ),
        {"topic": "transport", "year": 2019},
    ),
    "partners": SampleDocument(
        "Quillon Partners",
        ("Quillon Partners owns Halvard Yards. Zara Thimblewick wrote its charter.",),
        {"topic": "industry", "year": 2015},
    ),
}

CANARIES = ("quillon", "thimblewick")
"""Words that only the documents of `OTHER` have."""
