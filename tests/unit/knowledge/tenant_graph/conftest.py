"""Graphs and a tenant."""

from __future__ import annotations

from tenant_graphs import graph_of as graph_of
from tenant_graphs import query as query
from tenant_graphs import random_graph as random_graph
from tenant_graphs import tenant as tenant
