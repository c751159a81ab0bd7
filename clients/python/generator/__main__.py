"""Write the modules of the client that follow the OpenAPI description: models, parameters and operations.

`names.py` gives every route its name in the client. A route without a name is an error, so a new route needs a line there.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from generator.description import check_coverage, read_description
from generator.writer import Schema, Writer

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "clients" / "python" / "src" / "agentic_rag_client"


def format_code(code: str, name: str) -> str:
    """Return code as ruff formats it, without imports that it does not use."""
    for command in (["check", "--quiet", "--fix-only", "--select", "F401,I"], ["format", "--quiet"]):
        options: list[str | Path] = ["--config", ROOT / "backend" / "pyproject.toml", "--stdin-filename", PACKAGE / name, "-"]
        ruff: list[str | Path] = [sys.executable, "-m", "ruff", *command, *options]
        code = subprocess.run(ruff, input=code, capture_output=True, text=True, check=True).stdout
    return code


def generate(description: Schema) -> dict[str, str]:
    """Return the text of each module that follows the description, by file name."""
    check_coverage(description)
    return {name: format_code(code, name) for name, code in Writer(description).write().items()}


if __name__ == "__main__":
    for module, code in generate(read_description()).items():
        (PACKAGE / module).write_text(code, encoding="utf-8")
