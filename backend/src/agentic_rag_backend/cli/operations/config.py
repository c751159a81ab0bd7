"""``config``: the effective settings and their sources."""

from __future__ import annotations

from dataclasses import asdict

import typer

from agentic_rag_backend.cli.command import AsJson, DataDir
from agentic_rag_backend.cli.configuration import effective, load_settings
from agentic_rag_backend.cli.output import Output, table


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("config")(config)


def config(json: AsJson = False, data_dir: DataDir = None) -> None:
    """Show every setting with its value and source. Secrets are masked."""
    rows = effective(load_settings(data_dir=data_dir), data_dir=data_dir)
    output = Output(as_json=json)
    if json:
        output.result([asdict(row) for row in rows])
    else:
        output.show(table(["setting", "value", "source", "description"], [[*asdict(row).values()] for row in rows]))
