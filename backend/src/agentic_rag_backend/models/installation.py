"""Installs known models into a folder, and verifies their files."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agentic_rag_backend.errors import ConfigurationError, ModelUnavailable
from agentic_rag_backend.models.facts_files import FACTS_FILE, READER_FACTS_FILE, ReaderFacts, written_facts, written_reader_facts
from agentic_rag_backend.models.registry import HubFile, KnownModel

CHECKSUMS_FILE = "checksums.json"
"""Hashes that were recorded at the first download of files whose hash was not known."""
OnProgress = Callable[[str, int, int | None], None]
"""Receives the name of a file, its bytes that are there, and all its bytes; None if unknown."""


class ModelSource(Protocol):
    """A place that has the files of models."""

    def fetch(self, model: KnownModel, file: HubFile, part: Path, on_progress: OnProgress) -> None:
        """Complete ``part``, which may have the beginning of the file.

        Raises:
            ModelUnavailable: the file cannot be had.
        """


@dataclass(frozen=True, slots=True)
class Hub:
    """The model hub, or a mirror with the same paths."""

    url: str

    def fetch(self, model: KnownModel, file: HubFile, part: Path, on_progress: OnProgress) -> None:
        """See `ModelSource`."""
        from agentic_rag_backend.models.download import download_file  # the HTTP client is slow to import

        if file.sha256 is None:  # nothing would show that the beginning belongs to another version
            part.write_bytes(b"")
        address = f"{self.url.rstrip('/')}/{model.repository}/resolve/{model.revision}/{file.path}"
        download_file(
            address,
            part,
            size_bytes=file.size_bytes,
            on_bytes=lambda loaded_bytes, total: on_progress(f"{model.name}: {file.name}", loaded_bytes, total),
        )


@dataclass(frozen=True, slots=True)
class LocalFolder:
    """A folder with the files by the name that they have when they are installed, or by their path on the hub."""

    path: Path

    def fetch(self, model: KnownModel, file: HubFile, part: Path, on_progress: OnProgress) -> None:
        """See `ModelSource`."""
        source_path = next(
            (candidate for candidate in (self.path / file.name, self.path / file.path) if candidate.is_file()), None
        )
        if source_path is None:
            names = " or ".join(dict.fromkeys((file.name, file.path)))
            raise ModelUnavailable(f"{self.path} lacks {names} of {model.name}")
        on_progress(f"{model.name}: {file.name}", 0, source_path.stat().st_size)
        shutil.copyfile(source_path, part)


def has_files(model: KnownModel, models: Path) -> bool:
    """Return whether every file is there with its size. The content is not read."""
    return all(_is_complete(models / model.name / file.name, file.size_bytes) for file in model.files)


def require_files(model: KnownModel, models: Path) -> Path:
    """Return the folder of an installed model. Every file is read and verified.

    Raises:
        ConfigurationError: a file is missing, or differs from the one that was pinned.
    """
    folder = models / model.name
    if not has_files(model, models):
        raise ConfigurationError(f"{model.name} is not installed in {models}; run 'agentic-rag models pull {model.name}'")
    checksums = _read_checksums(folder)
    for file in model.files:
        expected = file.sha256 or checksums.get(file.name)
        if expected is not None and (actual := _hash_file(folder / file.name)) != expected:
            raise ConfigurationError(
                f"{folder / file.name} has SHA-256 {actual}, not {expected}; run 'agentic-rag models pull {model.name}'"
            )
    return folder


def install_model(model: KnownModel, models: Path, source: ModelSource, on_progress: OnProgress = lambda *_: None) -> Path:
    """Return the folder of the model below ``models``, with every file verified. Only missing or wrong files are fetched.

    A file replaces another one when its hash is verified, in one step.

    Raises:
        ModelUnavailable: a file cannot be had, has the wrong hash, or cannot be written.
    """
    folder = models / model.name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _lock_folder(folder):
            for file in model.files:
                _install_file(model, file, folder, source, on_progress)
            if model.kind == "encoder":
                (folder / FACTS_FILE).write_bytes(written_facts(model.facts))
            elif model.labels is not None:
                facts = ReaderFacts(model.labels, model.facts.max_word_pieces)
                (folder / READER_FACTS_FILE).write_bytes(written_reader_facts(facts))
    except OSError as error:
        raise ModelUnavailable(f"{model.name} cannot be installed in {folder}: {error.strerror or error}") from error
    return folder


def _install_file(model: KnownModel, file: HubFile, folder: Path, source: ModelSource, on_progress: OnProgress) -> None:
    target, part = folder / file.name, folder / f"{file.name}.part"
    checksums = _read_checksums(folder)
    expected = file.sha256 or checksums.get(file.name)
    if not target.is_file() or expected not in (None, _hash_file(target)):
        part.touch(mode=0o600)
        source.fetch(model, file, part, on_progress)
        actual = _hash_file(part)
        if expected not in (None, actual):
            part.unlink()
            raise ModelUnavailable(f"{file.path} of {model.name} has SHA-256 {actual}, not {expected}; it was not installed")
        part.replace(target)
    if expected is None:
        record = json.dumps({**checksums, file.name: _hash_file(target)}, indent=2)
        (folder / CHECKSUMS_FILE).write_text(record + "\n", encoding="utf-8")


@contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    """Keep other processes from installing into a folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _is_complete(path: Path, size_bytes: int | None) -> bool:
    return path.is_file() and size_bytes in (None, path.stat().st_size)


def _read_checksums(folder: Path) -> dict[str, str]:
    try:
        checksums = json.loads((folder / CHECKSUMS_FILE).read_bytes())
    except FileNotFoundError:
        return {}
    except ValueError:
        checksums = None
    if not isinstance(checksums, dict):
        raise ConfigurationError(
            f"{folder / CHECKSUMS_FILE} is damaged; remove it and the model files next to it, and pull again"
        )
    return {str(name): str(sha256) for name, sha256 in checksums.items()}


def _hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
