"""Hostile bytes, documents, JSON bodies and archives, from a seeded generator."""

from __future__ import annotations

import gzip
import io
import json
import string
import tarfile
from pathlib import Path
from random import Random
from typing import Any

CORPUS = Path(__file__).parents[2] / "examples" / "corpus"
LARGEST = 3 * 1024 * 1024
UNITS = (
    "# a", " ", "[", "[a](", ".", ". ", "`", "```\n", "#", "\n", "\r", "\t", "> ", "- ", "1. ", "|", "a\n===\n",
    "---\n", "a: b\n", "*", "_", "A", "Ab ", "Ab, ", "Ab (AB) ", "the ", "'s ", "1,", "\u0301", "\u200b", "雨。", "🙂",
    "\x00", "\x07", "{{", "&lt;", "<passage>", "http://a", "A.B.", "&a *a ", "[1]", "May 5, 1999, ",
    "Ab Cd founded Ef in Gh. ",
)  # fmt: skip
MEMBERS = (
    "query", "strategy", "limit", "filters", "as_of", "weights", "options", "stream", "generator", "history", "text",
    "key", "title", "metadata", "chunking", "chunk_size", "overlap", "unit", "low", "high", "preset", "and", "or",
    "not", "eq", "in", "gt", "exists", "default", "mode", "repair", "name", "scopes", "low_limit", "high_limit",
    "low_weight", "high_weight", "synthesize", "prompt", "role", "content", "level", "expected", "extraction",
    "category", "year",
)  # fmt: skip
TYPES = (
    "text/markdown",
    "text/plain",
    "application/octet-stream",
    "",
    "text/html",
    "application/pdf",
    "text/markdown; charset=x",
)
NAMES = ("a.md", "a.txt", "", "..\\..\\a.md", "a" * 300 + ".md", "a.pdf", "雨.md", "a\r\nb.md", "a.markdown", ".md")


class Hostile:
    """Generates hostile input. Equal seeds give equal input."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self._files = [path.read_bytes() for path in sorted(CORPUS.iterdir())]

    def document(self) -> bytes:
        """Return a file: random bytes, a mutated example, or one small thing repeated."""
        kind = self.random.choices(range(5), (4, 4, 6, 6, 1))[0]
        if kind == 0:
            return self.random.randbytes(self.random.choice((0, 1, 16, 1_000, 100_000)))
        if kind == 1:
            return self._repeated().encode("utf-8", "surrogatepass")
        text = bytearray(self.random.choice(self._files))
        for _ in range(self.random.choice((1, 3, 30))):
            self._mutate(text)
        if kind == 4:  # after the part that is checked before the document is accepted
            text[:0] = b"A sentence of the beginning. " * 37_000
            text += self._repeated().encode("utf-8", "surrogatepass")
        encoding = self.random.choice(("", "", "", "utf-16", "utf-32", "latin-1", "gzip"))
        if encoding == "gzip":
            return gzip.compress(bytes(text), 1)
        return bytes(text).decode("utf-8", "replace").encode(encoding, "replace") if encoding else bytes(text)

    def _repeated(self) -> str:
        units = [self.random.choice(UNITS) for _ in range(self.random.choice((1, 1, 2, 4)))]
        size = self.random.choices((100, 10_000, 60_000, 1_500_000), (6, 6, 3, 1))[0]
        body = "".join(units) * (size // max(1, sum(map(len, units))))
        front = self.random.choice(("", "# a", "---\n", "---\na: ", "Ab ("))
        return front + body + self.random.choice(("", "b", "\n", "]", "\n---\n"))

    def _mutate(self, text: bytearray) -> None:
        at = self.random.randrange(len(text) + 1)
        kind = self.random.randrange(5)
        if kind == 0 and text:
            text[min(at, len(text) - 1)] = self.random.randrange(256)
        elif kind == 1:
            text[at:at] = self.random.randbytes(self.random.choice((1, 4, 64)))
        elif kind == 2:
            del text[at : at + self.random.choice((1, 10, 1_000))]
        elif kind == 3:
            text[at:at] = (self.random.choice(UNITS) * self.random.choice((1, 50, 5_000))).encode()
        elif len(text) < LARGEST // 2:
            text[at:at] = text[: self.random.randrange(len(text) + 1)]

    def text(self) -> str:
        """Return a short text: a question, a title, a key."""
        kind = self.random.randrange(4)
        if kind == 0:
            return "".join(self.random.choice(string.printable) for _ in range(self.random.choice((0, 1, 20, 500))))
        if kind == 1:
            return (self.random.choice(UNITS) * 8_000)[: self.random.choice((10, 600, 7_990, 8_000, 9_000))]
        words = self.random.choice(self._files).decode("utf-8", "replace").split()
        chosen = [self.random.choice(words) for _ in range(self.random.choice((3, 12, 200)))]
        return " ".join(chosen) + self.random.choice(("?", "", "\x00", "\ud800" if kind == 3 else "!"))

    def value(self, depth: int = 0) -> Any:
        """Return any JSON value."""
        kind = self.random.randrange(9 if depth < 4 else 6)
        if kind < 2:
            return self.text()
        if kind == 2:
            return self.random.choice((0, 1, -1, 5, 2**31, 2**63, 2**64, 1e308, -0.0, 0.5, 10**30))
        if kind == 3:
            return self.random.choice((True, False, None))
        if kind == 4:
            return self.random.choice(
                ("2024-01-01T00:00:00Z", "9999-99-99", "auto", "dual_level", "and", "../..", "t_" + "0" * 32)
            )
        if kind == 5:
            return [[[[[[]]]]]] if depth else []
        if kind == 6:
            return [self.value(depth + 1) for _ in range(self.random.choice((0, 1, 3, 40)))]
        return {self.name(): self.value(depth + 1) for _ in range(self.random.choice((0, 1, 3, 12)))}

    def name(self) -> str:
        """Return a member's name: a name that the API knows, or any text."""
        return self.random.choice(MEMBERS) if self.random.random() < 0.9 else self.text()[:50]

    def body(self) -> bytes:
        """Return a request's body: JSON of some kind, deep, long or broken."""
        kind = self.random.randrange(10)
        if kind == 0:
            return self.random.randbytes(self.random.choice((0, 10, 5_000)))
        if kind == 1:
            depth = self.random.choice((50, 5_000, 100_000))
            return self.random.choice((b"[", b'{"a":', b'{"filters":{"not":')) * depth
        if kind == 2:
            return b'{"query": "a", "z": [' + b"{}," * self.random.choice((100, 50_000)) + b"{}]}"
        written = json.dumps(self.value()).encode()
        if kind == 3 and written:
            at = self.random.randrange(len(written))
            written = written[:at] + self.random.randbytes(3) + written[at + 1 :]
        return written

    def search(self) -> dict[str, Any]:
        """Return the body of a search that is almost valid."""
        body: dict[str, Any] = {"query": self.text() or "a"}
        for name in self.random.sample(("strategy", "limit", "filters", "as_of", "weights", "options", "stream", "generator"), 2):
            if self.random.random() < 0.5:
                body[name] = self.value(2)
        if self.random.random() < 0.5:
            body["filters"] = {"and": [{"metadata.year": {self.random.choice(("gt", "in", "eq", "no")): self.value(2)}}] * 3}
        return body

    def archive(self, real: bytes) -> bytes:
        """Return an archive of a tenant with changed lines or damaged bytes."""
        kind = self.random.randrange(4)
        if kind == 0 or not real:
            damaged = bytearray(real or b"\x1f\x8b")
            for _ in range(self.random.choice((1, 20))):
                damaged[self.random.randrange(len(damaged))] = self.random.randrange(256)
            return bytes(damaged[: self.random.choice((len(damaged), len(damaged) // 2))])
        plain = gzip.decompress(real) if real[:2] == b"\x1f\x8b" else real
        try:
            changed = self._changed_members(plain)
        except tarfile.TarError:
            changed = plain.replace(b"\n", b"\n" * self.random.choice((1, 2, 1000)))
        return gzip.compress(changed, 1) if real[:2] == b"\x1f\x8b" else changed

    def _changed_members(self, plain: bytes) -> bytes:
        written = io.BytesIO()
        with tarfile.open(fileobj=io.BytesIO(plain)) as old, tarfile.open(fileobj=written, mode="w") as new:
            for member in old.getmembers():
                held = old.extractfile(member)
                content = held.read() if held is not None else b""
                if self.random.random() < 0.3:
                    content = self._changed_lines(content)
                member.size = len(content)
                if self.random.random() < 0.03:
                    member.name = self.random.choice(("../../etc/passwd", "documents/99999999/record.jsonl", "a" * 90))
                new.addfile(member, io.BytesIO(content))
        return written.getvalue()

    def _changed_lines(self, content: bytes) -> bytes:
        lines = content.split(b"\n")
        for _ in range(self.random.choice((1, 5))):
            at = self.random.randrange(len(lines))
            lines[at] = self._changed_line(lines[at])
        if self.random.random() < 0.1:
            lines += [b""] * 200_000
        return b"\n".join(lines)

    def _changed_line(self, line: bytes) -> bytes:
        try:
            record = json.loads(line)
        except ValueError:
            return line + self.random.randbytes(2)
        if isinstance(record, dict) and record:
            name = self.random.choice(list(record))
            record[name] = self.value(1)
        return json.dumps(record).encode()
