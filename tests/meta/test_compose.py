"""The compose file and the Dockerfile: pinned, without built-in passwords, with health checks and limits."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from agentic_rag_backend.settings import Settings

_VARIABLE = re.compile(r"(?<!\$)\$\{?([A-Z][A-Z0-9_]*)(:[?-][^}]*)?\}?")
SECRETS = {"POSTGRES_PASSWORD", "NEO4J_PASSWORD", "QDRANT_API_KEY", "OPERATOR_KEY"}
OWN = ("migrate", "api", "worker")
STORES = ("postgres", "neo4j", "qdrant")


@pytest.fixture(scope="module")
def text(root: Path) -> str:
    return (root / "docker-compose.yml").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def services(text: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(text)["services"]
    return found


@pytest.fixture(scope="module")
def dockerfile(root: Path) -> str:
    return (root / "infra" / "Dockerfile").read_text(encoding="utf-8")


def variables(text: str) -> dict[str, set[str]]:
    """Return the interpolated variables, with the text after each name."""
    found: dict[str, set[str]] = {}
    for line in text.splitlines():
        if not line.lstrip().startswith("#"):
            for name, rest in _VARIABLE.findall(line):
                found.setdefault(name, set()).add(rest)
    return found


def test_it_has_the_services_that_the_profile_needs(services: dict[str, Any]) -> None:
    assert set(services) == {*STORES, *OWN}


def test_every_variable_is_a_setting_or_in_the_example_file(text: str, root: Path) -> None:
    example = set(re.findall(r"^# ([A-Z0-9_]+)=", (root / ".env.example").read_text(encoding="utf-8"), re.MULTILINE))

    assert set(variables(text)) <= example


def test_secrets_have_no_default_and_are_required(text: str) -> None:
    found = variables(text)

    assert set(found) >= SECRETS
    for name in SECRETS:
        assert all(rest.startswith(":?set " + name) for rest in found[name]), name
    assert not re.search(r"(?i)(password|secret|api_key)[A-Z_]*: +[^$\s{][^$]*$", text, re.MULTILINE)


def test_variables_of_our_containers_are_settings(services: dict[str, Any]) -> None:
    for name in OWN:
        given = services[name]["environment"]
        assert {each.lower() for each in given} <= set(Settings.model_fields), name
        assert (given["WORKER_INLINE"], given["MIGRATE_ON_START"]) == ("false", "false")


def test_our_settings_are_accepted(services: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in services["api"]["environment"].items():
        monkeypatch.setenv(name, _VARIABLE.sub("k" * 32, str(value)) if "BLOB_URL" not in name else "file:///data/blobs")

    read = Settings(_env_file=None)  # type: ignore[call-arg]

    assert (read.graph_store, read.vector_store, read.worker_inline) == ("neo4j", "qdrant", False)


def test_images_are_pinned(services: dict[str, Any], dockerfile: str) -> None:
    images = [services[name]["image"] for name in STORES] + re.findall(r"^FROM (\S+)", dockerfile, re.MULTILINE)

    assert all(re.fullmatch(r"[a-z0-9./-]+:v?\d+\.\d+(\.\d+)?(-[a-z]+)*", image) for image in images), images


def test_everything_is_bounded_and_asked_for_its_health(services: dict[str, Any]) -> None:
    for name, service in services.items():
        assert re.fullmatch(r"\d+[mg]", service["mem_limit"]), name
        assert service["cpus"] > 0, name
        assert service["ulimits"]["nofile"]["hard"] >= 65_536, name
        assert service["cap_drop"] == ["ALL"], name
        assert "no-new-privileges:true" in service["security_opt"], name
        assert service["healthcheck"].get("disable") is (True if name == "migrate" else None), name
    for name in OWN:
        assert (services[name]["read_only"], bool(services[name]["tmpfs"])) == (True, True), name


def test_nothing_starts_before_what_it_needs(services: dict[str, Any]) -> None:
    for name in STORES:
        assert services["migrate"]["depends_on"][name] == {"condition": "service_healthy"}
    for name in ("api", "worker"):
        assert services[name]["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}
        assert services[name]["restart"] == "unless-stopped"
    assert services["migrate"]["restart"] == "no"


def test_only_the_api_is_published_and_on_loopback(services: dict[str, Any]) -> None:
    assert {name for name, service in services.items() if "ports" in service} == {"api"}
    assert all(port.startswith("127.0.0.1:") for port in services["api"]["ports"])


def test_data_is_in_named_volumes(services: dict[str, Any], text: str) -> None:
    named = set(yaml.safe_load(text)["volumes"])
    used = {volume.partition(":")[0] for service in services.values() for volume in service.get("volumes", ())}

    assert used == named


def test_the_image_is_built_in_stages_from_hashes_and_does_not_run_as_root(dockerfile: str) -> None:
    assert len(re.findall(r"^FROM ", dockerfile, re.MULTILINE)) == 2
    for lock in ("requirements-server.lock", "requirements-build.lock"):
        assert f"--require-hashes --only-binary :all: -r {lock}" in dockerfile
    assert re.findall(r"^USER (\S+)", dockerfile, re.MULTILINE) == ["10001:10001"]
    assert "--no-deps --no-build-isolation" in dockerfile


def test_the_image_takes_in_only_what_it_copies(root: Path, dockerfile: str) -> None:
    ignored = (root / ".dockerignore").read_text(encoding="utf-8").splitlines()
    copied = {name for line in re.findall(r"^COPY (?!--)(.+)", dockerfile, re.MULTILINE) for name in line.split()[:-1]}

    assert "*" in ignored
    assert copied == {line[1:] for line in ignored if line.startswith("!")}
    assert all((root / name).exists() for name in copied)


@pytest.mark.parametrize("name", ["up", "down", "docs"])
def test_make_has_the_targets(root: Path, name: str) -> None:
    assert re.search(rf"^{name}:.*## ", (root / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
