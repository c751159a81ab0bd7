"""Settings: their sources, messages for invalid values, and detection of misspelt names."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from agentic_rag_backend.cli.configuration import list_effective
from agentic_rag_backend.errors import ConfigurationError
from agentic_rag_backend.settings import Settings
from agentic_rag_backend.settings_derived import PROFILES
from agentic_rag_backend.settings_reading import likely_setting, misspelt_settings, origins_of, read_settings

_ORDINARY = """
    PATH HOME LANG LC_ALL LC_CTYPE TERM TERMINFO SHELL USER USERNAME LOGNAME PWD OLDPWD HOSTNAME HOSTTYPE HOST_IP OSTYPE
    MACHTYPE TMPDIR TEMP TZ EDITOR VISUAL PAGER DISPLAY MAIL SHLVL COLUMNS LINES DEBUG CI VIRTUAL_ENV PYTHONPATH
    PYTHONHASHSEED NO_COLOR PYENV_ROOT PYENV_VERSION CONDA_PREFIX GITHUB_TOKEN GITHUB_ENV RUNNER_OS RUNNER_TEMP
    RUNNER_DEBUG GIT_EDITOR SSH_AUTH_SOCK XDG_DATA_DIR XDG_DATA_DIRS XDG_DATA_HOME XDG_RUNTIME_DIR XDG_CONFIG_DIRS
    DBUS_SESSION_BUS_ADDRESS GPG_AGENT_INFO HTTP_PROXY HTTPS_PROXY NO_PROXY SSL_CERT_FILE REQUESTS_CA_BUNDLE
    CURL_CA_BUNDLE UV_CACHE_DIR PIP_INDEX_URL PIP_CERT KUBERNETES_PORT KUBERNETES_SERVICE_HOST KUBERNETES_SERVICE_PORT
    QDRANT_PORT QDRANT_SERVICE_HOST QDRANT_PORT_6333_TCP NEO4J_HOME NEO4J_AUTH NEO4J_PORT NEO4J_SERVICE_PORT
    POSTGRES_USER POSTGRES_DB PGHOST PGPORT PGDATA PGUSER PGPASSWORD DATABASE_HOST DATABASE_PORT DATABASE_NAME
    TEST_DATABASE_URL MY_DATABASE_URL REDIS_URL AMQP_URL S3_BUCKET AWS_REGION OPENAI_API_KEY_TEST OPENAI_ORG_ID
    OPENAI_PROJECT OLLAMA_HOST VLLM_HOST VLLM_PORT CUDA_VISIBLE_DEVICES OMP_NUM_THREADS LLVM LLVM_DIR SPORT EXPORT
    IMPORT REPORT PORTS HOSTS GHOST POST RUST_LOG RUST_LOG_LEVEL LOGDIR NODE_ENV WORKERS WEB_CONCURRENCY JAVA_HOME
    MAVEN_OPTS MODEL_PATH EMBEDDING COVERAGE_PROCESS_START PYTEST_CURRENT_TEST PYTEST_XDIST_WORKER
    PYTEST_XDIST_WORKER_COUNT
"""


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (*(field.upper() for field in Settings.model_fields), "AGENTIC_RAG_CONFIG"):
        monkeypatch.delenv(name, raising=False)


def test_a_misspelt_setting_is_recognised() -> None:
    for name, setting in [
        ("LLMM", "LLM"),
        ("PROT", "PORT"),
        ("HSOT", "HOST"),
        ("QDRANT_ULR", "QDRANT_URL"),
        ("NEO4J_URL", "NEO4J_URI"),
        ("NEO4J_USERNAME", "NEO4J_USER"),
        ("DATADIR", "DATA_DIR"),
        ("LOGLEVEL", "LOG_LEVEL"),
        ("OPENAI_KEY", "OPENAI_API_KEY"),
        ("OPENAI_BASEURL", "OPENAI_BASE_URL"),
        ("DATABASE_URI", "DATABASE_URL"),
        ("OPERATER_KEY", "OPERATOR_KEY"),
        ("DUAL_LEVEL_RETRIEVAL_ENABLE", "DUAL_LEVEL_RETRIEVAL_ENABLED"),
        ("LLM_MODLE", "LLM_MODEL"),
        ("EMBEDDING_DIMENSION", "EMBEDDING_DIMENSIONS"),
        ("WORKER_IN_LINE", "WORKER_INLINE"),
        ("GRAPHSTORE", "GRAPH_STORE"),
    ]:
        assert likely_setting(name) == setting


@pytest.mark.parametrize("name", [*_ORDINARY.split(), *(name.upper() for name in Settings.model_fields), "AGENTIC_RAG_CONFIG"])
def test_an_ordinary_variable_is_no_misspelt_setting(name: str) -> None:
    assert likely_setting(name) is None


def test_misspelt_names_of_both_places_are_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("QDRANT_ULR=http://127.0.0.1:6333\nPORT=8001\nPOSTGRES_PASSWORD=x\n")
    monkeypatch.setenv("LLMM", "openai")
    found = [str(each) for each in misspelt_settings() if each.name in ("LLMM", "QDRANT_ULR", "PORT", "POSTGRES_PASSWORD")]
    assert found == [
        "QDRANT_ULR (.env) is not a setting and has no effect; did you mean QDRANT_URL?",
        "LLMM (environment) is not a setting and has no effect; did you mean LLM?",
    ]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        (
            "PORT",
            "70000",
            "PORT must be a whole number from 0 to 65535; got '70000' (set in the environment; the default is 8000)",
        ),
        ("PORT", "many", "PORT must be a whole number from 0 to 65535; got 'many'"),
        ("DUAL_LEVEL_LOW_WEIGHT", "3", "DUAL_LEVEL_LOW_WEIGHT must be a number from 0 to 1; got '3'"),
        ("LLM_TIMEOUT_S", "0", "LLM_TIMEOUT_S must be a number above 0 and at most 600; got '0'"),
        ("LLM", "gpt", "LLM must be extractive or openai; got 'gpt'"),
        ("EMBEDDING_ARITHMETIC", "int4", "EMBEDDING_ARITHMETIC must be float32 or int8; got 'int4'"),
        ("LOG_LEVEL", "loud", "LOG_LEVEL must be debug, info, warning or error; got 'loud'"),
        ("MIGRATE_ON_START", "perhaps", "MIGRATE_ON_START must be true or false; got 'perhaps'"),
        ("OPERATOR_KEY", "short-secret", "OPERATOR_KEY must have at least 32 characters; it has 12 (set in the environment)"),
        ("OPERATOR_KEYS", "anna=short-secret", "OPERATOR_KEYS: the key of 'anna' must have at least 32 characters; it has 12"),
        ("OPERATOR_KEYS", f"anna={'a' * 32},{'b' * 40}", "OPERATOR_KEYS: entry 2 must be NAME=KEY with a name of 1 to 64"),
        ("OPERATOR_KEYS", f"operator={'a' * 32}", "OPERATOR_KEYS: entry 1 must be NAME=KEY with a name of 1 to 64"),
        (
            "OPERATOR_KEYS",
            f"anna={'a' * 32},anna={'b' * 32}",
            "OPERATOR_KEY, OPERATOR_KEYS and OPERATOR_KEYS_FILE must name each operator once; got 'anna'",
        ),
        (
            "OPERATOR_KEYS",
            f"anna={'a' * 32},ben={'a' * 32}",
            "operators must have different keys; 'anna' and 'ben' have the same",
        ),
        ("OPERATOR_KEYS_FILE", "no-such-file", "OPERATOR_KEYS_FILE: no-such-file cannot be read: No such file or directory"),
        ("METRICS_KEY", "short-secret", "METRICS_KEY must have at least 32 characters; it has 12 (set in the environment)"),
        (
            "TRUSTED_PROXIES",
            "127.0.0.1, proxy",
            "TRUSTED_PROXIES must hold addresses or networks such as 127.0.0.1 or 10.0.0.0/8; got 'proxy'",
        ),
    ],
)
def test_a_wrong_value_is_described_in_words(monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError) as raised:
        read_settings()
    assert raised.value.message.startswith(said)
    assert "short-secret" not in raised.value.message
    assert raised.value.__cause__ is None


def test_every_wrong_value_is_named_at_once_and_the_password_of_an_address_is_not() -> None:
    with pytest.raises(ConfigurationError) as raised:
        read_settings(port=-1, max_upload_mb="postgresql://me:hush@host/x")
    assert raised.value.message.count(" must be ") == 2
    assert "set in an option" in raised.value.message
    assert "hush" not in raised.value.message


@pytest.mark.parametrize("value", ["INFO", "Info", "info", " warning "])
def test_words_are_read_in_any_case(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("LOG_LEVEL", value)
    assert read_settings().log_level == value.strip().lower()


def test_the_config_file_is_read_below_everything_else(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "rag.yaml").write_text(
        "port: 8001\nHOST: localhost\nLlm_Model: a\nmax_upload_mb: 7\nqdrant_url: null\nLLM: OpenAI\n"
    )
    (tmp_path / ".env").write_text("AGENTIC_RAG_CONFIG=rag.yaml\nMAX_UPLOAD_MB=8\nHOST=127.0.0.2\n")
    monkeypatch.setenv("HOST", "127.0.0.3")
    read = read_settings(port=8009)
    assert (read.port, read.host, read.max_upload_mb, read.llm_model, read.llm) == (8009, "127.0.0.3", 8, "a", "openai")
    assert read.qdrant_url is None
    assert origins_of({"port": 8009}) == {
        "port": "option", "host": "environment", "max_upload_mb": ".env", "llm_model": "config file", "llm": "config file",
    }  # fmt: skip
    monkeypatch.setenv("AGENTIC_RAG_CONFIG", "")
    assert read_settings().llm_model == "a"


def test_a_value_in_the_config_file_reads_as_in_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "rag.yaml").write_text("neo4j_password: 0123\nmigrate_on_start: off\nllm_timeout_s: 1e1\n")
    monkeypatch.setenv("AGENTIC_RAG_CONFIG", str(tmp_path / "rag.yaml"))
    read = read_settings()
    assert read.neo4j_password is not None
    assert read.neo4j_password.get_secret_value() == "0123"
    assert (read.migrate_on_start, read.llm_timeout_s) == (False, 10.0)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("prot: 1", "'prot' is not a setting; did you mean PORT?"),
        ("fly_to_the_moon_at_noon: 1", "'fly_to_the_moon_at_noon' is not a setting; 'agentic-rag config' lists the settings"),
        ("port: [1]", "PORT must be one value; got a list"),
        ("server:\n  port: 1", "'server' is not a setting"),
        ("port: 1\nPORT: 2", "names PORT twice"),
        ("- port", "must be a mapping of settings, such as PORT: 8000; got a list"),
        ("port: {1", "is not YAML (line "),
        ("port: 99999", "PORT must be a whole number from 0 to 65535; got '99999' (set in the config file; the default is 8000)"),
        ("!!python/object/apply:os.getcwd []", "must be a mapping of settings"),
        (None, "cannot be read: No such file or directory"),
    ],
)
def test_a_config_file_that_is_wrong_says_where(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str | None, said: str
) -> None:
    if content is not None:
        (tmp_path / "rag.yaml").write_text(content)
    monkeypatch.setenv("AGENTIC_RAG_CONFIG", "rag.yaml")
    with pytest.raises(ConfigurationError) as raised:
        read_settings()
    assert said in raised.value.message


def test_an_empty_config_file_sets_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "rag.yaml").write_text("# nothing yet\n")
    monkeypatch.setenv("AGENTIC_RAG_CONFIG", "rag.yaml")
    assert read_settings() == Settings(_env_file=None)  # type: ignore[call-arg]


def test_a_longer_timeout_of_the_model_raises_the_limits_that_are_not_set() -> None:
    settings = Settings(llm_timeout_s=180, rerank_timeout_s=4)
    assert (settings.request_timeout_s, settings.verification_timeout_s, settings.theme_model_timeout_s) == (180, 45, 60)
    assert (settings.agentic_max_seconds, settings.rerank_timeout_s) == (90, 4)
    assert Settings(llm_timeout_s=600).request_timeout_s == 600
    assert Settings(llm_timeout_s=600).agentic_max_seconds == 300
    shorter = Settings(llm_timeout_s=1)
    assert (shorter.request_timeout_s, shorter.agentic_max_seconds) == (60, 30)
    assert "request_timeout_s" not in settings.model_fields_set


def test_the_local_profile_sets_what_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_PROFILE", "LOCAL")
    monkeypatch.setenv("GLOBAL_MAX_CALLS", "5")
    settings = Settings()
    assert (settings.llm_max_concurrency, settings.llm_timeout_s, settings.request_timeout_s) == (1, 180, 180)
    assert (settings.global_max_calls, settings.answer_context_tokens) == (5, 1500)
    faster = Settings(llm_timeout_s=60)
    assert (faster.llm_max_concurrency, faster.request_timeout_s) == (1, 60)


def test_every_value_of_a_profile_is_within_the_limits_of_its_setting() -> None:
    for values in PROFILES.values():
        Settings(**values)


def test_the_source_of_a_derived_value_is_the_setting_it_follows_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_PROFILE", "local")
    sources = {each.name: each.source for each in list_effective(Settings())}
    assert (sources["LLM_MAX_CONCURRENCY"], sources["REQUEST_TIMEOUT_S"]) == ("LLM_PROFILE", "LLM_PROFILE")
    monkeypatch.setenv("LLM_TIMEOUT_S", "120")
    sources = {each.name: each.source for each in list_effective(Settings())}
    assert (sources["LLM_TIMEOUT_S"], sources["REQUEST_TIMEOUT_S"], sources["HOST"]) == (
        "environment",
        "LLM_TIMEOUT_S",
        "default",
    )


def test_operators_have_keys_of_their_own(tmp_path: Path) -> None:
    assert Settings(_env_file=None).operators == {}
    file = tmp_path / "operators"
    file.write_text(f"# the night shift\n\ncarla = {'c' * 32}\ndana={'=' * 32}\n")
    keys = {"operator_key": "o" * 32, "operator_keys": f"anna={'a' * 32}, ben={'b' * 32},", "operator_keys_file": file}
    operators = Settings(_env_file=None, **keys).operators
    assert operators == {"operator": "o" * 32, "anna": "a" * 32, "ben": "b" * 32, "carla": "c" * 32, "dana": "=" * 32}
    file.write_text(f"ben={'d' * 32}")
    with pytest.raises(ValidationError, match="got 'ben' twice"):
        Settings(_env_file=None, **keys)
    file.write_bytes(b"\xff")
    with pytest.raises(ValidationError, match="it is not UTF-8"):
        Settings(_env_file=None, **keys)
