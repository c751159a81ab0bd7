"""Workbooks of all formats: their values as shown, their tables and their hidden parts."""
