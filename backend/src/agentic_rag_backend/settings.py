"""Every setting: environment variables, ``.env`` or a YAML file, read once by the cli, the api and the container."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal, get_origin

from pydantic import Field, SecretStr, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from agentic_rag_backend.settings_file import CONFIG_VARIABLE, ConfigFile


class Settings(BaseSettings):
    """All settings of a process. Each field's environment variable is its name in capitals; ``.env.example`` lists them.

    An option given to the constructor comes first, then the environment, then ``.env``, then the YAML file that
    ``AGENTIC_RAG_CONFIG`` names. `settings_reading.read_settings` says in words what is wrong with a value.

    Raises:
        pydantic.ValidationError: a value is outside its limits.
        ConfigurationError: the YAML file cannot be read, or names something that is no setting.
    """

    model_config = SettingsConfigDict(
        env_file=".env", env_file_encoding="utf-8", extra="ignore", frozen=True, env_ignore_empty=True
    )

    # --- the process
    host: str = Field("127.0.0.1", description="address the server listens on")
    port: int = Field(8000, ge=0, le=65535, description="port the server listens on; 0 picks a free one")
    data_dir: Path = Field(Path("./data"), description="folder of everything the embedded profile stores")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="least severe event logged")
    log_format: Literal["console", "json"] = Field("console", description="how events are written to stderr")
    request_timeout_s: float = Field(60.0, gt=0, le=600, description="seconds a request may take in all")
    header_timeout_s: float = Field(10.0, gt=0, le=300, description="seconds a connection may take to send a request's head")
    body_timeout_s: float = Field(
        15.0, gt=0, le=300, description="seconds without a byte, of a request's body or of a response that is not read"
    )
    keep_alive_s: int = Field(10, ge=1, le=3600, description="seconds an idle connection stays open between requests")
    max_connections: int = Field(2000, ge=1, le=100_000, description="open connections in all; further ones get 503")
    max_connections_per_client: int = Field(
        200, ge=0, le=100_000, description="open connections of one address; further ones get 429; 0: no bound, behind a proxy"
    )
    cors_origins: str = Field(
        "", description="origins whose pages may call from a browser, separated by commas; *: all; empty: none"
    )
    operator_key: SecretStr | None = Field(None, description="key of the operator's routes (32 characters or more)")
    max_upload_mb: int = Field(50, ge=1, le=1024, description="largest uploaded file, MiB")
    max_import_mb: int = Field(
        10_240, ge=1, le=1_048_576, description="largest archive of a tenant, MiB; it may unpack to ten times that"
    )

    # --- stores
    deployment: str = Field(
        "agentic_rag",
        pattern="^[a-z][a-z0-9_]{0,39}$",
        description="name of this deployment on servers that others share: Qdrant collections begin with it",
    )
    database_url: str | None = Field(None, description="SQLAlchemy URL of the catalogue; unset: SQLite in DATA_DIR")
    database_timeout_s: float = Field(
        10.0, gt=0, le=300, description="seconds one read of PostgreSQL may take, connecting included"
    )
    graph_store: Literal["sqlite", "neo4j"] = Field("sqlite", description="where the knowledge graph lives")
    neo4j_uri: str | None = Field(
        None, description="address for GRAPH_STORE=neo4j, bolt:// or neo4j://; with TLS bolt+s:// or neo4j+s://"
    )
    neo4j_user: str = Field("neo4j", description="user of Neo4j")
    neo4j_password: SecretStr | None = Field(None, description="password of Neo4j; unset: a server that asks for none")
    neo4j_database: str = Field("neo4j", description="database in Neo4j")
    neo4j_pool_size: int = Field(20, ge=1, le=1000, description="connections to Neo4j at once")
    neo4j_timeout_s: float = Field(10.0, gt=0, le=300, description="seconds one read of Neo4j may take, connecting included")
    graphiti_search_enabled: bool = Field(True, description="Graphiti's search finds facts in the graph, on GRAPH_STORE=neo4j")
    graphiti_search_timeout_s: float = Field(
        2.0, gt=0, le=60, description="seconds that search may take; then facts are found without it"
    )
    neo4j_ca_file: Path | None = Field(
        None, description="certificates (PEM) that Neo4j's is checked against; unset: the system's; needs +s in NEO4J_URI"
    )
    vector_store: Literal["edge", "qdrant"] = Field("edge", description="where vectors live")
    qdrant_url: str | None = Field(None, description="address for VECTOR_STORE=qdrant, http:// or, with TLS, https://")
    qdrant_api_key: SecretStr | None = Field(None, description="API key of Qdrant; unset: a server that asks for none")
    qdrant_ca_file: Path | None = Field(
        None, description="certificates (PEM) that Qdrant's is checked against; unset: the system's; not with gRPC"
    )
    qdrant_prefer_grpc: bool = Field(False, description="speak gRPC with Qdrant, on QDRANT_GRPC_PORT of QDRANT_URL's host")
    qdrant_grpc_port: int = Field(6334, ge=1, le=65535, description="port of Qdrant's gRPC for QDRANT_PREFER_GRPC=true")
    qdrant_timeout_s: float = Field(10.0, gt=0, le=300, description="seconds one call to Qdrant may take, retries included")
    vector_index_min_points: int = Field(
        20_000, ge=0, description="vectors of one tenant above which a search graph is built; 0: never"
    )
    vector_index_unindexed_share: float = Field(
        0.2, gt=0, le=1, description="share of all vectors outside the search graph above which it is built anew"
    )
    migrate_on_start: bool = Field(
        True, description="bring server databases' schemas up to date at the start; false: refuse, and leave it to `migrate`"
    )
    blob_url: str | None = Field(None, description="where originals are kept (file://, s3://, gs://); unset: DATA_DIR")
    keep_originals: bool = Field(
        True, description="keep uploaded bytes; false: they are removed once the document is visible, its text stays"
    )

    # --- jobs
    worker_inline: bool = Field(True, description="`serve` runs jobs itself; false: `worker` processes do")
    worker_port: int = Field(8001, ge=0, le=65535, description="port of a worker's health and metrics, on HOST; 0: a free one")
    worker_silent_after_s: float = Field(
        30.0, ge=3, le=600, description="seconds without a beat after which others take up a worker's jobs; the same everywhere"
    )
    worker_drain_s: float = Field(
        3.0, ge=0, le=600, description="seconds that running jobs get at SIGTERM before they are handed back"
    )
    prepare_concurrency: int = Field(4, ge=1, le=64, description="documents of one tenant prepared at once, in each process")
    job_polling_interval_s: float = Field(
        0.1,
        ge=0.01,
        le=10,
        description="seconds between looks at the job queues while there is work, or no way to be notified of it",
    )
    parse_cpu_s: float = Field(
        20.0, ge=0.5, le=3600, description="processor seconds that reading a document may take, for each 10 MiB of it or part"
    )
    parse_timeout_s: float = Field(
        60.0, ge=1, le=7200, description="seconds that reading a document may take, for each 10 MiB of it or part"
    )
    parse_memory_mb: int = Field(1024, ge=64, le=65_536, description="memory that reading a document may take, MiB")
    job_patience_s: float = Field(
        3600.0, ge=0, le=604_800, description="seconds a job waits, without progress, for stores and models that do not answer"
    )

    reconcile_interval_s: float = Field(
        86_400.0, ge=0, le=31_536_000, description="seconds between two comparisons of a tenant's stores; 0: none"
    )

    # --- words
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
    ] = Field("en", description="language of stemming and stop words in BM25, for all tenants; a change needs `reindex`")

    # --- embedding
    embedder: Literal["bundled", "openai"] = Field("bundled", description="what turns text into vectors")
    embedding_model: str = Field("text-embedding-3-small", description="model name for EMBEDDER=openai")
    embedding_model_path: Path | None = Field(
        None, description="folder with model.onnx and tokenizer.json, read instead of the bundled weights"
    )
    embedding_dimensions: int | None = Field(None, ge=8, le=4096, description="vector length for EMBEDDER=openai")
    embedding_threads: int = Field(0, ge=0, le=64, description="threads of the bundled embedder; 0: one per core")

    # --- language model
    llm: Literal["extractive", "openai"] = Field("extractive", description="what writes answers and summaries")
    openai_api_key: SecretStr | None = Field(None, description="key of the OpenAI-compatible endpoint")
    openai_base_url: str | None = Field(None, description="base URL of the OpenAI-compatible endpoint, ending in /v1")
    llm_model: str = Field("gpt-4o-mini", description="model that writes answers")
    llm_fast_model: str | None = Field(None, description="model for summaries and synthesis; unset: LLM_MODEL")
    llm_timeout_s: float = Field(60.0, gt=0, le=600, description="seconds one model call may take, retries included")
    llm_max_concurrency: int = Field(8, ge=1, le=256, description="model calls at once; of one tenant, three quarters")

    # --- knowledge
    extraction: Literal["rules"] = Field("rules", description="how entities and relationships are found")

    # --- dual-level retrieval
    dual_level_retrieval_enabled: bool = Field(False, description="switches dual-level retrieval on for every tenant")
    dual_level_low_weight: float = Field(0.6, ge=0, le=1, description="weight of chunks and entities")
    dual_level_high_weight: float = Field(0.4, ge=0, le=1, description="weight of communities")
    dual_level_auto_weights: bool = Field(False, description="weights by the form of the question, where it tells")
    dual_level_low_strategy: Literal["auto", "graph", "hybrid"] = Field(
        "auto", description="what finds chunks; auto: hybrid for a question that wants an account, else graph"
    )
    dual_level_low_limit: int = Field(10, ge=1, le=100, description="chunks returned by the low level")
    dual_level_high_limit: int = Field(5, ge=1, le=100, description="communities returned by the high level")
    dual_level_low_min_score: float = Field(0.3, ge=0, le=1, description="relevance below which the low level is empty")
    dual_level_high_min_score: float = Field(0.25, ge=0, le=1, description="score below which a community is dropped")
    dual_level_synthesis_model: str | None = Field(
        None, description="model of the dual-level answer; unset: LLM_FAST_MODEL, then LLM_MODEL (gpt-4o-mini)"
    )
    dual_level_synthesis_temperature: float = Field(0.3, ge=0, le=2, description="temperature of the dual-level answer")
    dual_level_prompt_file: Path | None = Field(None, description="prompt read instead of the built-in dual-level one")

    # --- hybrid search
    hybrid_dense_weight: float = Field(0.7, ge=0, le=1, description="weight of the similarity of embeddings in hybrid search")
    hybrid_sparse_weight: float = Field(0.3, ge=0, le=1, description="weight of words (BM25) in hybrid search")

    # --- retrieval and answers
    default_strategy: str = Field("auto", description="strategy of a request that names none")
    default_generator: str = Field("attributed", description="generator of a request that names none")
    answer_min_confidence: float = Field(0.35, ge=0, le=1, description="confidence below which an answer is a refusal")
    fallback_to_extractive: bool = Field(
        True, description="answer with sentences of the documents, and say so, while the language model fails; false: 503"
    )
    tenant_graph_cache_mb: int = Field(512, ge=16, le=65536, description="memory for tenants' graphs, MiB")

    # --- themes
    theme_budget_tokens: int = Field(4000, ge=200, le=100_000, description="tokens of the themes of one question, estimated")
    theme_model_timeout_s: float = Field(
        20.0, gt=0, le=600, description="seconds of one model call before the answer's own: rating, partial answer, follow-ups"
    )
    global_budget_tokens: int = Field(12_000, ge=200, le=100_000, description="the same of a corpus-wide question")
    global_max_calls: int = Field(8, ge=1, le=32, description="model calls of a corpus-wide answer, at most")
    drift_follow_ups: int = Field(3, ge=0, le=8, description="follow-up questions of `drift`, at most")
    drift_max_calls: int = Field(4, ge=1, le=32, description="model calls of `drift` before the answer's own, at most")

    # --- communities
    community_max_cluster_size: int = Field(25, ge=3, le=10000, description="members above which a cluster is divided")
    community_min_size: int = Field(3, ge=1, le=1000, description="members below which no model writes a summary")
    community_resolution: float = Field(1.0, gt=0, le=100, description="Leiden's resolution; higher: more communities")
    community_max_levels: int = Field(3, ge=1, le=10, description="levels of the hierarchy")
    community_auto_rebuild: bool = Field(True, description="rebuild communities after documents changed")
    community_rebuild_delay_s: float = Field(30.0, ge=0, le=86400, description="quiet seconds before that rebuild")
    community_rebuild_threshold: float = Field(
        0.05, ge=0, le=1, description="share of changed relationships below which it comes at most once an hour; 0: always"
    )

    # --- the tree over passages
    raptor_max_levels: int = Field(3, ge=1, le=10, description="levels of summaries above the passages")
    raptor_cluster_size: int = Field(10, ge=2, le=100, description="children of a node, about; twice as many divide it")
    raptor_max_clusters_per_level: int = Field(
        5_000, ge=1, le=1_000_000, description="nodes of a level, at most; clusters are larger then"
    )
    raptor_clustering: Literal["mixture", "kmeans"] = Field(
        "mixture", description="how passages are clustered: Gaussian mixtures, with soft membership, or k-means"
    )
    raptor_auto_update: bool = Field(
        False, description="trees that were built take in what changed by themselves, which calls the model, if there is one"
    )
    raptor_update_delay_s: float = Field(60.0, ge=0, le=86400, description="quiet seconds before that")

    @field_validator("operator_key")
    @classmethod
    def _long_enough(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and len(value.get_secret_value()) < 32:
            raise ValueError(f"OPERATOR_KEY must have at least 32 characters; it has {len(value.get_secret_value())}")
        return value

    @property
    def allowed_origins(self) -> tuple[str, ...]:
        """The origins of CORS_ORIGINS."""
        return tuple(origin for part in self.cors_origins.split(",") if (origin := part.strip()))

    @field_validator("cors_origins")
    @classmethod
    def _origins(cls, value: str) -> str:
        for part in value.split(","):
            origin = part.strip()
            if origin and origin != "*" and not re.fullmatch(r"https?://[^/\s*]+", origin):
                raise ValueError(f"CORS_ORIGINS must hold origins such as https://app.example, without a path; got {origin!r}")
        return value

    @field_validator("*", mode="before")
    @classmethod
    def _in_any_case(cls, value: Any, info: ValidationInfo) -> Any:
        """Accept the words of a setting that has a list of them in any case: ``LOG_LEVEL=INFO``."""
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
        named = (getattr(source, "env_vars", {}).get(CONFIG_VARIABLE.lower()) for source in (env_settings, dotenv_settings))
        file = ConfigFile(settings_cls, next(filter(None, named), None))
        return init_settings, env_settings, dotenv_settings, file
