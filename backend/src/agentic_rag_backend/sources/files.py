"""Selects files by paths, folders and patterns, and derives the keys of their documents."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agentic_rag_backend.domain.media_types import BY_SUFFIX
from agentic_rag_backend.domain.size_limits import MAX_DOCUMENT_KEY_CHARACTERS
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.sources.fingerprints import FingerprintTable, hash_content

TABLES = frozenset({".jsonl", ".ndjson", ".csv", ".tsv"})
"""Files whose rows can be documents. Without the name of the text column, a table is one document."""
SUFFIXES = frozenset(BY_SUFFIX)
"""Suffixes of the files that are taken from folders and patterns."""
SKIPPED_LISTED = 100
"""Maximum skipped files that are listed. All are counted."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file to submit. ``key`` identifies its document in all versions. With ``by_rows``, its rows are the documents, and
    ``key`` is the prefix of their keys.
    """

    path: Path
    key: str
    by_rows: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """The selected files by key, and the number of other files in the folders."""

    sources: tuple[Source, ...]
    skipped: int


class Walk:
    """The files that ``paths`` select: files, folders with all their content, patterns such as ``notes/**/*.md``.

    A key is the path below the given folder (or below the fixed part of a pattern) with ``/``. The key of a single file is its
    name. Submitting a folder again therefore matches the same documents. Hidden files and folders are left out, links to folders
    are not followed. Each iteration walks the paths again, in the same order. It holds in memory the names in one folder and in
    the folders above it, and all paths of a pattern.

    Args:
        key: key of a single file.
        by_rows: whether the rows of tables are the documents.

    Attributes:
        skipped: number of other files in the folders, known after an iteration.
        skipped_keys: the first `SKIPPED_LISTED` of them.
    """

    def __init__(self, paths: Sequence[str], *, key: str | None = None, by_rows: bool = False) -> None:
        self.skipped = 0
        self.skipped_keys: list[str] = []
        self._paths = paths
        self._key = key
        self._by_rows = by_rows

    def __iter__(self) -> Iterator[Source]:
        """Yield each file once.

        Raises:
            InvalidRequest: a path or pattern matches nothing, two files have the same key, a folder cannot be read, or ``key`` is
                given for several files.
        """
        self.skipped = 0
        self.skipped_keys = []
        keys, paths = FingerprintTable(), FingerprintTable()
        for path_text in self._paths:
            empty = True
            for source in self._list_sources(path_text):
                empty = False
                path = hash_content(os.fsencode(source.path.absolute()))
                if paths.store_first(path, 0) is not None:
                    continue
                yield self._with_key(source, keys, len(paths))
            if empty:
                raise InvalidRequest(f"{path_text!r} holds no document; supported suffixes are {', '.join(sorted(SUFFIXES))}")

    def _with_key(self, source: Source, keys: FingerprintTable, number: int) -> Source:
        if self._key is not None:
            if number > 1:
                raise InvalidRequest(f"--key names one document; the paths name {_count_files(self._paths)} files")
            return replace(source, key=self._key)
        if len(source.key) > MAX_DOCUMENT_KEY_CHARACTERS:
            raise InvalidRequest(
                f"a key may have at most {MAX_DOCUMENT_KEY_CHARACTERS} characters; {source.path} would get {len(source.key)}"
            )
        if keys.store_first(hash_content(source.key.encode("utf-8", errors="surrogateescape")), number) is not None:
            # Keys are not kept in memory; the other file is searched only if a message needs it.
            other_path = next(
                (
                    candidate.path
                    for path_text in self._paths
                    for candidate in self._list_sources(path_text)
                    if candidate.key == source.key
                ),
                None,
            )
            raise InvalidRequest(
                f"{other_path} and {source.path} would both have the key {source.key!r}; submit the folder that contains both"
            )
        return source

    def _list_sources(self, path_text: str) -> Iterator[Source]:
        path = Path(path_text)
        if path.is_dir():
            yield from self._select_files(path, _walk_folder(path))
        elif path.exists():
            yield self._make_source(path, path.name)
        elif glob.has_magic(path_text):
            matches = sorted(glob.iglob(path_text, recursive=True))  # noqa: PTH207 - Path.glob accepts no absolute pattern
            yield from self._select_files(_fixed_part(path_text), map(Path, matches))
        else:
            raise InvalidRequest(f"there is no file or folder {path_text!r}")

    def _select_files(self, root: Path, paths: Iterator[Path]) -> Iterator[Source]:
        for path in paths:
            relative = path.relative_to(root)
            if any(part.startswith(".") for part in relative.parts) or not path.is_file():
                continue
            if path.suffix.lower() in SUFFIXES:
                yield self._make_source(path, relative.as_posix())
                continue
            self.skipped += 1
            if len(self.skipped_keys) < SKIPPED_LISTED:
                self.skipped_keys.append(relative.as_posix())

    def _make_source(self, path: Path, key: str) -> Source:
        return Source(path, key, by_rows=self._by_rows and path.suffix.lower() in TABLES)


def find_sources(paths: Sequence[str], *, key: str | None = None) -> Found:
    """Return all files that ``paths`` select. See `Walk` for details and errors."""
    walk = Walk(paths, key=key)
    sources = tuple(walk)
    return Found(sources, walk.skipped)


def _walk_folder(folder: Path) -> Iterator[Path]:
    """Yield a folder's content in the order of names. No folder stays open during the iteration."""
    try:
        with os.scandir(folder) as entries:
            children = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
    except OSError as error:
        raise InvalidRequest(f"the folder {str(folder)!r} cannot be read: {error.strerror or error}") from None
    for name, is_folder in children:
        if name.startswith("."):
            continue
        if is_folder:
            yield from _walk_folder(folder / name)
        else:
            yield folder / name


def _fixed_part(pattern: str) -> Path:
    fixed = []
    for part in Path(pattern).parts[:-1]:
        if glob.has_magic(part):
            break
        fixed.append(part)
    return Path(*fixed)


def _count_files(paths: Sequence[str]) -> int:
    return sum(1 for _ in Walk(paths))
