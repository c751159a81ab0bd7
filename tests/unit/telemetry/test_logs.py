"""Where events go: to structlog if the process configured it, else to the standard library."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
import structlog

from agentic_rag_backend.telemetry.logs import get_logger


@pytest.fixture
def unconfigured() -> Iterator[None]:
    """Take structlog's configuration away for one test."""
    kept = structlog.get_config()
    structlog.reset_defaults()
    yield
    structlog.configure(**kept)


@pytest.mark.usefixtures("unconfigured")
def test_without_a_configuration_events_go_to_the_standard_library(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    log = get_logger("agentic_rag_backend.example")
    caplog.set_level(logging.INFO, logger="agentic_rag_backend")
    with structlog.contextvars.bound_contextvars(tenant="t1"):
        log.info("job_started", name="a\nb", count=2)
    try:
        raise ValueError("broken")
    except ValueError:
        log.exception("job_crashed")
    log.debug("not_shown")

    started, crashed = caplog.records
    assert (started.name, started.levelname) == ("agentic_rag_backend.example", "INFO")
    assert started.getMessage().startswith("job_started ")
    assert set(started.getMessage().split(" ")[1:]) == {"tenant='t1'", r"name='a\nb'", "count=2"}
    assert (crashed.levelname, crashed.getMessage()) == ("ERROR", "job_crashed")
    assert crashed.exc_info is not None
    assert crashed.exc_info[0] is ValueError
    assert capsys.readouterr().out == ""
    assert not structlog.is_configured()


@pytest.mark.usefixtures("unconfigured")
def test_a_later_configuration_of_structlog_is_used() -> None:
    log = get_logger("agentic_rag_backend.example")
    log.info("before")
    structlog.configure()
    with structlog.testing.capture_logs() as events:
        log.info("after", count=1)

    assert events == [{"event": "after", "count": 1, "log_level": "info"}]
