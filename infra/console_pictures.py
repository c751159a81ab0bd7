"""Take the pictures of the console for the documentation, on the documents of `examples`. Look at them before you commit them.

.venv/bin/python infra/console_pictures.py [VIEW ...]
"""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
import textwrap
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "fixtures"))
from console_pages import ConsolePage, open_console  # noqa: E402  # helpers of tests
from http_server import OPERATOR_KEY, issue_key, running_server  # noqa: E402
from pdf_files import Page, pdf_of  # noqa: E402
from web_browser import open_browser  # noqa: E402

FOLDER = ROOT / "docs" / "images" / "console"
PALETTES = ((64, Image.Quantize.MAXCOVERAGE), (32, Image.Quantize.MEDIANCUT), (16, Image.Quantize.MEDIANCUT))
"""Numbers of colours of a picture and how they are chosen, until the file is small enough."""
MAX_BYTES = 60 * 1024
WIDTH, HEIGHT = 1280, 720
QUESTION = "Who has to pay for lost gear under the Narrows Accord?"
REFUSED = "Who won the football world cup in 1966?"
VIEWS = {
    "overview": "#/",
    "documents": "#/documents",
    "document": "#/d/{pdf}?chunk={chunk}&quote={quote}",
    "ask": f"#/ask?q={quote(QUESTION)}",
    "refusal": f"#/ask?q={quote(REFUSED)}",
    "jobs": "#/jobs",
    "themes": "#/themes",
    "graph": "#/graph?entity={entity}&also={also}",
    "evaluation": "#/evaluation/runs/{run}",
    "requests": "#/requests?route=POST%20%2Fsearch",
    "tenants": "#/tenants",
}
"""The address of each view. Names in braces are ids of the filled server."""


class Harbour:
    """A tenant with the documents of the examples, one of them as a PDF."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client
        self.key = issue_key(client, "brannoc-sound")
        issue_key(client, "port-ellery")

    def request(self, method: str, path: str, **options: Any) -> Any:
        """Send a request, and return the data of its response."""
        response = self.client.request(method, f"/api/v1{path}", headers={"Authorization": f"Bearer {self.key}"}, **options)
        response.raise_for_status()
        return response.json()["data"]

    def follow(self, job: str) -> None:
        """Wait until a job has ended."""
        self.client.get(f"/api/v1/jobs/{job}/events", headers={"Authorization": f"Bearer {self.key}"}, timeout=300)

    def fill(self) -> dict[str, str]:
        """Upload the documents, build communities, and run an evaluation. Return the ids that views show."""
        files = sorted((ROOT / "examples" / "corpus").iterdir())
        uploads = [self.upload(path.name, path.read_bytes()) for path in files]
        report = next(path for path in files if "consultation" in path.name)
        pdf = self.upload("outer-mirrow.pdf", printed(report.read_text(encoding="utf-8")))
        for upload in (*uploads, pdf):
            self.follow(upload["job_id"])
        self.follow(self.request("POST", "/admin/communities/rebuild", json={"mode": "full"})["job_id"])
        dataset = self.request("POST", "/evaluation/datasets", json={"name": "harbour", "generate": {"count": 24}})
        self.follow(dataset["job_id"])
        compared = [{"name": name, "strategy": name} for name in ("hybrid", "dual_level")]
        run = self.request("POST", "/evaluation/runs", json={"dataset": dataset["id"], "configurations": compared})
        self.follow(run["job_id"])
        chunk = self.request("GET", f"/documents/{pdf['document_id']}/chunks")[1]
        start = chunk["location"]["start_char"] + chunk["content"].index("The association")
        end = chunk["location"]["start_char"] + chunk["content"].index("crab is.") + len("crab is.")
        entities = [self.request("GET", f"/graph/entities?name={name}")[0]["id"] for name in ("Ingrid Vassall", "Narrows Accord")]
        return {
            "pdf": pdf["document_id"],
            "chunk": chunk["id"],
            "quote": f"{start}-{end}",
            "run": run["run_id"],
            "entity": entities[0],
            "also": entities[1],
        }

    def upload(self, name: str, content: bytes) -> dict[str, Any]:
        """Upload a file under its name."""
        answer: dict[str, Any] = self.request("POST", "/documents", files={"file": (name, content)}, data={"key": name})[
            "documents"
        ][0]
        return answer


def printed(text: str) -> bytes:
    """Return the text of a Markdown file as a PDF."""
    pages, height = [Page()], 740
    for paragraph in re.sub(r"^---.*?---\n", "", text, flags=re.DOTALL).split("\n\n"):
        is_heading = paragraph.lstrip().startswith("#")
        line = paragraph.strip().lstrip("#* ").replace("\n", " ").replace("*", "")
        plain = line.encode("cp1252", "ignore").decode("cp1252")
        for piece in textwrap.wrap(plain, 60 if is_heading else 88):
            if height < 60:
                pages.append(Page())
                height = 740
            pages[-1].shows(62, height, piece, size=14 if is_heading else 11, font="F2")
            height -= 20 if is_heading else 14
        height -= 8
    return pdf_of(*pages, info="/Title (Outer Mirrow: what we heard, printed edition)")


async def take_pictures(origin: str, key: str, ids: dict[str, str], names: list[str]) -> None:
    """Take a picture of each view in both themes."""
    async with open_browser() as browser:
        for theme in ("light", "dark"):
            async with open_console(browser, origin, dark=theme == "dark", width=WIDTH) as console:
                await console.page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
                await console.sign_in(key)
                for name in names:
                    if name == "tenants":
                        await console.page.get_by_role("button", name="Sign out").click()
                        await console.sign_in(OPERATOR_KEY)
                    await console.show(VIEWS[name].format(**ids))
                    await console.page.wait_for_timeout(1500)
                    save_picture(await picture_of(console), FOLDER / f"{name}-{theme}.png")
                assert console.problems == [], console.problems


async def picture_of(console: ConsolePage) -> bytes:
    """Return what the window shows, as PNG."""
    await console.page.mouse.move(5, HEIGHT - 5)
    return await console.page.screenshot()


def save_picture(content: bytes, path: Path) -> None:
    """Write a picture with few colours."""
    picture = Image.open(BytesIO(content)).convert("RGB")
    for colours, method in PALETTES:
        picture.quantize(colours, method=method, dither=Image.Dither.NONE).save(path, optimize=True)
        if path.stat().st_size <= MAX_BYTES:
            break
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1024:.0f} KB")


def main() -> None:
    """Fill a server and take the pictures."""
    names = sys.argv[1:] or list(VIEWS)
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, running_server(Path(folder), DUAL_LEVEL_RETRIEVAL_ENABLED=True) as client:
        harbour = Harbour(client)
        ids = harbour.fill()
        asyncio.run(take_pictures(str(client.base_url).rstrip("/"), harbour.key, ids, names))


if __name__ == "__main__":
    main()
