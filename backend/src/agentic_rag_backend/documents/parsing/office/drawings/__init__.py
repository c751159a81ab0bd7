"""Charts, diagrams and embedded objects of office files, as tables, lists and formulas."""
