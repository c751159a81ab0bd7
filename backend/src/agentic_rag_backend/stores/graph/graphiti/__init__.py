"""Graphiti 0.31.1, and the one place that knows it: its search as the graph leg of the low level.

``sdk`` imports it without its side effects, ``clients`` puts our models behind its interfaces, ``driver`` lets it reach the
graph within one tenant only, ``interface`` answers its searches from our vector store, ``search`` is the port's adapter.
What of it is called, and which private seams that rests on, is in ``tests/contract/test_graphiti_seams.py``.

Never called: ``build_communities`` and ``update_communities`` (may not end, and wipe what is there), ``search`` (changes a
module global), ``remove_episode``, ``clear_data``, ``add_nodes_and_edges_bulk`` (writes vectors to the graph).
"""
