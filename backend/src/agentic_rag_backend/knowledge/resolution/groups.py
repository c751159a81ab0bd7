"""Groups the names of one document: names that the document calls aliases of each other are one entity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from agentic_rag_backend.domain.graph import UNDECIDED_TYPES, Alias, Extraction, normalise_name
from agentic_rag_backend.knowledge.identity.edits import Edits
from agentic_rag_backend.knowledge.identity.names import DocumentNames, OwnName
from agentic_rag_backend.knowledge.resolution.limits import LeftOut, NameKeys, NameLimits, limit_names
from agentic_rag_backend.language.descriptions import Description

UNTYPED = "other"


@dataclass(slots=True)
class Group:
    """The names of one entity within one document; ``aliases`` also hold outside of it."""

    key: str
    texts: Counter[str] = field(default_factory=Counter)
    types: Counter[str] = field(default_factory=Counter)
    aliases: dict[str, str] = field(default_factory=dict)
    description: Description = field(default_factory=Description)

    @property
    def name(self) -> str:
        """The spelling used most, the first of them."""
        return max(self.texts, key=lambda text: self.texts[text]) if self.texts else self.key

    @property
    def type(self) -> str:
        """The type given by most mentions. Undecided mentions do not count if there is a decided one."""
        decided = {name: count for name, count in self.types.items() if name not in UNDECIDED_TYPES}
        return max(decided or self.types or {UNTYPED: 1}, key=lambda name: ((decided or self.types)[name], name))


@dataclass(frozen=True, slots=True)
class GroupedNames:
    """The names of a document within the limits.

    Attributes:
        extractions: the extractions without names beyond the limits.
        groups: the groups by root key.
        roots: the root key of every normalised name.
        keys: normalises names.
        left_out: the names beyond the limits.
    """

    extractions: Sequence[Extraction]
    groups: dict[str, Group]
    roots: dict[str, str]
    keys: NameKeys
    left_out: LeftOut


def group_names(extractions: Sequence[Extraction], limits: NameLimits, edits: Edits) -> GroupedNames:
    """Group the names of a document. Takes time in proportion to the extractions.

    The first name given for an alias wins, and aliases that an editor denied do not count.
    """
    keys, left_out = NameKeys(), LeftOut()
    permitted = [_drop_denied_aliases(extraction, edits) for extraction in extractions] if edits else extractions
    limited = limit_names(permitted, limits, keys, left_out)
    forest = _AliasForest(limits.aliases_per_name)
    for alias in _all_aliases(limited):
        left_out.aliases += not forest.join(keys(alias.alias), keys(alias.name))
    grouping = _Grouping(forest, keys)
    for extraction in limited:
        grouping.add_names(extraction)
    for extraction in limited:
        grouping.add_statements(extraction)
    return GroupedNames(limited, grouping.groups, grouping.roots, keys, left_out)


def names_of_document(extractions: Sequence[Extraction], limits: NameLimits, edits: Edits) -> DocumentNames:
    """Return the names of a document as `Identities` compares them with other documents."""
    grouped = group_names(extractions, limits, edits)
    numbers = {key: number for number, key in enumerate(grouped.groups)}
    chunks = [
        tuple(
            dict.fromkeys(numbers[grouped.roots[key]] for mention in extraction.mentions if (key := grouped.keys(mention.name)))
        )
        for extraction in grouped.extractions
    ]
    names = [OwnName(group.key, group.type, group.aliases, group.description) for group in grouped.groups.values()]
    return DocumentNames(tuple(names), tuple(chunks))


def is_local(name: str, alias: str) -> bool:
    """Return whether ``alias`` is only a part of ``name``, such as a surname. Such an alias holds in its own document only.

    A title without its disambiguator ("Rome" of "Rome (film)") is a name everywhere.
    """
    if name.rstrip().endswith(")") and "(" in name:
        return False
    words = normalise_name(name).split()
    return all(word in words for word in normalise_name(alias).split())


def _drop_denied_aliases(extraction: Extraction, edits: Edits) -> Extraction:
    """Return an extraction without aliases that an editor denied."""
    permitted = tuple(
        alias for alias in extraction.aliases if not edits.apart(normalise_name(alias.name), normalise_name(alias.alias))
    )
    return extraction if len(permitted) == len(extraction.aliases) else replace(extraction, aliases=permitted)


def _all_aliases(extractions: Sequence[Extraction]) -> Iterator[Alias]:
    for extraction in extractions:
        yield from extraction.aliases


class _AliasForest:
    """Disjoint sets of names. The root of a set is the name that is no alias.

    Paths are halved, so that chains cost no more than stars.

    Args:
        most: aliases that a root may have.
    """

    def __init__(self, max_aliases: int) -> None:
        self._most = max_aliases
        self._parents: dict[str, str] = {}
        self._sizes: dict[str, int] = {}

    def root(self, key: str) -> str:
        """Return the root of the set of a name."""
        parents = self._parents
        while (parent := parents.get(key)) is not None:
            if (grandparent := parents.get(parent)) is not None:
                parents[key] = grandparent
            key = parent
        return key

    def join(self, alias: str, name: str) -> bool:
        """Make ``alias`` an alias of ``name``, unless it is one already. Return False if the name has too many of them."""
        if not alias or not name or alias in self._parents or (root := self.root(name)) == alias:
            return True
        size = self._sizes.get(root, 0) + self._sizes.get(alias, 0) + 1
        if size > self._most:
            return False
        self._parents[alias] = root
        self._sizes[root] = size
        return True


class _Grouping:
    """Collects the groups of a document chunk by chunk."""

    def __init__(self, forest: _AliasForest, keys: NameKeys) -> None:
        self.groups: dict[str, Group] = {}
        self.roots: dict[str, str] = {}
        self._forest = forest
        self._keys = keys
        self._described: set[tuple[str, str]] = set()

    def add_names(self, extraction: Extraction) -> None:
        """Count the spellings and types of names."""
        for mention in extraction.mentions:
            self._count_name(mention.name, mention.type, 1)
        for relationship in extraction.relationships:
            self._count_name(relationship.source, relationship.source_type, 0)
            self._count_name(relationship.target, relationship.target_type, 0)

    def add_statements(self, extraction: Extraction) -> None:
        """Add descriptions and the aliases that hold in other documents."""
        for description in extraction.descriptions:
            group = self._group_of(self._keys(description.name))
            if group is not None and (group.key, description.text) not in self._described:
                self._described.add((group.key, description.text))
                group.description |= Description.parse(description.text)
        for alias in extraction.aliases:
            self._count_name(alias.name, alias.type, 0)
            key = self._keys(alias.alias)
            group = self._group_of(key)
            if group is not None and key != group.key and not is_local(alias.name, alias.alias):
                group.aliases.setdefault(key, _normalise_spaces(alias.alias))

    def _group_of(self, key: str) -> Group | None:
        if not key:
            return None
        root = self.roots.get(key)
        if root is None:
            root = self.roots[key] = self._forest.root(key)
            self.roots.setdefault(root, root)
        group = self.groups.get(root)
        if group is None:
            group = self.groups[root] = Group(root)
        return group

    def _count_name(self, text: str, type_: str, times: int) -> None:
        key = self._keys(text)
        group = self._group_of(key)
        if group is None:
            return
        group.types[type_] += times
        if key == group.key:
            group.texts[_normalise_spaces(text)] += times


def _normalise_spaces(text: str) -> str:
    return " ".join(text.split())
