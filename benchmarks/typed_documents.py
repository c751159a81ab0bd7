"""Documents of several domains with the types of their names, written for the benchmark of extraction and never fitted to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TypedDocument:
    """A text and the types of its names (PER, ORG, LOC, MISC); ``absent`` are capitalised phrases that name nothing."""

    title: str
    text: str
    names: dict[str, str]
    absent: tuple[str, ...] = ()


TYPED_DOCUMENTS = (
    TypedDocument(
        "Annual report 2023",
        "Pellworth Instruments plc was founded in Leicester by Margaret Osei and her brother Daniel Osei. In "
        "March the company bought Kestrel Optics GmbH of Jena from Zeiss. International Business Machines "
        "(IBM) supplies its servers. IBM also trains the staff. Osei said the purchase opens Germany. The "
        "auditors are Lindqvist & Co. The shares are traded on the London Stock Exchange. Its best product, "
        "the Pellworth Clarion, won the Queen's Award for Enterprise.",
        {
            "Pellworth Instruments plc": "ORG",
            "Leicester": "LOC",
            "Margaret Osei": "PER",
            "Daniel Osei": "PER",
            "Kestrel Optics GmbH": "ORG",
            "Jena": "LOC",
            "Zeiss": "ORG",
            "International Business Machines": "ORG",
            "IBM": "ORG",
            "Osei": "PER",
            "Germany": "LOC",
            "Lindqvist & Co": "ORG",
            "London Stock Exchange": "ORG",
            "Pellworth Clarion": "MISC",
        },
    ),
    TypedDocument(
        "Staff directory",
        "# Staff directory\n\n| Name | Phone | Department |\n|---|---|---|\n| Dr Rowan Teller | 4471 | Radiology "
        "|\n| Mrs Ines Caldeira | 4472 | Finance |\n| Prof Hamid Nazari | 4480 | Oncology |\n| Captain Lisa "
        "Brandvold | 4490 | Security |\n\nDr Rowan Teller leads the night shift at Saint Brannoc Hospital. Mrs "
        "Caldeira reports to Prof Nazari. Parking permits come from Exeter City Council.",
        {
            "Rowan Teller": "PER",
            "Ines Caldeira": "PER",
            "Hamid Nazari": "PER",
            "Lisa Brandvold": "PER",
            "Caldeira": "PER",
            "Nazari": "PER",
            "Saint Brannoc Hospital": "ORG",
            "Exeter City Council": "ORG",
        },
        (
            "Name",
            "Phone",
            "Department",
            "Staff directory",
            "Name and Phone",
        ),
    ),
    TypedDocument(
        "Re: Thursday's visit",
        "Hi Priya,\n\nThanks for the call. Tomasz and I will take the early train from Utrecht and meet you at "
        "Arnhem. Could you ask Feyza whether Philips has confirmed the room? Sander from the Municipality of "
        "Ede wants to join by Zoom. Please bring the signed copy of the Rhine Agreement.\n\nBest wishes,\nJoost "
        "van Rijn\nHead of Sales, Waalbrug Logistics BV",
        {
            "Priya": "PER",
            "Tomasz": "PER",
            "Utrecht": "LOC",
            "Arnhem": "LOC",
            "Feyza": "PER",
            "Philips": "ORG",
            "Sander": "PER",
            "Municipality of Ede": "ORG",
            "Rhine Agreement": "MISC",
            "Joost van Rijn": "PER",
            "Waalbrug Logistics BV": "ORG",
        },
        (
            "Best",
            "Thanks",
            "Please",
        ),
    ),
    TypedDocument(
        "Discharge summary",
        "Patient: Mr Oluwaseun Adeyemi. Referred by Dr. Fiona Galbraith of the Marchmont Medical Practice in "
        "Edinburgh. He was admitted to the Royal Infirmary after a fall in Musselburgh. Nurse Katarzyna "
        "Wolska saw him first. Adeyemi works for Scottish Power. Follow-up with Dr Galbraith at the Lothian "
        "Heart Clinic.",
        {
            "Oluwaseun Adeyemi": "PER",
            "Fiona Galbraith": "PER",
            "Marchmont Medical Practice": "ORG",
            "Edinburgh": "LOC",
            "Musselburgh": "LOC",
            "Katarzyna Wolska": "PER",
            "Adeyemi": "PER",
            "Scottish Power": "ORG",
            "Galbraith": "PER",
            "Lothian Heart Clinic": "ORG",
        },
        (
            "Patient",
            "Referred",
            "Follow-up",
        ),
    ),
    TypedDocument(
        "Installing the Tarn gateway",
        "## Contents\n\n## Figure 3\n\nThe Tarn Gateway 400 needs Ubuntu or Windows. Download the image from "
        "GitHub and write it with BalenaEtcher. Open Firefox and sign in. The gateway speaks Bluetooth and "
        "Modbus. Support is given by Tarn Networks Ltd in Penrith. Figure 3 shows the ports. Table 2 lists "
        "the lamps. Questions go to the Tarn User Group.",
        {
            "Ubuntu": "MISC",
            "Windows": "MISC",
            "Firefox": "MISC",
            "Bluetooth": "MISC",
            "Modbus": "MISC",
            "Tarn Networks Ltd": "ORG",
            "Penrith": "LOC",
            "Tarn User Group": "ORG",
        },
        (
            "Contents",
            "Figure 3",
            "Table 2",
            "Figure",
            "Table",
            "Download",
            "Open",
        ),
    ),
    TypedDocument(
        "Minutes of the board",
        "Present: Ms Yewande Bello (chair), Mr Pieter Claes, Sir Alan Threlkeld, Dr Mei-Ling Soh. Apologies: "
        "Judge Robert Amory. Bello welcomed the members. The board heard that Nestlé, Unilever and Danone "
        "will sponsor the fair in Ghent. Claes reported from Lagos, Nairobi and Kigali. The Ford Foundation "
        "asked for a plan. The next meeting is in Antwerp.",
        {
            "Yewande Bello": "PER",
            "Pieter Claes": "PER",
            "Alan Threlkeld": "PER",
            "Mei-Ling Soh": "PER",
            "Robert Amory": "PER",
            "Bello": "PER",
            "Nestlé": "ORG",
            "Unilever": "ORG",
            "Danone": "ORG",
            "Ghent": "LOC",
            "Claes": "PER",
            "Lagos": "LOC",
            "Nairobi": "LOC",
            "Kigali": "LOC",
            "Ford Foundation": "ORG",
            "Antwerp": "LOC",
        },
        (
            "Present",
            "Apologies",
        ),
    ),
    TypedDocument(
        "The river and the mill",
        "The Arda rises near Smolyan and flows past Kardzhali to Edirne. In 1932 the engineer Stoyan Velkov "
        'built a mill there for the Rhodope Paper Company. His daughter Elena wrote the novel "Water Wheels" '
        "about it. The novel won the Vazov Prize. A flood destroyed the mill during World War II. The "
        "Bulgarian Academy of Sciences keeps the plans.",
        {
            "Arda": "LOC",
            "Smolyan": "LOC",
            "Kardzhali": "LOC",
            "Edirne": "LOC",
            "Stoyan Velkov": "PER",
            "Rhodope Paper Company": "ORG",
            "Elena": "PER",
            "Water Wheels": "MISC",
            "Vazov Prize": "MISC",
            "World War II": "MISC",
            "Bulgarian Academy of Sciences": "ORG",
        },
    ),
    TypedDocument(
        "Lease of unit 7",
        "This lease is made between Hartsop Estates LLP and Amina Warsame trading as Warsame Bakery. The "
        "premises are at 14 Quay Street, Whitehaven. The rent is paid to Barclays. The tenant insures with "
        "Aviva. Solicitors for the landlord are Brough, Kane & Partners. The Landlord and Tenant Act applies."
        " Disputes go to the County Court at Carlisle.",
        {
            "Hartsop Estates LLP": "ORG",
            "Amina Warsame": "PER",
            "Warsame Bakery": "ORG",
            "Whitehaven": "LOC",
            "Barclays": "ORG",
            "Aviva": "ORG",
            "Landlord and Tenant Act": "MISC",
            "Carlisle": "LOC",
        },
    ),
    TypedDocument(
        "Field notes",
        "Nur Aisyah and Ben Okoro counted hornbills in Kinabalu Park. Okoro, who studied at Makerere "
        "University, wrote the paper in Nature. The World Wildlife Fund (WWF) paid for the trip. WWF has an "
        "office in Sandakan. They flew with Malaysia Airlines to Borneo and crossed the Kinabatangan River. "
        "Aisyah now lives in Kuching.",
        {
            "Nur Aisyah": "PER",
            "Ben Okoro": "PER",
            "Kinabalu Park": "LOC",
            "Okoro": "PER",
            "Makerere University": "ORG",
            "Nature": "MISC",
            "World Wildlife Fund": "ORG",
            "WWF": "ORG",
            "Sandakan": "LOC",
            "Malaysia Airlines": "ORG",
            "Borneo": "LOC",
            "Kinabatangan River": "LOC",
            "Aisyah": "PER",
            "Kuching": "LOC",
        },
    ),
    TypedDocument(
        "Match report",
        "Rovers beat Fenwick Town in Sunderland. Callum Pryce scored twice for Rovers before Jakub Novotny "
        "was sent off. Pryce joined from Ajax in August. Manager Gordon Tait praised his goalkeeper. The club"
        " plays in the Northern League and the FA Cup. The Gazette called it a lucky win.",
        {
            "Fenwick Town": "ORG",
            "Sunderland": "LOC",
            "Callum Pryce": "PER",
            "Rovers": "ORG",
            "Jakub Novotny": "PER",
            "Pryce": "PER",
            "Ajax": "ORG",
            "Gordon Tait": "PER",
            "Northern League": "ORG",
            "FA Cup": "MISC",
        },
    ),
    TypedDocument(
        "Incident 2291",
        "At 03:12 the Oslo cluster lost contact with Dublin. Wei Zhang restarted Postgres and Kafka. "
        "Cloudflare saw no fault. The cause was a bug in Kubernetes that Red Hat had fixed. Zhang wrote the "
        "report with Siobhan Kerrigan from Ericsson. A meeting with Amazon Web Services (AWS) follows.",
        {
            "Oslo": "LOC",
            "Dublin": "LOC",
            "Wei Zhang": "PER",
            "Postgres": "MISC",
            "Kafka": "MISC",
            "Cloudflare": "ORG",
            "Kubernetes": "MISC",
            "Red Hat": "ORG",
            "Zhang": "PER",
            "Siobhan Kerrigan": "PER",
            "Ericsson": "ORG",
            "Amazon Web Services": "ORG",
            "AWS": "ORG",
        },
    ),
    TypedDocument(
        "Concert programme",
        "The Halle Orchestra plays Finlandia by Jean Sibelius under Sir Mark Elder. The soloist, the "
        "violinist Hilary Hahn, studied in Philadelphia. After the interval follows the opera Carmen. The "
        "hall in Manchester is run by the Bridgewater Trust. Deutsche Grammophon records the evening for BBC "
        "Radio.",
        {
            "Halle Orchestra": "ORG",
            "Finlandia": "MISC",
            "Jean Sibelius": "PER",
            "Mark Elder": "PER",
            "Hilary Hahn": "PER",
            "Philadelphia": "LOC",
            "Carmen": "MISC",
            "Manchester": "LOC",
            "Bridgewater Trust": "ORG",
            "Deutsche Grammophon": "ORG",
            "BBC Radio": "ORG",
        },
    ),
)
