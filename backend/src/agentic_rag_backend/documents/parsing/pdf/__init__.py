"""Reads PDF files with PDFium, which gives characters and their boxes. Lines, columns, tables and paragraphs are found here.

``pdf_parser`` is the entry, and ``page_reading`` reads the pages. ``text_words`` reads the words of a page, without those that
``quality.visibility`` finds hidden, and ``superscripts`` marks raised and lowered ones. ``forms`` adds values of fields and
comments. ``tables`` finds ruled tables, ``text_columns`` puts all of it in reading order, and ``text_lines`` forms lines.
``furniture`` recognises running heads, ``paragraphs`` joins lines, ``headings`` finds headings, and ``text_assembly`` builds the
text. ``rendering`` draws a page.
"""
