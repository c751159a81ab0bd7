from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentic_rag_backend.errors import UnreadableDocument
from agentic_rag_backend.ingestion.parsing.html import normalising
from agentic_rag_backend.ingestion.parsing.html.html_parser import HtmlParser

PAGE = """<!doctype html><html lang="en"><head><title>Ships &amp; ports</title><meta name="description" content="About ships">
<meta name="author" content="Petra"></head><body><nav><a href="/">Home</a></nav><main><h1>The <b>port</b></h1>
<p>Caf&eacute; and <i>quay</i>.<br>Second line.</p><p hidden>secret</p><script>alert(1)</script><style>p {}</style>
<ul><li>first<li><p>second</p><ul><li>inner</ul></ul><h2>Staff</h2><img src="http://example.org/x.png" alt="a ship">
<table><tr><th>Name<th colspan="2">Phone</tr><tr><td>Petra | P<td>1<td>2</tr><tr><td>A<td>
<table><tr><td>x<td>y</table><td>z</table>
<pre>a\n  b</pre><p dir="rtl">שלום עולם</p></main><footer>imprint</footer></body></html>"""
TEXT = """The port

Café and quay.
Second line.

- first
- second
- inner

Staff

a ship

| Name | Phone | Phone |
| --- | --- | --- |
| Petra \\| P | 1 | 2 |
| A |  | z |

|  |  |
| --- | --- |
| x | y |

a
  b

שלום עולם"""


def parse(html: str) -> str:
    return HtmlParser().parse(html).text


def test_a_page_becomes_its_content() -> None:
    parsed = HtmlParser().parse(PAGE)
    assert parsed.text == TEXT
    assert parsed.title == HtmlParser().check(PAGE, is_whole=True).title == "Ships & ports"
    assert parsed.metadata == {"description": "About ships", "author": "Petra", "language": "en"}
    assert [(each.level, each.title) for each in parsed.headings] == [(1, "The port"), (2, "Staff")]
    for each in parsed.headings:
        assert parsed.text[each.start_char :].startswith(each.title)


def test_inline_marks_keep_their_meaning() -> None:
    for html, text in (
        ("10<sup>6</sup> cells", "10^6 cells"),
        ("10<sup>\u22123</sup> m", "10^-3 m"),
        ("H<sub>2</sub>O, CO<sub>2</sub>, x<sub>i</sub>, log<sub>10</sub>", "H2O, CO2, x_i, log_10"),
        ("E = mc<sup>2</sup>, <i>x</i><sup>2n+1</sup>, Na<sup>+</sup>, 4<sup>th</sup>", "E = mc^2, x^(2n+1), Na^+, 4th"),
        ("3 metres<sup>12</sup> wide, 3<sup><a href='#n'>12</a></sup> metres", "3 metres[12] wide, 3[12] metres"),
        ("a rise of <del>3</del><ins>4</ins> percent, <s>old</s> new", "a rise of 4 percent, new"),
        ("har&shy;bour wall\u200b", "harbour wall"),
        ("IBM<sup>[14]</sup><sup>: 228</sup> and", "IBM[14]: 228 and"),
        ("<h2>A<sup>1</sup> to B</h2>", "A^1 to B"),
        ("<table><tr><th>10<sup>6</sup><th>b<tr><td>c<td><s>3</s> 4</table>", "| 10^6 | b |\n| --- | --- |\n| c | 4 |"),
        ("Boat: <input value='Heron'> <input type=hidden value=secret><button>Send</button>", "Boat: Heron"),
        ("<input type=checkbox checked>Ice <input type=radio>No", "[x] Ice [ ] No"),
        ("<select><option>a<option selected>b</select><textarea>Seen\nby Bo</textarea>", "b Seen by Bo"),
    ):
        assert parse(f"<p>{html}") == text


def test_hidden_text_is_left_out_and_counted() -> None:
    for html, text, count in (
        ("<p style='Display : none !important'>x <b style='display:none'>y</b></p>shown", "shown", 1),
        ("<p hidden>x</p><p style='visibility:hidden'>y</p>shown", "shown", 2),
        (
            "<p style='opacity:0'>x</p><p style='height:0;overflow:hidden'>x</p><p style='text-indent:-9999px'>x</p>shown",
            "shown",
            3,
        ),
        ("<p style='font-size:0px'>x</p><div style='font-size:0'><b style='font-size:9px'>shown</b></div>", "shown", 1),
        ("<p style='color:#FFF'>x</p><font color=white>y</font>shown", "shown", 2),
        ("<div style='background:#000'><p style='color: rgb(255, 255, 255)'>shown</p></div>", "shown", 0),
        ("<style>.dark {background: black}</style><div class=dark><p style='color:white'>shown</p></div>", "shown", 0),
        ("<p style='display:none'><img></p><p aria-hidden=true>shown</p>", "shown", 0),
    ):
        parsed = HtmlParser().parse(html)
        assert parsed.text == text, html
        assert parsed.warnings == ((f"not in the text: hidden text ({count})",) if count else ())


def test_navigation_is_kept_where_it_is_the_page() -> None:
    assert parse("<body><nav>Index of all pages and documents</nav><p>x</p></body>") == "Index of all pages and documents\n\nx"


def test_items_of_ordered_lists_have_their_numbers() -> None:
    for html, text in {
        "<ol><li>Row<ul><li>fast</ul><li><p>Rest</p></ol>": "1. Row\n- fast\n2. Rest",
        "<ol start=7><li>Go<li value=9>End<li>": "7. Go\n9. End",
        "<ol type=a><li>Row<ol><li>x</ol><li>Rest</ol>": "a. Row\n1. x\nb. Rest",
        "<ol style='list-style: none'><li>Row</ol><ol start=99999999999><li>x</ol>": "- Row\n\n1. x",
    }.items():
        assert parse(html) == text, html


def test_formulas_are_read_on_one_line() -> None:
    root = "<mfrac><mrow><mi>a</mi> <mo>+</mo> <mi>b</mi></mrow><mn>2</mn></mfrac>"
    square = "<msup><mi>x</mi><mn>2</mn></msup><mo>=</mo>"
    formula = f"<math><semantics><mrow>{square}{root}</mrow><annotation>x^2</annotation></semantics></math>"
    for html, text in {
        f"<p>So {formula}, or {formula}": "So x^2=(a+b)/2, or x^2=(a+b)/2",
        "<p>a <math>b=<x:y>c</x:y><math>d</math></math>": "a b=cd",
        "<math></math><p>x": "x",
    }.items():
        assert parse(html) == text, html


def test_surroundings_are_measured_once_and_without_space() -> None:
    menu = "<nav><nav role=navigation><a>News</a>\n" + " " * 200 + "</nav></nav>"
    page = f"<body><div><header><h2>Site</h2>{menu}</header></div><main><header><h1>Locks</h1></header><p>The lock is old.</main>"
    assert parse(f"{page}<footer>End</footer>") == "Locks\n\nThe lock is old."


def test_a_table_for_layout_is_read_as_text() -> None:
    prose, depths = "The lock is old. " * 20, "<table><tr><th>Lock<th>Depth<tr><td>Sable<td>4 m</table>"
    table = "| Lock | Depth |\n| --- | --- |\n| Sable | 4 m |"
    for html, text in {
        "<table><tr><td><p>One</p><p>Two</p></td></tr></table>": "One\n\nTwo",
        f"<table><tr><td colspan=3>{prose}<tr><td>a<td>b<td>c</table>": f"{prose.strip()}\n\na\n\nb\n\nc",
        f"<table><tr><td><h2>News</h2><p>New.</p>{depths}<td>Side</table>": f"News\n\nNew.\n\n{table}\n\nSide",
        f"<table role=presentation><tr><th>One<td>Two{depths}</table>": f"One\n\nTwo\n\n{table}",
        f"<table><tr><th>{depths}</table>": table,
        f"<table><tr><th>Lock<th>About<tr><td>Sable<td>{prose}</table>": f"| Lock | About |\n| --- | --- |\n| Sable | {prose}|",
    }.items():
        assert parse(html) == text, html


def test_cells_of_html_stand_where_their_spans_put_them() -> None:
    rows = "<tr><td rowspan=2>North<td>N1<td>Ann<tr><td>N2<td>Bo<tr><td rowspan=0>South<td>S1<td>Cy<tr><td>S2<td>Dee"
    body = "| North | N1 | Ann |\n| North | N2 | Bo |\n| South | S1 | Cy |\n| South | S2 | Dee |"
    rule = "| --- | --- | --- |"
    for html, text in {
        f"<tr><th>Quay<th>Berth<th>Tenant{rows}": f"| Quay | Berth | Tenant |\n{rule}\n{body}",
        f"<tr><td>Quay<td>Berth<td>Tenant{rows}": f"| Quay | Berth | Tenant |\n{rule}\n{body}",
        f"<caption>Berths</caption><tfoot><tr><td colspan=3>Of 2020.</tfoot><tbody>{rows}": (
            f"Berths\n\n|  |  |  |\n{rule}\n{body}\n\nOf 2020."
        ),
        "<thead><tr><th><th colspan=2>2024<tr><th>Lock<th>Low<th>High</thead><tr><th>Sable<td>2.0<td>5.5": (
            f"| Lock | 2024 – Low | 2024 – High |\n{rule}\n| Sable | 2.0 | 5.5 |"
        ),
        "<tr><th>Name<td>Ada<tr><th>Port<td>Brno": "|  |  |\n| --- | --- |\n| Name | Ada |\n| Port | Brno |",
        "<tr><th>A<th>B<tbody><tr><td rowspan=9>x<td>1<tbody><tr><td>y<td>2": "| A | B |\n| --- | --- |\n| x | 1 |\n| y | 2 |",
    }.items():
        assert parse(f"<table>{html}</table>") == text, html


@pytest.mark.parametrize("unit", ["<div>", "<b>", "<table><tr><td>", "<svg>", "<blockquote>"])
def test_deep_nesting_is_refused_before_it_is_parsed(unit: str) -> None:
    with pytest.raises(UnreadableDocument, match="nested more than 200 deep"):
        parse(unit * 100_000 + "x")


def test_an_error_of_the_library_is_a_lack_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(normalising, "_UNSEEN", "(")  # a failed allocation has the same error as a wrong selector
    with pytest.raises(MemoryError):
        HtmlParser().parse("<p>text")


def test_elements_that_need_no_end_do_not_nest() -> None:
    assert parse("<p>x" * 5_000).count("x") == 5_000
    assert parse("<ul>" + "<li>x" * 5_000 + "</ul>").count("- x") == 5_000


def test_pages_without_text_are_refused() -> None:
    with pytest.raises(UnreadableDocument, match="no text"):
        parse("<html><script>x</script></html>")


@settings(max_examples=100, derandomize=True)
@given(
    st.lists(
        st.sampled_from(
            [
                "<table>",
                "<tr>",
                "<td>",
                "<th colspan=9>",
                "</table>",
                "<ul>",
                "<li>",
                "<p>",
                "</p>",
                "<b>",
                "x",
                "<h1>",
                "<pre>",
                "<",
                "&#0;",
                "&amp",
                "<!--",
                "<br>",
                "<nav>",
                "</nav>",
                "<body>",
                "\x00",
            ]
        )
    )
)
def test_any_page_is_read_or_refused(parts: list[str]) -> None:
    try:
        parsed = HtmlParser().parse("".join(parts))
    except UnreadableDocument:
        return
    assert parsed.text.strip()
    assert "\x00" not in parsed.text
