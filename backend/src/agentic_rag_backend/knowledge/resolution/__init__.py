"""Entity resolution: maps the names of a document to entity ids.

``limits`` bounds the names that are read. ``groups`` joins the names of one entity within the document. ``knowledge.identity``
assigns an entity to each group. ``assembly`` builds the document's knowledge from both. ``resolver`` runs these steps: the pure
ones off the event loop, the reads of the graph on it.
"""
