"""Charts, diagrams and formulas within office files are text at their place."""

from __future__ import annotations

import datetime
import io
from typing import Any

import docx
import openpyxl
import pptx
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from lxml import etree
from office_files import open_document, tables_of, unzipped, zipped
from openpyxl.chart import BarChart, Reference
from pptx.chart.data import BubbleChartData, CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Pt

from agentic_rag_backend.documents.parsing.office.drawings.charts import MAX_CATEGORIES, MAX_SERIES, read_chart
from agentic_rag_backend.documents.parsing.registry import parser_of
from agentic_rag_backend.domain.media_types import DOCX, ODP, ODS, ODT, PPTX, XLSX

CHART = 'xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
EXTENDED = 'xmlns:cx="http://schemas.microsoft.com/office/drawing/2014/chartex"'
DIAGRAM = (
    '<dgm:dataModel xmlns:dgm="http://schemas.openxmlformats.org/drawingml/2006/diagram" '
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"><dgm:ptLst><dgm:pt modelId="0" type="doc"/>'
    '<dgm:pt modelId="2"><dgm:t><a:p><a:r><a:t>Deck</a:t></a:r></a:p></dgm:t></dgm:pt><dgm:pt modelId="9" type="pres"/>'
    '<dgm:pt modelId="1"><dgm:t><a:p><a:r><a:t>Crew</a:t></a:r></a:p></dgm:t></dgm:pt>'
    '<dgm:pt modelId="3"><dgm:t><a:p><a:r><a:t>Cook</a:t></a:r></a:p></dgm:t></dgm:pt></dgm:ptLst><dgm:cxnLst>'
    '<dgm:cxn srcId="0" destId="1"/><dgm:cxn srcId="1" destId="3" srcOrd="1"/><dgm:cxn srcId="1" destId="2" srcOrd="0"/>'
    '<dgm:cxn srcId="3" destId="1"/></dgm:cxnLst></dgm:dataModel>'
)
CREW = "- Crew\n  - Deck\n  - Cook"


def title(text: str) -> str:
    return f"<c:title><c:tx><c:rich><a:p><a:r><a:t>{text}</a:t></a:r></a:p></c:rich></c:tx></c:title>"


def points(kind: str, *values: str, code: str = "") -> str:
    cached = "".join(f'<c:pt idx="{index}"><c:v>{value}</c:v></c:pt>' for index, value in enumerate(values))
    return f"<c:{kind}><c:formatCode>{code}</c:formatCode>{cached}</c:{kind}>"


def chart_part(values: str = points("numCache", "0.125", "0.5", code="0.0%")) -> str:
    """Return a part with a bar chart of one series, whose name is a cell of a sheet."""
    series = (
        f"<c:ser><c:tx><c:strRef><c:f>'It''s'!$B$1</c:f>{points('strCache', 'Full')}</c:strRef></c:tx>"
        f"<c:cat><c:strRef>{points('strCache', 'N1', 'N2')}</c:strRef></c:cat><c:val>"
        f"<c:numRef>{values}</c:numRef></c:val></c:ser>"
    )
    axes = f'<c:catAx><c:axId val="1"/>{title("Berth")}</c:catAx><c:valAx><c:axId val="2"/>{title("share")}</c:valAx>'
    plot = f'<c:plotArea><c:barChart>{series}<c:axId val="1"/><c:axId val="2"/></c:barChart>{axes}</c:plotArea>'
    return f"<c:chartSpace {CHART}><c:chart>{title('Use of berths')}{plot}</c:chart></c:chartSpace>"


def document_of(*parts: tuple[str, str]) -> bytes:
    """Return a Word document with a table and a paragraph that show the drawings of some parts, named by their kind."""
    document = docx.Document()
    document.add_paragraph("Before.")
    names = " ".join([nsdecls("w", "r", "a", "c"), 'xmlns:dgm="http://schemas.openxmlformats.org/drawingml/2006/diagram"'])
    for number, (kind, _) in enumerate(parts):
        shown = f'<c:chart r:id="x{number}"/>' if kind == "chart" else f'<dgm:relIds r:dm="x{number}"/>'
        drawing = f"<w:r><w:drawing><a:graphic><a:graphicData>{shown}{shown}</a:graphicData></a:graphic></w:drawing></w:r>"
        document.element.body.insert_element_before(parse_xml(f"<w:p {names}>{drawing}</w:p>"), "w:sectPr")
    document.add_paragraph("After.")
    target = io.BytesIO()
    document.save(target)
    members = unzipped(target.getvalue())
    relationships = "".join(
        f'<Relationship Id="x{number}" Type="http://x/{kind}" Target="d{number}.xml"/>' for number, (kind, _) in enumerate(parts)
    )
    path = "word/_rels/document.xml.rels"
    members[path] = members[path].replace(b"</Relationships>", f"{relationships}</Relationships>".encode())
    return zipped({**members, **{f"word/d{number}.xml": part for number, (_, part) in enumerate(parts)}})


def test_charts_and_diagrams_of_word_documents_stand_at_their_place() -> None:
    parsed = parser_of(DOCX).parse(document_of(("chart", chart_part()), ("diagramData", DIAGRAM)))
    table = "| Berth | Full (share) |\n| --- | --- |\n| N1 | 12.5% |\n| N2 | 50.0% |"
    assert parsed.text.split("\n\n") == ["Before.", "Use of berths", table, CREW, "After."]
    assert parsed.warnings == ()
    parsed = parser_of(DOCX).parse(document_of(("chart", chart_part("")), ("chart", "<damaged"), ("diagramData", "<dataModel/>")))
    assert parsed.text == "Before.\n\nUse of berths\n\nAfter."
    assert parsed.warnings == (
        "not in the text: charts without saved values (1)",
        "not in the text: drawings that cannot be read (1)",
        "not in the text: diagrams (1)",
    )


def test_charts_of_presentations_have_their_levels_dates_and_sizes() -> None:
    presentation = pptx.Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[6])
    levels: Any = CategoryChartData(number_format="0.0")  # type: ignore[no-untyped-call]
    for year, quarters in (("2023", ("Q1", "Q2")), ("2024", ("Q1",))):
        category = levels.add_category(year)
        for quarter in quarters:
            category.add_sub_category(quarter)
    levels.add_series("Cargo", (1, None, 3))
    dates: Any = CategoryChartData()  # type: ignore[no-untyped-call]
    dates.categories = [datetime.date(2024, 1, 1)]
    dates.add_series("Depth", (2.25,))
    bubbles: Any = BubbleChartData()  # type: ignore[no-untyped-call]
    bubbles.add_series("Boats").add_data_point(1, 2, 3)
    for number, (kind, data) in enumerate(
        (
            (XL_CHART_TYPE.COLUMN_CLUSTERED, levels),
            (XL_CHART_TYPE.LINE, dates),
            (XL_CHART_TYPE.BUBBLE, bubbles),
        )
    ):
        slide.shapes.add_chart(kind, Pt(0), Pt(100 * number), Pt(90), Pt(90), data)
    target = io.BytesIO()
    presentation.save(target)
    parsed = parser_of(PPTX).parse(target.getvalue())
    assert tables_of(parsed) == [
        [["", "Cargo"], ["2023 – Q1", "1.0"], ["2023 – Q2", ""], ["2024 – Q1", "3.0"]],
        [["", "Depth"], ["2024-01-01", "2.25"]],
        [["", "Boats", "Boats (size)"], ["1", "2", "3"]],
    ]
    assert (parsed.regions[1].page, parsed.regions[1].box) == (1, (0, 450, 90, 540))


def test_charts_of_newer_kinds_and_those_beyond_the_limits() -> None:
    data = (
        '<cx:data id="0"><cx:strDim type="cat"><cx:lvl><cx:pt idx="0">Tea</cx:pt><cx:pt idx="1">Silk</cx:pt></cx:lvl>'
        '</cx:strDim><cx:numDim type="val"><cx:lvl formatCode="0.0"><cx:pt idx="0">2</cx:pt><cx:pt idx="1">NaN</cx:pt></cx:lvl>'
        "</cx:numDim></cx:data>"
    )
    series = "<cx:series><cx:tx><cx:txData><cx:v>Tons</cx:v></cx:txData></cx:tx><cx:dataId val='0'/></cx:series>"
    plot = f"<cx:plotArea><cx:plotAreaRegion>{series}</cx:plotAreaRegion></cx:plotArea>"
    root = etree.fromstring(
        f"<cx:chartSpace {EXTENDED}><cx:chartData>{data}</cx:chartData><cx:chart>{plot}</cx:chart></cx:chartSpace>"
    )
    assert read_chart(root).tables == [[["", "Tons"], ["Tea", "2.0"], ["Silk", ""]]]
    many = f'<c:ser><c:val><c:numLit><c:pt idx="{MAX_CATEGORIES}"><c:v>1</c:v></c:pt></c:numLit></c:val></c:ser>'
    one = "<c:ser><c:val><c:numLit><c:pt idx='9'><c:v>1</c:v></c:pt></c:numLit></c:val></c:ser>"
    for inner, lost, rows in ((many, 1, 0), (one * (MAX_SERIES + 1), 1, 2)):
        plot = f"<c:plotArea><c:barChart>{inner}</c:barChart></c:plotArea>"
        chart = read_chart(etree.fromstring(f"<c:chartSpace {CHART}><c:chart>{plot}</c:chart></c:chartSpace>"))
        assert (chart.lost, sum(map(len, chart.tables))) == (lost, rows)


def test_charts_of_sheets_repeat_no_cells() -> None:
    workbook = openpyxl.Workbook()
    sheet: Any = workbook.active
    sheet.title = "It's"
    for values in (("Berth", "Full"), ("N1", 0.125)):
        sheet.append(values)
    chart = BarChart()
    chart.add_data(Reference(sheet, min_col=2, min_row=1, max_row=2), titles_from_data=True)
    sheet.add_chart(chart, "D2")
    target = io.BytesIO()
    workbook.save(target)
    members = unzipped(target.getvalue())
    cells = "| Berth | Full |\n| --- | --- |\n| N1 | 0.125 |"
    shown = parser_of(XLSX).parse(zipped({**members, "xl/charts/chart1.xml": chart_part()}))
    assert shown.text.split("\n\n") == ["It's", cells, "Use of berths (Berth, share)"]
    assert (shown.regions[-1].sheet, shown.regions[-1].cells) == ("It's", "D2")
    elsewhere = chart_part().replace("'It''s'!", "[1]Other!")
    other = parser_of(XLSX).parse(zipped({**members, "xl/charts/chart1.xml": elsewhere}))
    assert tables_of(other)[1] == [["Berth", "Full (share)"], ["N1", "12.5%"], ["N2", "50.0%"]]
    assert shown.warnings == other.warnings == ()


MATH = '<math xmlns="http://www.w3.org/1998/Math/MathML"><semantics><mrow>{}</mrow><annotation>x</annotation></semantics></math>'
OBJECT = '<draw:frame><draw:object xmlns:xlink="http://www.w3.org/1999/xlink" xlink:href="./{}"/></draw:frame>'


def open_chart(address: str = "") -> str:
    """Return the content of a chart that keeps its values; ``address`` names cells outside it."""
    names = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "text", "table", "chart")
    )
    cell = "<table:table-cell{}><text:p>{}</text:p></table:table-cell>"
    rows = [
        "<table:table-row>" + "".join(cell.format("", text) for text in texts) + "</table:table-row>"
        for texts in (("", "Full"), ("N1", "12"))
    ]
    missing = "<table:table-row>" + cell.format("", "N2") + cell.format(' office:value="NaN"', "NaN") + "</table:table-row>"
    axes = "".join(
        f'<chart:axis chart:dimension="{name}"><chart:title><text:p>{text}</text:p></chart:title></chart:axis>'
        for name, text in (("x", "Berth"), ("y", "share"))
    )
    series = f'<chart:series chart:values-cell-range-address="{address}"/>'
    return (
        f"<office:document-content {names}><office:body><office:chart><chart:chart><chart:title><text:p>Use</text:p>"
        f"</chart:title><chart:plot-area>{axes}{series}</chart:plot-area><table:table><table:table-header-rows>{rows[0]}</table:table-header-rows>"
        f"<table:table-rows>{rows[1]}{missing}</table:table-rows></table:table></chart:chart></office:chart></office:body>"
        "</office:document-content>"
    )


def test_formulas_and_charts_of_opendocument_files_stand_at_their_place() -> None:
    own, cells = open_chart("local-table.B2:.B3"), open_chart("Pay.B2:Pay.B3")
    fraction = "<mi>L</mi><mo>=</mo><mfrac><mrow><mn>3</mn><mi>W</mi></mrow><mn>8</mn></mfrac>"
    members = {"f/content_xml": MATH.format(fraction), "c/content_xml": own, "d/content_xml": cells, "e/content_xml": "<damaged"}
    shown = "".join(map(OBJECT.format, "fcde"))
    table = "| Berth | Full (share) |\n| --- | --- |\n| N1 | 12 |\n| N2 |  |"
    sheet = f'<table:table table:name="Pay"><table:shapes>{shown}</table:shapes></table:table>'
    for media_type, body, text in (
        (ODT, f"<office:text><text:p>So: {shown} tons</text:p></office:text>",
         f"So: L=(3W)/8Use (Berth, share) tons\n\nUse\n\n{table}"),
        (ODP, f"<office:presentation><draw:page>{shown}</draw:page></office:presentation>",
         f"Slide 1\n\nL=(3W)/8\n\nUse\n\n{table}\n\nUse (Berth, share)"),
        (ODS, f"<office:spreadsheet>{sheet}</office:spreadsheet>", f"Pay\n\nL=(3W)/8\n\nUse\n\n{table}\n\nUse (Berth, share)"),
    ):  # fmt: skip
        parsed = parser_of(media_type).parse(open_document(media_type, body, **members))
        assert parsed.text == text
        assert [warning.partition(" (")[0] for warning in parsed.warnings] == ["not in the text: embedded objects"]


def test_formulas_in_mathml_have_the_form_of_those_of_office() -> None:
    total = "<munderover><mo>∑</mo><mrow><mi>i</mi><mo>=</mo><mn>1</mn></mrow><mi>n</mi></munderover><mi>x</mi>"
    for formula, text in (
        ("<msup><mi>x</mi><mn>2</mn></msup><mo>\u2062</mo><msub><mi>y</mi><mi>i</mi></msub>", "x^2y_i"),
        (f"{total}", "∑_(i=1)^n x"),
        ("<msqrt><mi>x</mi><mo>+</mo><mn>1</mn></msqrt><mroot><mi>x</mi><mn>3</mn></mroot>", "√(x+1)root(3, x)"),
        ("<mfenced><mi>a</mi><mi>b</mi></mfenced><mspace/><mtext>if  so</mtext>", "(a,b)if so"),
        ("<mtable><mtr><mtd><mi>a</mi></mtd><mtd><mi>b</mi></mtd></mtr><mtr><mtd><mi>c</mi></mtd></mtr></mtable>", "a, b; c"),
    ):
        body = f"<office:text><text:p>{OBJECT.format('f')}</text:p></office:text>"
        assert parser_of(ODT).parse(open_document(ODT, body, **{"f/content_xml": MATH.format(formula)})).text == text
