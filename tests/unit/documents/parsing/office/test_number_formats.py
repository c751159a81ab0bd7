from __future__ import annotations

from datetime import date, datetime, time, timedelta

from agentic_rag_backend.documents.parsing.office.sheets.number_formats import NumberFormat

MOMENT = datetime(2023, 2, 1, 14, 5, 9)  # noqa: DTZ001 - a workbook has no time zones
ACCOUNTING = '_("$"* #,##0.00_);_("$"* (#,##0.00);_("$"* "-"??_);_(@_)'


def test_values_are_shown_as_their_format_says() -> None:
    cases: dict[tuple[str, object], str | None] = {
        ("0.0 %", 0.125): "12.5 %", ("#,##0;(#,##0)", -88): "(88) (-88)", ("00.0", -3.14): "-03.1 (-3.14)", ("#.##", 5): "5",
        ("0.00", 1 / 3): "0.33", ("0", 0.4): "0 (0.4)", ("#,##0.00", -1234.5): "-1,234.50", (ACCOUNTING, 1234): "$1,234.00",
        (ACCOUNTING, 0): "$-", ("[$€-407] #,##0.00", 3.5): "€ 3.50", ("0.00E+00", 12300): "1.23E+04", ("0##", 5): "005",
        ("000-00-0000", 123456789): "123-45-6789", ('0.0,,"M"', 12500000): "12.5M", ('0 "kg"', 12): "12 kg",
        ("[Red]0;[Blue]-0;0", -5): "-5", ('"No. "000', 7): "No. 007", (";;;", 7): "", ("# ?/?", 1.5): None, ("General", 7): None,
        ("[>99]0;0.0", 7): None, ("@", 5): None, ("0.0%", True): None, ("0.0%", "text"): None, ("0" * 300, 1e300): None,
        ("dd.mm.yy", date(2023, 2, 1)): "01.02.23 (2023-02-01)", ("yyyy-mm-dd", MOMENT): "2023-02-01",
        ("d mmm yyyy", date(2023, 2, 1)): "1 Feb 2023 (2023-02-01)", ("[$-407]d. mmmm yyyy", MOMENT): None,
        ("dddd", date(2023, 2, 1)): "Wednesday (2023-02-01)", ("h:mm AM/PM", time(14, 5)): "2:05 PM",
        ("mm:ss", time(1, 5, 9)): "05:09",
        ("[h]:mm", timedelta(hours=26, minutes=30)): "26:30", ("d/m/yyyy", time(1, 2)): None, ("d/m", 5.0): None,
    }  # fmt: skip
    assert {case: NumberFormat(case[0]).show_value(case[1]) for case in cases} == cases


def test_formats_of_any_length_are_read() -> None:
    for code in ('"' * 100_000, "[" * 100_000, "0," * 100_000, "0." * 100_000 + ";" * 1000, "%" * 100_000 + "0", "E+" * 99_999):
        NumberFormat(code).show_value(-1234.5)
