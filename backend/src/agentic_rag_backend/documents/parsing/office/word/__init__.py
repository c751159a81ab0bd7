"""Word documents: paragraphs, numbers, tables, formulas and inserted files."""
