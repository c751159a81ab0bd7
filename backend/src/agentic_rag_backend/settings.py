"""Settings from environment variables, ``.env`` or a YAML file. Only the cli, the api and the container read them."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from typing import Any, Literal, get_origin

from pydantic import Field, SecretStr, ValidationInfo, field_validator, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from agentic_rag_backend.domain.tenant import ONLY_OPERATOR
from agentic_rag_backend.settings_derived import derive_values
from agentic_rag_backend.settings_endpoints import body_fields, endpoint_address
from agentic_rag_backend.settings_file import CONFIG_VARIABLE, ConfigFile
from agentic_rag_backend.settings_oidc import check_issuer, parse_algorithms, parse_claim_values, parse_list, parse_scopes
from agentic_rag_backend.settings_operators import MIN_KEY_CHARACTERS, join_operators, parse_pairs, read_pairs

DEFAULT_EMBEDDING_MODEL = "text-embedding-3-small"
"""The model of EMBEDDER=openai if EMBEDDING_MODEL is unset."""


class Settings(BaseSettings):
    """All settings of a process. Each field's environment variable is its name in capitals; ``.env.example`` lists them.

    Options of the constructor have priority, then the environment, then ``.env``, then the YAML file that
    ``AGENTIC_RAG_CONFIG`` names. `settings_reading.read_settings` raises readable errors for invalid values.

    Raises:
        pydantic.ValidationError: a value is outside its limits.
        ConfigurationError: the YAML file cannot be read, or contains an unknown setting.
    """

    model_config = SettingsConfigDict(
        env_file=".env", env_file_encoding="utf-8", extra="ignore", frozen=True, env_ignore_empty=True
    )

    # --- the process
    host: str = Field("127.0.0.1", description="address the server listens on")
    port: int = Field(8000, ge=0, le=65535, description="port the server listens on; 0 picks a free one")
    data_dir: Path = Field(Path("./data"), description="folder for all data of the embedded profile")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="lowest severity that is logged")
    log_format: Literal["console", "json"] = Field("console", description="format of the log on stderr")
    request_timeout_s: float = Field(60.0, gt=0, le=600, description="seconds that a whole request may take")
    header_timeout_s: float = Field(
        10.0, gt=0, le=300, description="seconds that a client may take to send the request line and headers"
    )
    body_timeout_s: float = Field(
        15.0, gt=0, le=300, description="seconds without progress while a request body is sent or a response is read"
    )
    keep_alive_s: int = Field(10, ge=1, le=3600, description="seconds an idle connection stays open between requests")
    max_connections: int = Field(2000, ge=1, le=100_000, description="maximum number of open connections; further ones get 503")
    max_connections_per_client: int = Field(
        200,
        ge=0,
        le=100_000,
        description="maximum number of open connections per client address; further ones get 429; 0: no limit (behind a proxy)",
    )
    max_wrong_keys_per_client: int = Field(
        30,
        ge=0,
        le=100_000,
        description="number of wrong keys from one client address before further ones get 429, for a growing time; 0: no limit",
    )
    trusted_proxies: str = Field(
        "",
        description="addresses or networks of proxies whose X-Forwarded-For names the client, separated by commas; empty: none",
    )
    cors_origins: str = Field(
        "", description="origins that may call the API from a browser (CORS), separated by commas; *: all; empty: none"
    )
    public_url: str | None = Field(
        None,
        description="address at which people reach this server, such as https://rag.example, for links to documents; "
        "default: the address of each request",
    )
    operator_key: SecretStr | None = Field(None, description="key for the operator routes (32 characters or more)")
    operator_keys: SecretStr | None = Field(
        None,
        description="keys of several operators, as NAME=KEY pairs separated by commas (32 characters or more a key); "
        "the name shows in logs and usage",
    )
    operator_keys_file: Path | None = Field(
        None, description="file with keys of operators, one NAME=KEY a line; # begins a comment; read when a process starts"
    )
    metrics_key: SecretStr | None = Field(
        None, description="key that reads /metrics and nothing else (32 characters or more); the operator's key reads it, too"
    )
    metrics_public: bool = Field(False, description="serve /metrics without a key")
    otel_traces_exporter: Literal["none", "otlp", "console"] = Field(
        "none", description="where OpenTelemetry traces go; otlp: a collector, by HTTP; needs the extra `telemetry`"
    )
    otel_exporter_otlp_endpoint: str | None = Field(
        None, description="address of the collector, without /v1/traces; unset: http://localhost:4318"
    )
    otel_service_name: str = Field("agentic-rag-backend", min_length=1, description="name of the service in traces")
    otel_traces_sampler_arg: float = Field(
        1.0, ge=0, le=1, description="share of traces that are recorded; a `traceparent` header has priority"
    )
    otel_traces_content: bool = Field(False, description="record questions and answers in traces")
    oidc_issuer: str | None = Field(
        None,
        description="address of the OpenID provider whose tokens are accepted instead of keys, as its tokens spell it; needs "
        "OIDC_AUDIENCE",
    )
    oidc_audience: str = Field(
        "", description="values of aud that tokens for this server have, separated by commas, such as the address of /mcp"
    )
    oidc_algorithms: str = Field("RS256,PS256,ES256,EdDSA", description="algorithms of signatures of tokens, separated by commas")
    oidc_leeway_s: float = Field(30.0, ge=0, le=300, description="seconds that the clocks of provider and server may differ by")
    oidc_keys_max_age_s: float = Field(
        3600.0, ge=60, le=86_400, description="seconds for which the provider's keys are used while it does not respond"
    )
    oidc_tenant_claim: str = Field(
        "tenant", min_length=1, max_length=200, description="claim that names the tenant; names joined by dots reach inner claims"
    )
    oidc_tenants: str = Field(
        "",
        description="tenant (id or name) of each value of that claim, as VALUE=TENANT pairs separated by commas; empty: the "
        "value is the id or name",
    )
    oidc_scopes_claim: str = Field(
        "scope", min_length=1, max_length=200, description="claim that has the scopes, as words or a list"
    )
    oidc_scopes: str = Field(
        "read=read,write=write,admin=admin",
        description="scope of each value of that claim, as VALUE=SCOPE pairs separated by commas; other values grant nothing",
    )
    max_upload_mb: int = Field(50, ge=1, le=1024, description="maximum size of an uploaded file, MiB")
    max_import_mb: int = Field(
        10_240, ge=1, le=1_048_576, description="maximum size of a tenant archive, MiB; the unpacked size may be ten times larger"
    )

    # --- quotas of tenants that have no others
    quota_requests_per_minute: int | None = Field(None, ge=0, description="requests a minute; unset: no limit")
    quota_concurrent_requests: int | None = Field(None, ge=0, description="requests that run at once; unset: no limit")
    quota_documents: int | None = Field(None, ge=0, description="documents; unset: no limit")
    quota_chunks: int | None = Field(None, ge=0, description="chunks of all documents; unset: no limit")
    quota_bytes: int | None = Field(None, ge=0, description="bytes of all uploaded files; unset: no limit")
    quota_jobs_waiting: int | None = Field(None, ge=0, description="jobs that wait for their turn; unset: no limit")
    quota_tokens_per_day: int | None = Field(
        None, ge=0, description="tokens that models read and write for a tenant in a day (UTC); unset: no limit"
    )
    quota_tokens_per_month: int | None = Field(None, ge=0, description="the same in a calendar month; unset: no limit")
    quota_cost_per_day: float | None = Field(
        None, ge=0, description="cost of models in a day (UTC), in the currency of MODEL_PRICES; unset: no limit"
    )
    quota_cost_per_month: float | None = Field(None, ge=0, description="the same in a calendar month; unset: no limit")

    # --- stores
    deployment: str = Field(
        "agentic_rag",
        pattern="^[a-z][a-z0-9_]{0,39}$",
        description="name of this deployment on shared servers; prefix of its Qdrant collections",
    )
    database_url: str | None = Field(None, description="SQLAlchemy URL of the catalogue; unset: SQLite in DATA_DIR")
    database_timeout_s: float = Field(
        10.0, gt=0, le=300, description="timeout of one read from PostgreSQL, including the connection, seconds"
    )
    graph_store: Literal["sqlite", "neo4j"] = Field("sqlite", description="store of the knowledge graph")
    neo4j_uri: str | None = Field(
        None, description="address for GRAPH_STORE=neo4j, bolt:// or neo4j://; with TLS bolt+s:// or neo4j+s://"
    )
    neo4j_user: str = Field("neo4j", description="user name for Neo4j")
    neo4j_password: SecretStr | None = Field(None, description="password for Neo4j; unset: no authentication")
    neo4j_database: str = Field("neo4j", description="database in Neo4j")
    neo4j_pool_size: int = Field(20, ge=1, le=1000, description="maximum number of connections to Neo4j")
    neo4j_timeout_s: float = Field(
        10.0, gt=0, le=300, description="timeout of one read from Neo4j, including the connection, seconds"
    )
    graphiti_search_enabled: bool = Field(True, description="find facts with Graphiti's search; needs GRAPH_STORE=neo4j")
    graphiti_search_timeout_s: float = Field(
        2.0, gt=0, le=60, description="timeout of Graphiti's search, seconds; after it, facts are found without Graphiti"
    )
    neo4j_ca_file: Path | None = Field(
        None, description="CA certificates (PEM) for Neo4j; unset: the system's; needs +s in NEO4J_URI"
    )
    vector_store: Literal["edge", "qdrant"] = Field("edge", description="store of the vectors")
    qdrant_url: str | None = Field(None, description="address for VECTOR_STORE=qdrant, http:// or, with TLS, https://")
    qdrant_api_key: SecretStr | None = Field(None, description="API key for Qdrant; unset: no authentication")
    qdrant_ca_file: Path | None = Field(
        None, description="CA certificates (PEM) for Qdrant over REST; unset: the system's; has no effect on gRPC"
    )
    qdrant_prefer_grpc: bool = Field(False, description="use gRPC for Qdrant, on QDRANT_GRPC_PORT of the host in QDRANT_URL")
    qdrant_grpc_port: int = Field(6334, ge=1, le=65535, description="gRPC port of Qdrant for QDRANT_PREFER_GRPC=true")
    qdrant_timeout_s: float = Field(10.0, gt=0, le=300, description="timeout of one call to Qdrant, including retries, seconds")
    vector_index_min_points: int = Field(
        20_000, ge=0, description="number of a tenant's vectors above which an HNSW index is built; 0: never"
    )
    vector_index_unindexed_share: float = Field(
        0.2, gt=0, le=1, description="share of unindexed vectors above which the HNSW index is rebuilt"
    )
    migrate_on_start: bool = Field(
        True,
        description="migrate server databases at the start; false: refuse to start on an old schema; run `migrate` separately",
    )
    blob_url: str | None = Field(None, description="location of the originals (file://, s3://, gs://); unset: DATA_DIR")
    keep_originals: bool = Field(
        True, description="keep the uploaded bytes; false: remove them when the document becomes visible, and keep its text"
    )

    # --- jobs
    worker_inline: bool = Field(True, description="run jobs in `serve`; false: only `worker` processes run jobs")
    worker_port: int = Field(
        8001, ge=0, le=65535, description="port for a worker's health and metrics, on HOST; 0 picks a free one"
    )
    worker_silent_after_s: float = Field(
        30.0,
        ge=3,
        le=600,
        description="seconds without a heartbeat after which other workers take over a worker's jobs; the same in every process",
    )
    worker_drain_s: float = Field(
        3.0, ge=0, le=600, description="seconds that running jobs get after SIGTERM before they return to the queue"
    )
    prepare_concurrency: int = Field(
        4, ge=1, le=64, description="number of a tenant's documents that each process prepares at once"
    )
    job_polling_interval_s: float = Field(
        0.1,
        ge=0.01,
        le=10,
        description="seconds between polls of the job queues while jobs are pending or notifications are unavailable",
    )
    parse_cpu_s: float = Field(20.0, ge=0.5, le=3600, description="processor seconds for parsing a document, per started 10 MiB")
    parse_timeout_s: float = Field(60.0, ge=1, le=7200, description="seconds for parsing a document, per started 10 MiB")
    parse_memory_mb: int = Field(1024, ge=64, le=65_536, description="memory for parsing a document, MiB")
    job_patience_s: float = Field(
        3600.0,
        ge=0,
        le=604_800,
        description="seconds without progress that a job waits for unavailable stores and models; after them, rules and extracts "
        "replace the language model",
    )

    reconcile_interval_s: float = Field(
        86_400.0, ge=0, le=31_536_000, description="seconds between two comparisons of a tenant's stores; 0: never"
    )

    # --- text in pictures (OCR)
    ocr: Literal["auto", "tesseract", "off"] = Field(
        "auto",
        description="recognise text on pages that are pictures; auto: if the program Tesseract is installed; tesseract: always",
    )
    ocr_languages: str = Field(
        "eng",
        pattern=r"^[A-Za-z0-9_/]{1,40}(\+[A-Za-z0-9_/]{1,40}){0,9}$",
        description="languages of the text, as Tesseract names its installed models, joined by +, such as eng+deu",
    )
    ocr_max_pages: int = Field(1000, ge=1, le=10_000, description="maximum number of a document's pages that are recognised")
    ocr_cpu_s: float = Field(
        600.0, ge=1, le=86_400, description="processor seconds for recognising text in a document, per started 10 MiB"
    )
    ocr_timeout_s: float = Field(
        3600.0, ge=1, le=86_400, description="seconds for recognising text in a document, per started 10 MiB"
    )

    # --- language
    language: Literal[
        "ar",
        "az",
        "bn",
        "ca",
        "da",
        "de",
        "el",
        "en",
        "es",
        "eu",
        "fi",
        "fr",
        "he",
        "hu",
        "id",
        "it",
        "ja",
        "kk",
        "ne",
        "nl",
        "no",
        "pt",
        "ro",
        "ru",
        "sl",
        "sv",
        "tg",
        "tr",
        "zh",
    ] = Field(
        "en", description="language of BM25 for texts whose own language is unknown, in all tenants; run `reindex` after a change"
    )

    # --- embedding
    embedder: Literal["bundled", "openai"] = Field("bundled", description="model that embeds text")
    embedding_model: str | None = Field(
        None,
        description="installed model of `agentic-rag models list`; unset: the bundled weights. With EMBEDDER=openai the name "
        f"of its model; unset: {DEFAULT_EMBEDDING_MODEL}",
    )
    embedding_model_path: Path | None = Field(
        None, description="folder with model.onnx, tokenizer.json and encoder.json that replace the bundled weights"
    )
    model_hub_url: str = Field(
        "https://huggingface.co",
        pattern=r"^https?://\S+$",
        description="address of the model hub or of a mirror of it, for `agentic-rag models pull`",
    )
    embedding_base_url: str | None = Field(
        None, description="base URL of the endpoint of EMBEDDER=openai, mostly ending in /v1; unset: OPENAI_BASE_URL"
    )
    embedding_api_key: SecretStr | None = Field(
        None, description="key of that endpoint; unset: OPENAI_API_KEY, but no key if EMBEDDING_BASE_URL is set"
    )
    embedding_dimensions: int | None = Field(None, ge=8, le=4096, description="vector length for EMBEDDER=openai")
    embedding_batch_size: int = Field(256, ge=1, le=2048, description="maximum number of texts in one request of EMBEDDER=openai")
    embedding_question_prefix: str = Field(
        "", max_length=500, description="text before each question for EMBEDDER=openai, such as `query: `"
    )
    embedding_passage_prefix: str = Field(
        "",
        max_length=500,
        description="text before each passage for EMBEDDER=openai, such as `passage: `; a change requires a reindex",
    )
    embedding_threads: int = Field(0, ge=0, le=64, description="threads of the bundled embedder; 0: one per core")
    background_niceness: int = Field(
        10,
        ge=0,
        le=19,
        description=(
            "niceness of the bundled embedder's threads for documents and of child processes; between busy programs, 0 gets half"
            " of the time, 5 a fifth, 10 an eleventh; lower it where other programs keep every core busy"
        ),
    )
    embedding_arithmetic: Literal["float32", "int8"] | None = Field(
        None,
        description="arithmetic of EMBEDDER=bundled; int8 takes little more than half the CPU time; a change requires a reindex; "
        "unset: that of the stored vectors, for new ones int8 where the processor multiplies exactly",
    )

    # --- language model
    llm: Literal["extractive", "openai"] = Field("extractive", description="model that writes answers and summaries")
    openai_api_key: SecretStr | None = Field(None, description="key of the OpenAI-compatible endpoint")
    openai_base_url: str | None = Field(None, description="base URL of the OpenAI-compatible endpoint, mostly ending in /v1")
    llm_model: str = Field("gpt-4o-mini", description="model that writes answers")
    llm_fast_model: str | None = Field(
        None, description="model for summaries, synthesis and follow-up questions; unset: LLM_MODEL"
    )
    llm_context_tokens: int | None = Field(
        None, ge=2048, le=10_000_000, description="context window of the models in tokens; unset: by the model's name, else 8192"
    )
    llm_temperature: float | None = Field(
        None, ge=0, le=2, description="temperature of every call; unset: that of each prompt, mostly 0"
    )
    llm_reasoning_effort: Literal["none", "minimal", "low", "medium", "high"] | None = Field(
        None, description="effort of reasoning models (`reasoning_effort`); unset: not sent"
    )
    llm_reasoning_tokens: int | None = Field(
        None,
        ge=0,
        le=200_000,
        description="tokens for reasoning, in addition to the limit of each reply; unset: 4096 for models that are known to "
        "reason, otherwise 0",
    )
    llm_extra_body: str = Field(
        "",
        max_length=10_000,
        description="further fields of every request as a JSON object, such as "
        '`{"chat_template_kwargs": {"enable_thinking": false}}`, except fields that the calls set themselves',
    )
    llm_profile: Literal["default", "local"] = Field(
        "default",
        description="local: one call at a time, longer limits and shorter prompts, for a slow model on this machine; settings "
        "that are set have priority",
    )
    llm_timeout_s: float = Field(
        60.0,
        gt=0,
        le=600,
        description="timeout of one model call, including retries, from the moment it is sent, seconds; a reply that keeps "
        "arriving may take up to five times as long; above the default, it raises the timeouts of requests, verification, "
        "themes, agentic retrieval and reranking by the same factor, unless they are set",
    )
    llm_max_concurrency: int = Field(
        8,
        ge=1,
        le=256,
        description="maximum number of concurrent model calls; jobs leave the last free one to questions; one tenant gets at "
        "most three quarters",
    )

    model_prices: Path | None = Field(
        None,
        description="YAML or JSON file with prices of a million tokens, such as "
        "`models: {gpt-4o-mini: {input: 0.15, output: 0.60}}`; calls of other models have no cost in usage reports",
    )

    # --- knowledge
    extraction: Literal["rules", "llm", "rules+llm", "graphiti"] | None = Field(
        None,
        description="method that extracts entities and relationships, unless a request names one; graphiti needs "
        "GRAPH_STORE=neo4j; unset: llm with LLM=openai, otherwise rules",
    )
    extraction_model: str | None = Field(
        None, description="model of EXTRACTION=llm, rules+llm and graphiti; unset: LLM_FAST_MODEL"
    )
    extraction_max_entities: int = Field(10, ge=1, le=100, description="maximum number of entities that a model names in a chunk")
    extraction_max_relationships: int = Field(
        15, ge=0, le=100, description="maximum number of relationships that a model names in a chunk"
    )
    extraction_entity_types: str = Field(
        "person, organisation, place, work, event, product, software, standard, law, form, quantity, concept, date",
        max_length=2000,
        description="types of entities that a model chooses from, separated by commas; `other` is always one of them",
    )
    extraction_max_names_per_chunk: int = Field(
        250, ge=10, le=10_000, description="maximum number of names of a chunk that the graph takes"
    )
    extraction_max_names_per_document: int = Field(
        20_000, ge=100, le=1_000_000, description="maximum number of names of a document that the graph takes"
    )
    extraction_max_aliases_per_name: int = Field(
        100, ge=1, le=10_000, description="maximum number of aliases that a document gives to a name"
    )
    synthetic_questions: Literal["off", "patterns", "model"] = Field(
        "off", description="questions that each chunk answers, made at ingestion and searched, unless a request says otherwise"
    )
    synthetic_questions_per_chunk: int = Field(3, ge=1, le=3, description="maximum number of synthetic questions of a chunk")

    # --- language model during ingestion
    ingestion_model_max_tokens: int = Field(
        200_000,
        ge=0,
        le=100_000_000,
        description="maximum tokens that a language model reads and writes to process one version of a document",
    )

    # --- dual-level retrieval
    dual_level_retrieval_enabled: bool = Field(False, description="enable dual-level retrieval for every tenant")
    dual_level_low_weight: float = Field(0.6, ge=0, le=1, description="weight of the low level (chunks and entities)")
    dual_level_high_weight: float = Field(0.4, ge=0, le=1, description="weight of the high level (communities)")
    dual_level_auto_weights: bool = Field(False, description="derive the weights from the form of the question")
    dual_level_low_strategy: Literal["auto", "graph", "hybrid", "agentic"] = Field(
        "auto", description="strategy of the low level; auto: hybrid for questions that ask for an explanation, otherwise graph"
    )
    dual_level_low_limit: int = Field(10, ge=1, le=100, description="chunks returned by the low level")
    dual_level_high_limit: int = Field(5, ge=1, le=100, description="communities returned by the high level")
    dual_level_low_min_score: float = Field(0.3, ge=0, le=1, description="relevance below which the low level counts as empty")
    dual_level_high_min_score: float = Field(0.25, ge=0, le=1, description="score below which a community is dropped")
    dual_level_synthesis_model: str | None = Field(
        None, description="model of the dual-level answer; unset: LLM_FAST_MODEL, then LLM_MODEL (gpt-4o-mini)"
    )
    dual_level_synthesis_temperature: float = Field(0.3, ge=0, le=2, description="temperature of the dual-level answer")
    dual_level_prompt_file: Path | None = Field(None, description="file with the dual-level prompt; unset: the built-in prompt")

    # --- hybrid search
    hybrid_dense_weight: float = Field(0.7, ge=0, le=1, description="weight of embedding similarity in hybrid search")
    hybrid_sparse_weight: float = Field(0.3, ge=0, le=1, description="weight of BM25 in hybrid search")

    hybrid_rerank: bool = Field(True, description="rerank results of `hybrid` if a request does not name `rerank`")

    # --- agentic retrieval
    agentic_query_planning: bool = Field(True, description="plan the searches; off: each round searches the question as it is")
    agentic_novelty_circuit: bool = Field(True, description="end after a round with little news; off: exactly 5 rounds")
    agentic_negative_memory: bool = Field(True, description="keep the negative constraints of plan and reflection")
    agentic_cascade_recall: bool = Field(True, description="search by vector, BM25 and graph; off: by vector alone")
    agentic_novelty_epsilon: float = Field(0.2, ge=0, le=1, description="least novelty of a round that another one follows")
    agentic_max_rounds: int = Field(4, ge=2, le=5, description="maximum number of rounds while AGENTIC_NOVELTY_CIRCUIT is on")
    agentic_max_calls: int = Field(6, ge=1, le=32, description="maximum number of model requests of one retrieval")
    agentic_max_tokens: int = Field(
        20_000, ge=100, le=1_000_000, description="tokens of one retrieval after which the model is not asked again"
    )
    agentic_max_seconds: float = Field(
        30.0, ge=0.1, le=600, description="seconds of one retrieval after which no further round begins"
    )
    agentic_session_s: float = Field(
        1800.0, ge=60, le=86_400, description="seconds for which a search session is kept after its last request"
    )
    agentic_planner_prompt_file: Path | None = Field(
        None, description="file with the prompt that plans agentic searches; unset: the built-in prompt"
    )

    # --- caches of searches
    search_cache_mb: int = Field(
        64, ge=0, le=65536, description="memory for results of searches in one process, MiB; 0: every search is done"
    )
    embedding_cache_mb: int = Field(
        16, ge=0, le=65536, description="memory for vectors of questions in one process, MiB; 0: every question is embedded again"
    )
    theme_cache_mb: int = Field(
        32,
        ge=0,
        le=65536,
        description="memory for themes that searches examined in one process, MiB; 0: they are read every time",
    )
    passage_cache_mb: int = Field(
        32,
        ge=0,
        le=65536,
        description="memory for vectors and terms of passages that graph searches compared in one process, MiB; "
        "0: they are read every time",
    )
    sentence_cache_mb: int = Field(
        32,
        ge=0,
        le=65536,
        description="memory for vectors of questions and sentences that answers compared in one process, MiB; "
        "0: they are encoded every time",
    )

    # --- rerankers
    reranker: str | None = Field(
        None, description="reranker of `rerank: true` and of HYBRID_RERANK; unset: the best one without a further model"
    )
    rerank_timeout_s: float = Field(
        10.0, gt=0, le=600, description="time limit of reranking, seconds; after it, results keep the order of the strategy"
    )
    late_interaction_cache_mb: int = Field(
        64, ge=0, le=65536, description="memory for word piece vectors of passages that `late_interaction` read, MiB"
    )
    cross_encoder_model_path: Path | None = Field(
        None, description="folder with model.onnx and tokenizer.json of the cross-encoder"
    )
    cross_encoder_model: str = Field(
        "Xenova/ms-marco-MiniLM-L-6-v2", description="model of the hub that CROSS_ENCODER_DOWNLOAD downloads"
    )
    cross_encoder_download: bool = Field(
        False, description="download CROSS_ENCODER_MODEL from the model hub when it is first needed, into DATA_DIR"
    )
    rerank_url: str | None = Field(None, description="address of a rerank endpoint, such as https://api.cohere.com/v2/rerank")
    rerank_api: Literal["cohere", "jina"] = Field("cohere", description="form of its requests and replies")
    rerank_api_key: SecretStr | None = Field(None, description="its key")
    rerank_model: str = Field("rerank-v3.5", description="its model")

    # --- retrieval and answers
    default_strategy: str = Field("auto", description="strategy for requests that name none")
    default_generator: Literal["attributed", "standard", "verified"] = Field(
        "attributed", description="generator for requests that name none"
    )
    citation_policy: Literal["strict", "checked", "mark"] | None = Field(
        None,
        description="sentences that are not supported: strict leaves them out, checked leaves out contradicted ones and marks "
        "unverified ones, mark marks all; unset: mark for `standard`, checked for others",
    )
    claim_verifier: Literal["auto", "lexical", "embedding", "model", "nli"] = Field(
        "auto",
        description="check of sentences: lexical (words only), embedding (also across languages), auto (and the language "
        "model, for sentences that are left undecided), model (and the language model, for all that are no copies) or nli "
        "(embedding and a reader in this process)",
    )
    claim_verifier_model_path: Path | None = Field(
        None,
        description="folder with model.onnx, tokenizer.json and reader.json of the reader; unset: nli-MiniLM2-L6-H768, which "
        "`agentic-rag models pull` installs",
    )
    verification_max_questions: int = Field(5, ge=1, le=10, description="maximum number of questions of a `verified` answer")
    verification_timeout_s: float = Field(
        15.0, gt=0, le=600, description="timeout of one model call that verifies an answer, seconds"
    )
    stream_resume_s: float = Field(
        120.0, ge=0, le=600, description="seconds that events of a streamed answer are kept for Last-Event-ID; 0: not kept"
    )
    stream_buffer_mb: int = Field(
        32, ge=1, le=4096, description="maximum memory of kept events of streamed answers in one process, MiB"
    )
    answer_context_tokens: int = Field(
        3000, ge=256, le=500_000, description="maximum estimated tokens of evidence in the prompt of an answer"
    )
    answer_min_confidence: float = Field(0.25, ge=0, le=1, description="confidence below which a question is refused")
    fallback_to_extractive: bool = Field(
        True, description="answer extractively, with a notice, while the language model fails; false: 503"
    )
    tenant_graph_cache_mb: int = Field(512, ge=16, le=65536, description="memory for the tenants' graphs, MiB")

    question_log_enabled: bool = Field(
        False,
        description="keep the questions of tenants for 30 days, so that their administrators can make test cases of them",
    )

    # --- themes
    theme_budget_tokens: int = Field(4000, ge=200, le=100_000, description="estimated tokens of themes for one question")
    theme_model_timeout_s: float = Field(
        20.0,
        gt=0,
        le=600,
        description="timeout of one preparatory model call (rating, partial answer, follow-up questions), seconds",
    )
    global_budget_tokens: int = Field(
        12_000, ge=200, le=100_000, description="estimated tokens of themes for one `global` question"
    )
    global_max_calls: int = Field(8, ge=1, le=32, description="maximum number of model calls for one `global` answer")
    drift_follow_ups: int = Field(3, ge=0, le=8, description="maximum number of follow-up questions in `drift`")
    drift_max_calls: int = Field(4, ge=1, le=32, description="maximum number of model calls in `drift` before the answer")

    # --- communities
    community_max_cluster_size: int = Field(25, ge=3, le=10000, description="number of members above which a cluster is divided")
    community_min_size: int = Field(3, ge=1, le=1000, description="number of members below which the summary is extractive")
    community_resolution: float = Field(
        1.0, gt=0, le=100, description="resolution of Leiden's algorithm; higher values give more communities"
    )
    community_max_levels: int = Field(3, ge=1, le=10, description="maximum number of levels in the hierarchy")
    community_auto_rebuild: bool = Field(True, description="rebuild communities automatically after document changes")
    community_rebuild_delay_s: float = Field(
        30.0, ge=0, le=86400, description="seconds without document changes before an automatic rebuild"
    )
    community_rebuild_threshold: float = Field(
        0.05,
        ge=0,
        le=1,
        description="share of changed relationships below which automatic rebuilds run at most once an hour; 0: no such limit",
    )

    rebuild_max_wait_s: float = Field(
        3600.0,
        ge=0,
        le=604_800,
        description=(
            "seconds since the first change after which an automatic rebuild of communities or of the tree no longer waits for"
            " documents that change, are queued or are in processing"
        ),
    )

    # --- RAPTOR tree
    raptor_max_levels: int = Field(3, ge=1, le=10, description="maximum number of summary levels above the passages")
    raptor_cluster_size: int = Field(
        10, ge=2, le=100, description="target number of children per node; a node with more than twice as many is divided"
    )
    raptor_max_clusters_per_level: int = Field(
        5_000, ge=1, le=1_000_000, description="maximum number of nodes per level; clusters grow beyond it"
    )
    raptor_clustering: Literal["mixture", "kmeans"] = Field(
        "mixture", description="clustering method: Gaussian mixtures with soft membership, or k-means"
    )
    raptor_auto_update: bool = Field(
        False,
        description="update existing trees automatically after document changes; calls the language model if one is configured",
    )
    raptor_update_delay_s: float = Field(
        60.0, ge=0, le=86400, description="seconds without document changes before an automatic tree update"
    )

    @field_validator("operator_key", "metrics_key")
    @classmethod
    def _long_enough(cls, value: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        if value is not None and len(value.get_secret_value()) < MIN_KEY_CHARACTERS:
            name = str(info.field_name).upper()
            raise ValueError(f"{name} must have at least {MIN_KEY_CHARACTERS} characters; it has {len(value.get_secret_value())}")
        return value

    @field_validator("operator_keys")
    @classmethod
    def _check_operator_keys(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None:
            parse_pairs(value.get_secret_value(), "OPERATOR_KEYS")
        return value

    @field_validator("operator_keys_file")
    @classmethod
    def _check_operator_keys_file(cls, value: Path | None) -> Path | None:
        if value is not None:
            read_pairs(value, "OPERATOR_KEYS_FILE")
        return value

    @property
    def operators(self) -> dict[str, str]:
        """The operators' keys by name. The holder of OPERATOR_KEY has the name `ONLY_OPERATOR`."""
        only, pairs, file = self.operator_key, self.operator_keys, self.operator_keys_file
        return join_operators(
            {} if only is None else {ONLY_OPERATOR: only.get_secret_value()},
            {} if pairs is None else parse_pairs(pairs.get_secret_value(), "OPERATOR_KEYS"),
            {} if file is None else read_pairs(file, "OPERATOR_KEYS_FILE"),
        )

    @field_validator("oidc_issuer")
    @classmethod
    def _check_issuer(cls, value: str | None) -> str | None:
        return None if value is None else check_issuer(value)

    @field_validator("oidc_algorithms")
    @classmethod
    def _check_algorithms(cls, value: str) -> str:
        parse_algorithms(value)
        return value

    @field_validator("oidc_tenants")
    @classmethod
    def _check_claimed_tenants(cls, value: str) -> str:
        parse_claim_values(value, "OIDC_TENANTS")
        return value

    @field_validator("oidc_scopes")
    @classmethod
    def _check_claimed_scopes(cls, value: str) -> str:
        parse_scopes(value)
        return value

    @model_validator(mode="after")
    def _check_audience(self) -> Settings:
        if self.oidc_issuer is not None and not parse_list(self.oidc_audience):
            raise ValueError("OIDC_ISSUER needs OIDC_AUDIENCE: without it, tokens for other services would be accepted")
        return self

    @field_validator("openai_base_url", "embedding_base_url")
    @classmethod
    def _check_endpoint_address(cls, value: str | None, info: ValidationInfo) -> str | None:
        return None if value is None else endpoint_address(value, str(info.field_name).upper())

    @field_validator("llm_extra_body")
    @classmethod
    def _body_fields(cls, value: str) -> str:
        body_fields(value, "LLM_EXTRA_BODY")
        return value

    @property
    def extra_body(self) -> dict[str, Any]:
        """The fields of LLM_EXTRA_BODY."""
        return body_fields(self.llm_extra_body, "LLM_EXTRA_BODY")

    @field_validator("trusted_proxies")
    @classmethod
    def _check_networks(cls, value: str) -> str:
        for part in filter(None, (part.strip() for part in value.split(","))):
            try:
                ipaddress.ip_network(part)
            except ValueError:
                raise ValueError(
                    f"TRUSTED_PROXIES must hold addresses or networks such as 127.0.0.1 or 10.0.0.0/8; got {part[:80]!r}"
                ) from None
        return value

    @property
    def allowed_origins(self) -> tuple[str, ...]:
        """The origins of CORS_ORIGINS."""
        return tuple(origin for part in self.cors_origins.split(",") if (origin := part.strip()))

    @property
    def entity_types(self) -> tuple[str, ...]:
        """The types of EXTRACTION_ENTITY_TYPES."""
        return tuple(dict.fromkeys(type_ for part in self.extraction_entity_types.split(",") if (type_ := part.strip())))

    @field_validator("extraction_entity_types")
    @classmethod
    def _check_types(cls, value: str) -> str:
        type_names = [type_ for part in value.split(",") if (type_ := part.strip())]
        for type_ in type_names:
            if not re.fullmatch(r"[a-z][a-z0-9_ ]{0,39}", type_):
                raise ValueError(
                    "EXTRACTION_ENTITY_TYPES must hold words of lower-case letters, digits, spaces and _, at most 40 characters "
                    f"each; got {type_[:80]!r}"
                )
        if not type_names:
            raise ValueError("EXTRACTION_ENTITY_TYPES must name at least one type")
        return value

    @field_validator("public_url")
    @classmethod
    def _check_public_url(cls, value: str | None) -> str | None:
        if value and not re.fullmatch(r"https?://[^\s?#]+", value):
            raise ValueError(f"PUBLIC_URL must be an address such as https://rag.example; got {value!r}")
        return value or None

    @field_validator("cors_origins")
    @classmethod
    def _check_origins(cls, value: str) -> str:
        for part in value.split(","):
            origin = part.strip()
            if origin and origin != "*" and not re.fullmatch(r"https?://[^/\s*]+", origin):
                raise ValueError(f"CORS_ORIGINS must hold origins such as https://app.example, without a path; got {origin!r}")
        return value

    @model_validator(mode="after")
    def _check_operators(self) -> Settings:
        _ = self.operators
        return self

    @model_validator(mode="after")
    def _derive_values(self) -> Settings:
        """Set the values that follow from LLM_PROFILE and LLM_TIMEOUT_S."""
        self.__dict__.update(self.derived)
        return self

    @property
    def derived(self) -> dict[str, Any]:
        """The values that follow from other settings, by field."""
        defaults = {name: field.default for name, field in type(self).model_fields.items()}
        return derive_values(self.__dict__, self.model_fields_set, defaults)

    @field_validator("*", mode="before")
    @classmethod
    def _in_any_case(cls, value: Any, info: ValidationInfo) -> Any:
        """Accept the choices of a setting in any case: ``LOG_LEVEL=INFO``."""
        words = info.field_name is not None and get_origin(cls.model_fields[info.field_name].annotation) is Literal
        return value.strip().lower() if words and isinstance(value, str) else value

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Put the YAML file below ``.env``."""
        config_paths = (
            getattr(source, "env_vars", {}).get(CONFIG_VARIABLE.lower()) for source in (env_settings, dotenv_settings)
        )
        file = ConfigFile(settings_cls, next(filter(None, config_paths), None))
        return init_settings, env_settings, dotenv_settings, file
