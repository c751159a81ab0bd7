"""Progress on stderr: a bar on a terminal, otherwise lines that are some seconds apart."""

from __future__ import annotations

import io
import sys

import pytest

from agentic_rag_backend.cli.progress import LINE_INTERVAL_S, ProgressDisplay


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_without_a_terminal_a_line_appears_after_each_interval(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    with ProgressDisplay("ingest", total=200, counted=False, clock=clock) as display:
        for second in range(int(3 * LINE_INTERVAL_S)):
            clock.now += 1
            display.update(f"ingest: {second}\x1b[31m", completed=10 * (second + 1))
    printed = capsys.readouterr()

    assert printed.err.splitlines() == ["ingest: 4[31m, 25 %", "ingest: 9[31m, 50 %", "ingest: 14[31m, 75 %"]
    assert printed.out == ""


def test_parts_are_counted_and_an_unknown_total_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    with ProgressDisplay("communities", clock=clock) as display:
        for completed, total in ((0, None), (3, 12)):
            clock.now += LINE_INTERVAL_S
            display.update("communities: summarise", completed=completed, total=total)

    assert capsys.readouterr().err.splitlines() == ["communities: summarise", "communities: summarise, 3 of 12"]


def test_short_work_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    with ProgressDisplay("job", clock=clock) as display:
        clock.now += LINE_INTERVAL_S / 2
        display.update("job: embed", completed=1, total=2)

    assert capsys.readouterr().err == ""


def test_a_terminal_shows_a_bar_and_no_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, clock = Terminal(), Clock()
    monkeypatch.setattr(sys, "stderr", terminal)
    with ProgressDisplay("job", clock=clock) as display:
        clock.now += LINE_INTERVAL_S
        display.update("job: embed", completed=1, total=2)
        display._bar[0].refresh()  # type: ignore[index]  # instead of waiting for the next frame

    assert "job: embed" in terminal.getvalue()
    assert "1/2" in terminal.getvalue()
    assert "job: embed, 1 of 2\n" not in terminal.getvalue()
