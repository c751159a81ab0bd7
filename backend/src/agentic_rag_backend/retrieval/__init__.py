"""Retrieval: builds a query from a request (`building`), runs a strategy (`registry`), and explains results (`explanation`)."""
