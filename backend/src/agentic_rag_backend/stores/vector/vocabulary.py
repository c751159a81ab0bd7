"""The distinct values of each tenant's fields, for range and substring comparisons.

It may hold values that no point has any more, because their tags select nothing. It must not miss an existing value. So it is
loaded completely from the store, and every write adds to it before the store is changed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.vector.tags import read_tag

_MAX_VALUES = 500_000
FieldValues = Mapping[str, Mapping[str, Any]]
"""Field → tag → value."""


class Vocabulary:
    """Values of one collection by tenant, loaded on first use.

    Args:
        max_values: maximum number of values over all tenants. Beyond it, the least recently used tenants are dropped.
    """

    def __init__(self, *, max_values: int = _MAX_VALUES) -> None:
        self._max_values = max_values
        self._tenants: OrderedDict[TenantId, dict[str, dict[str, Any]]] = OrderedDict()
        self._size = 0

    def values(self, tenant: TenantId, load: Callable[[], Iterable[str]]) -> FieldValues:
        """Return the tenant's values. If they are not in memory, ``load`` is called for the tags of all its points."""
        if tenant not in self._tenants:
            self._tenants[tenant] = {}
            self.add(tenant, load())
        self._tenants.move_to_end(tenant)
        fields = self._tenants[tenant]
        while self._size > self._max_values and len(self._tenants) > 1:
            self.forget(next(iter(self._tenants)))
        return fields

    def add(self, tenant: TenantId, tags: Iterable[str]) -> None:
        """Add the tags of points that are about to be written. No effect if the tenant is not in memory."""
        fields = self._tenants.get(tenant)
        if fields is None:
            return
        for tag in tags:
            field, values = read_tag(tag)
            values_of_field = fields.setdefault(field, {})
            if values and tag not in values_of_field:
                values_of_field[tag] = values[0]
                self._size += 1

    def forget(self, tenant: TenantId) -> None:
        """Drop the tenant's values."""
        fields = self._tenants.pop(tenant, {})
        self._size -= sum(len(values) for values in fields.values())
