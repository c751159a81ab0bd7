"""The models that OpenAI's clients can name: presets of answers, and the encoder."""

from __future__ import annotations

import base64
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from agentic_rag_backend.api.dependencies import Process, Reader, container_of
from agentic_rag_backend.api.doors.openai_protocol.conversations import PRESETS
from agentic_rag_backend.api.doors.openai_protocol.reply_schemas import ERRORS, EmbeddingPage, ModelEntry, ModelPage
from agentic_rag_backend.api.doors.openai_protocol.route import OPENAI_PATH, OpenAIRoute, UnknownModel
from agentic_rag_backend.api.requests.bodies import reads
from agentic_rag_backend.container.services import Container
from agentic_rag_backend.domain.tenant import Principal
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.models.registry import BUNDLED
from agentic_rag_backend.settings import DEFAULT_EMBEDDING_MODEL
from agentic_rag_backend.tenancy.features import DUAL_LEVEL

router = APIRouter(prefix=OPENAI_PATH, tags=["openai"], route_class=OpenAIRoute, responses=ERRORS)
MAX_TEXTS = 100
MAX_TEXT_CHARACTERS = 8000
_BODY_BYTES = 4 * 1024 * 1024
_CHARACTERS_PER_TOKEN = 4

InputText = Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEXT_CHARACTERS)]


class EmbeddingsBody(BaseModel):
    """Texts to encode. Parameters that are not listed are accepted, and have no effect."""

    model_config = ConfigDict(
        extra="ignore", json_schema_extra={"examples": [{"model": BUNDLED, "input": ["a cracked caisson", "the tidal barrage"]}]}
    )

    model: Annotated[str, Field(max_length=200)]
    input: InputText | Annotated[list[InputText], Field(min_length=1, max_length=MAX_TEXTS)]
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = None


def embedding_model_of(container: Container) -> str:
    """Return the name of the encoder."""
    settings = container.settings
    if settings.embedder == "openai":
        return settings.embedding_model or DEFAULT_EMBEDDING_MODEL
    folder = settings.embedding_model_path
    return folder.name if folder is not None else settings.embedding_model or BUNDLED


def list_presets(container: Container, caller: Principal) -> list[str]:
    """Return the presets that the tenant can use."""
    dual_level = container.features.is_on(DUAL_LEVEL, caller.flags)
    return [name for name in PRESETS if dual_level or name != "dual"]


@router.get("/models", summary="List the models", responses={200: {"model": ModelPage}})
async def list_models(process: Process, caller: Reader) -> dict[str, Any]:
    """Return the presets of answers, and the encoder."""
    names = [*list_presets(process, caller), embedding_model_of(process)]
    return {"object": "list", "data": [_describe_model(name) for name in names]}


@router.get("/models/{model}", summary="Show a model", responses={200: {"model": ModelEntry}})
async def show_model(process: Process, caller: Reader, model: str) -> dict[str, Any]:
    """Return a model."""
    names = [*list_presets(process, caller), embedding_model_of(process)]
    if model not in names:
        raise UnknownModel(f"no model is named {model[:80]!r}; the models are {', '.join(names)}")
    return _describe_model(model)


def _describe_model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "agentic-rag-backend"}


@router.post("/embeddings", summary="Encode texts", responses={200: {"model": EmbeddingPage}})
@reads(lambda _: _BODY_BYTES)
async def embed_texts(request: Request, caller: Reader, body: EmbeddingsBody) -> dict[str, Any]:
    """Return unit vectors of texts, made by the encoder of the indexes. Nothing is kept."""
    container = container_of(request)
    name = embedding_model_of(container)
    if body.model != name:
        raise UnknownModel(f"no encoder is named {body.model[:80]!r}; the encoder is {name}")
    if body.dimensions not in (None, container.embedder.dimensions):
        raise InvalidRequest(
            f"dimensions must be {container.embedder.dimensions}, which the encoder has; got {body.dimensions}",
            field="dimensions",
        )
    texts = [body.input] if isinstance(body.input, str) else body.input
    vectors = np.asarray(await container.embedder.embed(texts), dtype="<f4")
    tokens = sum(len(text) // _CHARACTERS_PER_TOKEN + 1 for text in texts)
    return {
        "object": "list",
        "model": name,
        "data": [
            {"object": "embedding", "index": index, "embedding": _encode_vector(vector, body.encoding_format)}
            for index, vector in enumerate(vectors)
        ],
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


def _encode_vector(vector: np.ndarray[Any, np.dtype[np.float32]], form: str) -> str | list[float]:
    return base64.b64encode(vector.tobytes()).decode() if form == "base64" else vector.tolist()
