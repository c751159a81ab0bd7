"""Retrieval: from a request (`building`) over a strategy (`registry`) to what is found, and why (`explanation`)."""
