"""Names in a text: their spans, their other names, and what is said of their bearers."""
