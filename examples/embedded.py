"""Use agentic-rag inside a Python program: ingest example documents, ask a question, print the answer and its citations.

Run it with ``python examples/embedded.py [QUESTION]``. It removes its data at the end.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from agentic_rag_backend import open_embedded

CORPUS = Path(__file__).parent / "corpus"
QUESTION = "Who leads the TIDEGLASS project?"


async def main(question: str) -> None:
    with tempfile.TemporaryDirectory() as data_dir:
        async with open_embedded(data_dir) as rag:
            documents = await rag.ingest(CORPUS / "tideglass-project-page.md", CORPUS / "narrows-accord-2012.md")
            documents += await rag.ingest(text="The Mirrow Narrows are 900 metres wide.", key="note", title="A note")
            print(f"{len(documents)} documents, {sum(document.chunk_count for document in documents)} passages")

            found = await rag.search(question, limit=3)
            for hit in found.hits:
                print(f"{hit.score:.2f}  {hit.visible.document_title}")

            answer = await rag.ask(question)
            print(answer.text)
            for citation in answer.citations:
                print(f"  [{citation.marker}] {citation.title}: “{citation.quote}”")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else QUESTION))
