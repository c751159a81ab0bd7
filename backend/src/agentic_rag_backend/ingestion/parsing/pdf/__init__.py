"""Reads PDF files with PDFium, which gives characters and their boxes. Lines, columns, tables and paragraphs are found here.

``parser`` is the entry. ``words`` reads the words of a page, ``rulings`` and ``tables`` find its ruled tables, ``columns`` puts
all of it in reading order, and ``lines`` forms lines. ``furniture`` recognises running headers and footers, ``paragraphs`` joins
lines, ``headings`` finds headings, and ``assembly`` builds the text. ``rendering`` draws a page.
"""
