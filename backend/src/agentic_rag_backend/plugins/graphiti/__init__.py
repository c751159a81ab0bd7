"""Adapter for Graphiti 0.31.1: the graph leg of the low level, and extraction from episodes.

``sdk`` imports it without side effects. ``clients`` implements its model interfaces with our models. ``driver`` limits its
access to the graph to one tenant. ``interface`` answers its searches from our vector store. ``search`` implements our port.
``tests/contract/test_graphiti_seams.py`` lists the functions that we call, and the private interfaces that we depend on.

Never called: ``build_communities`` and ``update_communities`` (they may not terminate, and delete existing data), ``search``
(changes a module global), ``remove_episode``, ``clear_data``, ``add_nodes_and_edges_bulk`` (writes vectors to the graph).
"""
