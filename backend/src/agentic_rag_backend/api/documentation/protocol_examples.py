"""Values of the examples of OpenAI's protocol; see `response_examples`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_FILE, _CREATED = "file-5f0c7e1a9b2d5c3e8f60718293a4b5c6", 1_772_443_800
_STORE, _BATCH = f"vs_{_FILE[5:]}", f"vsfb_{_FILE[5:]}"
_TEXT = "The delay was caused by a cracked caisson."

PROTOCOL_VALUES: Mapping[str, Any] = {
    "FileObject.id": _FILE,
    "FileObject.created_at": _CREATED,
    "FileObject.status": "processed",
    "DeletedFile.id": _FILE,
    "file_id": _FILE,
    "vector_store_id": _STORE,
    "ObjectPage_StoreObject_.first_id": _STORE,
    "ObjectPage_StoreObject_.last_id": _STORE,
    "StoreObject.id": _STORE,
    "StoreObject.created_at": _CREATED,
    "StoreObject.name": "Minutes",
    "StoreObject.metadata": {"team": "harbour"},
    "StoreObject.filter": None,
    "StoreObject.status": "completed",
    "DeletedStore.id": _STORE,
    "last_active_at": _CREATED,
    "file_counts": {"in_progress": 0, "completed": 3, "cancelled": 0, "failed": 0, "total": 3},
    "usage_bytes": 2184,
    "ChunkingKind.type": "other",
    "StoreFile.id": _FILE,
    "StoreFile.created_at": _CREATED,
    "StoreFile.status": "completed",
    "last_error": None,
    "attributes": {"category": "minutes", "year": 2019},
    "DetachedFile.id": _FILE,
    "StoreFileBatch.id": _BATCH,
    "StoreFileBatch.created_at": _CREATED,
    "StoreFileBatch.status": "completed",
    "ResponseObject.id": f"resp_{_FILE[5:]}",
    "ResponseObject.object": "response",
    "ResponseObject.created_at": _CREATED,
    "ResponseObject.status": "completed",
    "ResponseObject.model": "auto",
    "output": [
        {
            "id": f"msg_{_FILE[5:]}",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": f"{_TEXT} [1]", "annotations": [], "logprobs": []}],
        }
    ],
    "ResponseTokens.input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
    "ResponseTokens.output_tokens_details": {"reasoning_tokens": 0},
    "ProtectedResource.resource": "https://rag.example/mcp",
    "authorization_servers": ["https://login.example/realms/rag"],
    "scopes_supported": ["read", "write", "admin"],
    "bearer_methods_supported": ["header"],
    "resource_name": "agentic-rag-backend",
    "RerankedText.document": None,
    "relevance_score": 0.82,
    "RerankResults.model": "cross_encoder",
    "RerankResults.meta": {"api_version": {"version": "2"}},
    "search_query": ["Why was the tidal barrage delayed?"],
    "StoreResult.content": [{"type": "text", "text": _TEXT}],
    "bytes": 2184,
    "filename": "minutes.md",
    "first_id": _FILE,
    "last_id": _FILE,
}
