# Everything runs in .venv, which `install` makes from the locked requirements; nothing else has to be installed first.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CLIENTS := .venv-clients
FRAMEWORKS := clients/python/requirements-frameworks.lock
COVERAGE := --cov=agentic_rag_backend --cov-branch --cov-report=
# What each test took, as JUnit XML: `$(BIN)/python infra/durations.py` lists the slowest.
REPORTS := .reports
# Tests write stores again and again; in memory, where there is a file system there with room, nobody waits for the disk.
IN_MEMORY := $(shell [ -w /dev/shm ] && [ "$$(df -Pk /dev/shm | awk 'NR == 2 {print $$4}')" -gt 6000000 ] && echo TMPDIR=/dev/shm)
# Tests start many Python processes. Without compiled files, each one compiles the package again: half of its start.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help install fmt check client test test-unit test-near test-clients test-pythons test-services test-slo test-deep up down up-local docs pictures bench same demo serve worker lock clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  %-13s %s\n", $$1, $$2}'

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; this is " + sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)

RUNTIME := backend/requirements.lock backend/requirements-build.lock
$(VENV)/.runtime: $(BIN)/python $(RUNTIME) backend/pyproject.toml testing/pyproject.toml clients/python/pyproject.toml
	$(BIN)/python infra/install.py $(RUNTIME) --editable backend testing clients/python
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime backend/requirements-dev.lock
	$(BIN)/python infra/install.py backend/requirements-dev.lock
	@touch $@

install: $(VENV)/.dev ## make .venv with everything that tests and checks need

demo: $(VENV)/.runtime ## the main job on examples/: ingest, build graph and communities, three cited answers
	$(BIN)/agentic-rag demo

serve: $(VENV)/.runtime ## serve on http://127.0.0.1:8000, data in ./data
	$(BIN)/agentic-rag serve

worker: $(VENV)/.dev ## run jobs beside others on the stores that .env names (server profile); health on port 8001
	$(BIN)/agentic-rag worker

# By file, so that a file's fixtures are built once. (pytest-xdist 3.8 cannot group tests on pytest 9.2.)
# Coverage makes Python half as fast, so it is measured on a part of the tests: few that reach the gate with some room. UNCOVERED are
# the unit tests that compute most, and whose code others reach as well.
# Tests marked `alone` start processes or wait for time to pass. They run first, one after the other, and use about one core.
# Exit code 5 means that no test was selected, which is no failure when ARGS selects.
# ARGS selects tests, and a part of the tests says nothing about coverage: the gate is checked only without ARGS.
UNCOVERED := $(patsubst %,tests/unit/%.py,test_wording api/documentation/test_openapi api/responses/test_attachments cli/test_app \
	documents/chunking/test_chunking documents/parsing/code/test_code knowledge/extraction/test_rules \
	knowledge/tenant_graph/test_linking knowledge/tenant_graph/test_pagerank knowledge/visible/test_succession \
	themes/raptor/structure/test_clustering domain/test_filter_grammar retrieval/test_rank_fusion stores/vector/qdrant/test_ranks)
COVERED := \
	$(patsubst %,tests/contract/test_%.py,blob_store graph_search graph_store language_model neo4j_graph_store postgres vector_store) \
	$(patsubst %,tests/e2e/api/test_%.py,administration changes idempotency quotas raptor) \
	tests/integration/retrieval/test_graph_away.py
OTHERS := $(filter-out tests/unit/ tests/__pycache__/,$(wildcard tests/*/)) $(COVERED:%=--ignore=%) $(UNCOVERED)
# Their files only: collecting all tests takes longer than some of them.
ALONE := $(shell grep -rl --include='test_*.py' 'mark\.alone' tests)
test: $(VENV)/.dev ## every test, in parallel, and the gate of branch coverage; ARGS='-k name' selects
	$(IN_MEMORY) $(BIN)/python -m pytest $(ALONE) -m alone --junitxml $(REPORTS)/alone.xml $(ARGS) || [ $$? -eq 5 ]
	$(IN_MEMORY) $(BIN)/python -m pytest tests/unit $(UNCOVERED:%=--ignore=%) $(COVERED) -m "not alone" -n auto --dist loadfile --junitxml $(REPORTS)/covered.xml $(COVERAGE) $(ARGS) || [ $$? -eq 5 ]
	$(if $(strip $(ARGS)),,$(BIN)/python tests/meta/coverage_gate.py)
	$(IN_MEMORY) $(BIN)/python -m pytest $(OTHERS) -m "not alone" -n auto --dist loadfile --junitxml $(REPORTS)/others.xml $(ARGS) || [ $$? -eq 5 ]

# Unit tests do not wait: another process than one per core only imports everything once more.
CORES := $(shell getconf _NPROCESSORS_ONLN)
test-unit: $(VENV)/.dev ## the unit tests, in a process a core: about a minute
	$(IN_MEMORY) $(BIN)/python -m pytest tests/unit -n $(CORES) --dist loadfile $(ARGS)

test-near: $(VENV)/.dev ## the tests near what differs from the last commit, or near FILES="a.py b.py"
	$(IN_MEMORY) $(BIN)/python infra/tests_near.py $(FILES) -- $(ARGS)

$(CLIENTS)/.installed: $(VENV)/.dev $(FRAMEWORKS)
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(CLIENTS)
	$(BIN)/python infra/install.py $(FRAMEWORKS) --python $(CLIENTS)/bin/python
	@touch $@

# The frameworks have an environment of their own: they need other versions of some packages than the product.
test-clients: $(CLIENTS)/.installed ## the retrievers of the client in LangChain, LlamaIndex and Haystack, with a server: half a minute
	cd backend && ../$(BIN)/mypy --python-executable ../$(CLIENTS)/bin/python --cache-dir .mypy_cache/frameworks ../clients/python/src
	cd clients/python/tests && $(IN_MEMORY) ../../../$(CLIENTS)/bin/python -m pytest $(ARGS)

test-pythons: $(VENV)/.dev ## the unit tests and a short demo on every Python from 3.11 on that is here, each in a fresh environment
	$(BIN)/python infra/test_pythons.py $(ARGS)

MINUTES ?= 30
test-deep: $(VENV)/.dev ## many more examples of what the gate samples, then MINUTES=30 of hostile input against a real server
	$(IN_MEMORY) $(BIN)/python -m pytest -m deep --timeout 7200 -n $(CORES) --dist worksteal --junitxml $(REPORTS)/deep/tests.xml $(ARGS)
	$(IN_MEMORY) AGENTIC_RAG_TEST_DEEP=1 $(BIN)/python -m pytest tests/unit -m hypothesis -n $(CORES) --dist worksteal --junitxml $(REPORTS)/deep/properties.xml $(ARGS)
	$(BIN)/python infra/test_pythons.py --newest --sensitive
	$(BIN)/python tests/deep/fuzz.py --minutes $(MINUTES)

test-slo: $(VENV)/.dev ## absolute times that the specifications limit, on a quiet machine
	$(BIN)/python -m pytest -m slo -s tests/integration/retrieval $(ARGS)

test-services: $(VENV)/.dev ## the tests that need Neo4j or PostgreSQL: found by their settings, else started for the tests
	infra/install_services.sh
	$(BIN)/python -m pytest -m services $(ARGS)

up: ## the server profile in containers (needs Docker and a .env; see infra/README.md)
	docker compose up --build --detach --wait

down: ## stop it; its volumes stay
	docker compose down

docs: $(VENV)/.dev ## regenerate .env.example, the settings reference and the plots of the benchmarks
	$(BIN)/python tests/meta/test_settings.py
	$(BIN)/python benchmarks/plots.py --documentation

client: $(VENV)/.dev ## write the modules of clients/python that follow the OpenAPI description
	cd clients/python && ../../$(BIN)/python -m generator

pictures: $(VENV)/.dev ## take the pictures of the console for docs/images/console; look at them before you commit them
	$(BIN)/python infra/console_pictures.py

up-local: $(VENV)/.dev ## Neo4j and PostgreSQL for development, without Docker, data in ./.services, until Ctrl-C
	$(BIN)/python tests/fixtures/services.py .services

check: $(VENV)/.dev ## formatting, lint, types and layers, in less than a minute; needs no test run
	cd backend && ../$(BIN)/ruff format --check src ../testing/src ../clients/python ../tests ../benchmarks ../examples
	cd backend && ../$(BIN)/ruff check src ../testing/src ../clients/python ../tests ../benchmarks ../examples
	cd backend && ../$(BIN)/mypy
	cd backend && ../$(BIN)/lint-imports

fmt: $(VENV)/.dev ## format and fix what can be fixed
	cd backend && ../$(BIN)/ruff check --fix src ../testing/src ../clients/python ../tests ../benchmarks ../examples && ../$(BIN)/ruff format src ../testing/src ../clients/python ../tests ../benchmarks ../examples

bench: $(VENV)/.dev ## measure retrieval, chunking, formats, ingestion, fairness, memory, answers, claim checks, extraction, indexes, Graphiti's leg, communities and corpus-wide answers; tables and plots in benchmarks/results
	$(BIN)/python benchmarks/retrieval.py
	$(BIN)/python benchmarks/chunking.py
	$(BIN)/python benchmarks/formats.py
	$(BIN)/python benchmarks/isolated_parsing.py
	$(BIN)/python benchmarks/hostile_set.py
	$(BIN)/python benchmarks/ingestion.py
	$(BIN)/python benchmarks/fairness.py
	$(BIN)/python benchmarks/memory.py
	$(BIN)/python benchmarks/answers.py
	$(BIN)/python benchmarks/answerability.py
	$(BIN)/python benchmarks/follow_ups.py
	$(BIN)/python benchmarks/claims.py
	$(BIN)/python benchmarks/extraction.py
	$(BIN)/python benchmarks/index_upkeep.py
	$(BIN)/python benchmarks/graphiti.py
	$(BIN)/python benchmarks/communities.py
	$(BIN)/python benchmarks/corpus_wide.py
	$(BIN)/python benchmarks/plots.py

same: $(VENV)/.dev ## prove that a change of the code changed no result: writes OUT, compares with BASE; ONLY=answers,claims SETS=squad2 KEEP=DIR
	$(IN_MEMORY) $(BIN)/python benchmarks/same.py $(OUT:%=--out %) $(BASE:%=--base %) $(ONLY:%=--only %) $(if $(SETS),--sets $(SETS)) $(KEEP:%=--keep %)

# Universal: one lock a file, with markers, for every supported Python and platform.
LOCK := ../$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header
lock: $(VENV)/.dev ## resolve the requirements again and write the lock files
	cd backend && $(LOCK) -o requirements.lock pyproject.toml
	cd backend && $(LOCK) --extra dev --extra dspy --extra server --extra telemetry --group build -c requirements.lock -o requirements-dev.lock pyproject.toml
	cd backend && $(LOCK) --extra server --extra telemetry -c requirements-dev.lock -o requirements-server.lock pyproject.toml
	cd backend && $(LOCK) --group build -c requirements-dev.lock -o requirements-build.lock
	cd backend && $(LOCK) --all-extras --group ../clients/python/pyproject.toml:test -o ../$(FRAMEWORKS) ../clients/python/pyproject.toml

clean: ## remove .venv, caches and the demo's data
	rm -rf $(VENV) $(CLIENTS) .demo .coverage .reports .pytest_cache .hypothesis backend/.mypy_cache backend/.ruff_cache backend/.import_linter_cache
