"""Known models: their files on the model hub, and the facts that `agentic-rag models list` shows.

Each file is pinned by the revision of its repository and by its SHA-256, so the hub cannot replace it unnoticed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from agentic_rag_backend.errors import ConfigurationError
from agentic_rag_backend.models.embedding.model_files import MODEL_FILE, TOKENIZER_FILE
from agentic_rag_backend.models.facts_files import BUNDLED_FACTS, EncoderFacts, Labels

Kind = Literal["encoder", "reranker", "reader"]


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file of a model. ``path`` is its path in the hub's repository, ``name`` its name in the folder of the model.

    ``sha256`` is None if the hash is not known; then the hash of the first download is recorded and required afterwards.
    """

    name: str
    path: str
    sha256: str | None = None
    size_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownModel:
    """A model by name. ``files`` is empty for the weights that the installed packages contain.

    ``labels`` are the outputs of a reader, in order.
    """

    name: str
    kind: Kind
    facts: EncoderFacts
    labels: Labels | None = None
    licence: str | None = None
    repository: str = ""
    revision: str = "main"
    files: tuple[HubFile, ...] = ()

    @property
    def size_bytes(self) -> int | None:
        """Return the size of all files; None if one is unknown."""
        sizes = [file.size_bytes for file in self.files]
        return None if None in sizes else sum(size for size in sizes if size is not None)


BUNDLED = "all-MiniLM-L6-v2"
"""The encoder that the installed packages contain."""
READER = "nli-MiniLM2-L6-H768"
"""The reader of `CLAIM_VERIFIER=nli`."""
_BERT_TOKENIZER = HubFile(
    TOKENIZER_FILE, "tokenizer.json", "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66", 711_396
)
_MODELS = (
    KnownModel(name=BUNDLED, kind="encoder", facts=BUNDLED_FACTS, licence="Apache-2.0"),
    KnownModel(
        name="bge-small-en-v1.5",
        kind="encoder",
        facts=EncoderFacts(
            dimensions=384,
            languages=("en",),
            pooling="cls",
            question_prefix="Represent this sentence for searching relevant passages: ",
            max_word_pieces=512,
        ),
        licence="MIT",
        repository="Xenova/bge-small-en-v1.5",
        revision="ea104dacec62c0de699686887e3f920caeb4f3e3",
        files=(
            HubFile(
                MODEL_FILE,
                "onnx/model_quantized.onnx",
                "6c9c6101a956d62dfb5e7190c538226c0c5bb9cb27b651234b6df063ee7dbfe4",
                34_014_426,
            ),
            _BERT_TOKENIZER,
        ),
    ),
    KnownModel(
        name="multilingual-e5-small",
        kind="encoder",
        facts=EncoderFacts(dimensions=384, question_prefix="query: ", passage_prefix="passage: ", max_word_pieces=512),
        licence="MIT",
        repository="Xenova/multilingual-e5-small",
        revision="761b726dd34fb83930e26aab4e9ac3899aa1fa78",
        files=(
            HubFile(
                MODEL_FILE,
                "onnx/model_quantized.onnx",
                "f80102d3f2a1229f387d3c81909990d8945513e347b0eab049f7de3c6f98c193",
                118_308_185,
            ),
            HubFile(
                TOKENIZER_FILE,
                "tokenizer.json",
                "0b44a9d7b51c3c62626640cda0e2c2f70fdacdc25bbbd68038369d14ebdf4c39",
                17_082_730,
            ),
        ),
    ),
    KnownModel(
        name="ms-marco-MiniLM-L-6-v2",
        kind="reranker",
        facts=EncoderFacts(languages=("en",), max_word_pieces=512),
        licence="Apache-2.0",
        repository="Xenova/ms-marco-MiniLM-L-6-v2",
        revision="a09144355adeed5f58c8ed011d209bf8ee5a1fec",
        files=(
            HubFile(
                MODEL_FILE, "onnx/model.onnx", "c623d0bcb99f4622beb413eaef00cfbe5db20df9f1dd982da4b4f26022881870", 90_992_115
            ),
            _BERT_TOKENIZER,
        ),
    ),
    KnownModel(
        name=READER,
        kind="reader",
        facts=EncoderFacts(languages=("en",), max_word_pieces=512),
        labels=("contradiction", "entailment", "neutral"),
        licence="Apache-2.0",
        repository="cross-encoder/nli-MiniLM2-L6-H768",
        revision="b95119ce93d3e065de6214e38cd4a97b0f2f2c6d",
        files=(
            HubFile(
                MODEL_FILE,
                "onnx/model_quint8_avx2.onnx",
                "44391a5241a62e0083c1a8899a71e69a092b95aea5ba89e14062925468eceac7",
                82_823_063,
            ),
            HubFile(
                TOKENIZER_FILE,
                "tokenizer.json",
                "82139106e603ee4e1d5bc99d056ccbed5a92bc24848b1b5a7137c26e00d0dbf6",
                1_356_048,
            ),
        ),
    ),
)
MODELS: Mapping[str, KnownModel] = {model.name: model for model in _MODELS}


def known_model(name: str, kind: Kind | None = None) -> KnownModel:
    """Return the model with a name.

    Raises:
        ConfigurationError: there is none of this kind; the message has the names.
    """
    names = [model.name for model in MODELS.values() if kind in (None, model.kind)]
    if name not in names:
        raise ConfigurationError(f"no known {kind or 'model'} is called {name[:80]!r}; known are {', '.join(names)}")
    return MODELS[name]


def reranker_of(repository: str) -> KnownModel:
    """Return the reranker with a name or a repository of the hub. The hashes of an unknown repository are not known."""
    for model in MODELS.values():
        if model.kind == "reranker" and repository in (model.name, model.repository):
            return model
    return KnownModel(
        name=repository.replace("/", "--"),
        kind="reranker",
        facts=EncoderFacts(max_word_pieces=512),
        repository=repository,
        files=(HubFile(MODEL_FILE, "onnx/model.onnx"), HubFile(TOKENIZER_FILE, "tokenizer.json")),
    )
