"""Checks of claims in languages other than English, and of claims in another language than their passage.

No grammar is known. Numbers, names, denials, hedges and quoted words are compared, and the words around names and numbers.
"""
