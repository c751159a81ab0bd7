"""reStructuredText and notebooks."""

from __future__ import annotations

import json

import pytest

from agentic_rag_backend.domain.media_types import NOTEBOOK, RST
from agentic_rag_backend.errors import UnreadableDocument
from agentic_rag_backend.ingestion.parsing.registry import parser_of

GUIDE = """\
=====
Tides
=====

:Author: Nils Berg

The *lock* of **Sarn** closes at ``21:40``; see :ref:`the code <code>`, `the site <https://example.org>`_ and a note [1]_.

.. a comment
.. _target: https://example.org

Tables
------

+-------+-------+
| Port  | Depth |
+=======+=======+
| Sarn  | 4 m   |
| North |       |
+-------+-------+

=====  =====
Port   Depth
=====  =====
Sarn   4 m
North  5 m
=====  =====

.. csv-table:: Fees
   :header: Boat, Fee

   Barge, 9

.. list-table::
   :header-rows: 1

   * - Boat
     - Fee
   * - Tug
     - 7

Lists
~~~~~

- Oil the
  hinge.
- Grease it.

Run::

    open --all

.. note:: Wear gloves.

   Always.

.. code-block:: python

   print(1)

.. include:: other.rst
.. [1] From 1911.
"""
TEXT = [
    "Tides", "Author: Nils Berg", "The lock of Sarn closes at 21:40; see the code, the site and a note [1].", "Tables",
    "| Port | Depth |\n| --- | --- |\n| Sarn North | 4 m |", "| Port | Depth |\n| --- | --- |\n| Sarn | 4 m |\n| North | 5 m |",
    "Fees", "| Boat | Fee |\n| --- | --- |\n| Barge | 9 |", "| Boat | Fee |\n| --- | --- |\n| Tug | 7 |", "Lists",
    "- Oil the hinge.\n- Grease it.", "Run:", "open --all", "Note: Wear gloves.", "Always.", "print(1)", "[1] From 1911.",
]  # fmt: skip


def test_restructured_text_is_read_without_its_marks() -> None:
    parsed = parser_of(RST).parse(GUIDE.encode())
    assert parsed.text.split("\n\n") == TEXT
    assert parsed.title == parser_of(RST).check(GUIDE.encode(), is_whole=True).title == "Tides"
    assert [(heading.level, heading.title) for heading in parsed.headings] == [(1, "Tides"), (2, "Tables"), (3, "Lists")]
    assert parsed.warnings == ("not in the text: included files and generated documentation (1)",)


def test_a_role_may_follow_its_text() -> None:
    text = "E = `mc^2`:math: and `see <a>`:ref:, not ``a``:sup: or `b`: c"
    assert parser_of(RST).parse(text.encode()).text == "E = mc^2 and see, not a:sup: or b: c"


def test_hostile_restructured_text_takes_linear_time() -> None:
    for unit in ("* a\n b\n", ":a", "`" + " " * 50, "| a |\n", "== ==\n", ".. a::\n\n", " " * 30 + "x\n", "*a ", "a_ "):
        assert len(parser_of(RST).parse(("Title\n\n" + unit * (200_000 // len(unit))).encode()).text) >= 5
    nested = "\n".join(" " * depth + "- x" for depth in range(500))
    assert parser_of(RST).parse(nested.encode()).text.count("x") == 500


def cell(kind: str, source: object, outputs: object = ()) -> dict[str, object]:
    return {"cell_type": kind, "source": source, "outputs": list(outputs) if isinstance(outputs, tuple) else outputs}


def test_a_notebook_is_its_cells_and_the_text_of_outputs() -> None:
    outputs = (
        {"output_type": "stream", "text": ["one\n", "two"]},
        {
            "output_type": "execute_result",
            "data": {"text/html": "<table><tr><th>a<th>b<tr><td>1<td>2</table>", "text/plain": "a 1"},
        },
        {"output_type": "display_data", "data": {"image/png": "iVBOR"}},
        {"output_type": "error", "ename": "KeyError", "evalue": "'x'"},
    )
    cells = [cell("markdown", ["# Tides\n", "Text."]), cell("code", "# no heading\nprint(1)", outputs), cell("raw", "raw")]
    content = {"cells": cells, "metadata": {"kernelspec": {"language": "python"}}, "nbformat": 4}
    parsed = parser_of(NOTEBOOK).parse(json.dumps(content).encode())
    code = "```python\n# no heading\nprint(1)\n```"
    assert parsed.text == f"# Tides\nText.\n\n{code}\n\none\ntwo\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\nKeyError: 'x'\n\nraw"
    assert (parsed.title, [heading.title for heading in parsed.headings]) == ("Tides", ["Tides"])
    assert parsed.warnings == ("not in the text: pictures and other outputs without text (1)",)
    old = {
        "worksheets": [{"cells": [{"cell_type": "heading", "level": 2, "source": "Old"}, {"cell_type": "code", "input": "1"}]}]
    }
    assert parser_of(NOTEBOOK).parse(json.dumps(old).encode()).text == "## Old\n\n```\n1\n```"
    damaged: object
    for damaged in (
        [],
        {"cells": 1},
        {"cells": [cell("code", None, 2), 3]},
        {"cells": [cell("code", "", [{"output_type": "error", "data": 1}])]},
    ):
        with pytest.raises(UnreadableDocument):
            parser_of(NOTEBOOK).parse(json.dumps(damaged).encode())
