"""Counts the files and functions of the package that one request passes: `python request_path.py`, with `--list` for their names.

The examples are ingested and their communities are built. Then the application answers a request once, so that what is built at
first use exists, and a second request with another question is counted: everything of the package that runs on any thread
between the request and its response.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import agentic_rag_backend

PACKAGE = Path(agentic_rag_backend.__file__).parent
EXAMPLES = PACKAGE.parents[2] / "examples" / "corpus"
KEY = "key-of-the-operator-of-this-count"
WARM, COUNTED = "Who leads the harbour project?", "Which company employs Mara Venn?"
REQUESTS = {"/search": {"strategy": "auto"}, "/answers": {"strategy": "auto"}}
_EXPRESSIONS = frozenset({"<module>", "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})
"""Code that is a part of the function around it."""


@dataclass
class Trace:
    """The code objects of the package that ran while ``on``."""

    on: bool = False
    passed: set[CodeType] = field(default_factory=set)

    def profile(self, frame: FrameType, event: str, _: Any) -> None:
        """Note the code of a call. It is the profile function of every thread."""
        if self.on and event == "call":
            self.passed.add(frame.f_code)

    def names(self) -> list[tuple[str, str]]:
        """Return the file, relative to the package, and the name of each function that was called, in order."""
        functions = (code for code in self.passed if code.co_name not in _EXPRESSIONS)
        inside = (code for code in functions if code.co_filename.startswith(str(PACKAGE)))
        return sorted(
            {(str(Path(code.co_filename).relative_to(PACKAGE)), f"{code.co_qualname}:{code.co_firstlineno}") for code in inside}
        )


async def count(trace: Trace) -> dict[str, list[tuple[str, str]]]:
    """Return the functions that each of `REQUESTS` passes."""
    # Imported after the profile function is installed, so that threads of imports have it, too.
    import httpx

    from agentic_rag_backend.api.app import BASE_PATH, create_app
    from agentic_rag_backend.library import open_embedded

    counted: dict[str, list[tuple[str, str]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        async with open_embedded(folder, dual_level=False, operator_key=KEY) as documents:
            await documents.ingest(EXAMPLES)
            transport = httpx.ASGITransport(create_app(documents.container))
            headers = {"Authorization": f"Bearer {KEY}", "X-Tenant-Id": "default"}
            async with httpx.AsyncClient(transport=transport, base_url="http://count", headers=headers) as client:
                for path, body in REQUESTS.items():
                    await client.post(BASE_PATH + path, json={**body, "query": WARM})
                    trace.passed.clear()
                    trace.on = True
                    response = await client.post(BASE_PATH + path, json={**body, "query": COUNTED})
                    trace.on = False
                    response.raise_for_status()
                    counted[path] = trace.names()
    return counted


def main() -> int:
    """Print the figures of each request."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="print every function")
    arguments = parser.parse_args()
    trace = Trace()
    threading.setprofile(trace.profile)
    sys.setprofile(trace.profile)
    counted = asyncio.run(count(trace))
    for path, names in counted.items():
        files = {file for file, _ in names}
        print(f"POST {path}: {len(files)} files, {len(names)} functions")
        folders = Counter("/".join(file.split("/")[:2]) if file.count("/") > 1 else file.split("/")[0] for file, _ in names)
        print("  " + ", ".join(f"{folder} {number}" for folder, number in folders.most_common()))
        if arguments.list:
            print(*(f"  {file} {name}" for file, name in names), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
