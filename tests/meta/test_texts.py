"""Links of the documentation resolve. No file contains a package registry's host or a folder of one machine."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)|!\[[^\]]*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)

# Split, so that this file does not contain the forbidden text.
_HOSTS = [
    "pypi" + ".org",
    "python" + "hosted.org",
    "npm" + "js.org",
    "npm" + "js.com",
    "docker" + ".io",
    "ghcr" + ".io",
    "maven" + ".org",
]
_FOLDERS = ["work", "root", "home", "Users", "opt", "tmp"]
FORBIDDEN_HOST = re.compile("|".join(map(re.escape, _HOSTS)), re.IGNORECASE)
FORBIDDEN_FOLDER = re.compile(rf"(?<![\w.$}}*/:-])/(?:{'|'.join(_FOLDERS)})/[\w.]")
_SOURCE = re.compile(r"`([\w./-]+\.(?:py|sql|cypher))`")
# Words that obscure a sentence; each has a plain substitute.
_OBSCURE = re.compile(
    r"\b(?:what\s+(?:is|are|was|were|has|have|had)|(?:who|what|which)ever|the\s+ones?\s+(?:that|who)|those\s+(?:that|who|which)"
    r"|beside|anew|of\s+(?:which|whom)|as\s+ever|some\s+such|told|look(?:s|ed)?\s+(?:at|into))\b",
    re.IGNORECASE,
)
OBSCURE_PER_1000_LINES = 2
# Files with paths that do not exist here: inputs that must be refused.
_PATHS_AS_INPUT = {"tests/unit/stores/blob/test_base.py"}


def slug(heading: str) -> str:
    """Return the anchor of a heading, as common renderers make it."""
    plain = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", plain))


def anchors(text: str) -> set[str]:
    """Return the anchors of a Markdown text."""
    return {slug(found) for found in re.findall(r"^#{1,6}\s+(.+?)\s*#*$", _FENCE.sub("", text), re.MULTILINE)}


def broken_links(path: Path) -> list[str]:
    """Return the links of a Markdown file that do not resolve inside the repository."""
    text = path.read_text(encoding="utf-8")
    broken = []
    for found in _LINK.finditer(_FENCE.sub("", text)):
        target = found[1] or found[2]
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        other = (path.parent / name).resolve() if name else path
        if not other.exists() or (anchor and other.suffix == ".md" and anchor not in anchors(other.read_text(encoding="utf-8"))):
            broken.append(target)
    return broken


def test_every_link_inside_the_repository_resolves(documents: list[Path], root: Path) -> None:
    broken = {str(path.relative_to(root)): found for path in documents if (found := broken_links(path))}

    assert not broken


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "there.md").write_text("# Some Heading\n")
    page = tmp_path / "page.md"
    page.write_text("[a](there.md) [b](there.md#some-heading) [c](there.md#none) [d](absent.md)\n```\n[e](absent.md)\n```\n")

    assert broken_links(page) == ["there.md#none", "absent.md"]


def test_no_page_of_the_documentation_is_orphaned(documents: list[Path], root: Path) -> None:
    pages = {path for path in documents if path.is_relative_to(root / "docs")}
    reached, waiting = set(), [root / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached or page.suffix != ".md" or not page.is_file():
            continue
        reached.add(page)
        found = _LINK.finditer(page.read_text(encoding="utf-8"))
        waiting += [(page.parent / (link[1] or link[2]).partition("#")[0]).resolve() for link in found]

    assert sorted(pages - reached) == []


def test_no_file_names_a_registry_or_a_machine(own_files: list[Path], root: Path) -> None:
    hits = []
    for path in own_files:
        name = path.relative_to(root).as_posix()
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            if FORBIDDEN_HOST.search(line) or (FORBIDDEN_FOLDER.search(line) and name not in _PATHS_AS_INPUT):
                hits.append(f"{name}:{number}: {line.strip()[:120]}")

    assert not hits


@pytest.mark.parametrize("line", ["see " + "/wo" + "rk/main", "--find-links " + "/op" + "t/wheels", "'" + "/ro" + "ot/.cache'"])
def test_folders_of_a_machine_are_recognised(line: str) -> None:
    assert FORBIDDEN_FOLDER.search(line)


@pytest.mark.parametrize("line", ["$API/op" + "t/items", "a/tmp/b", "https://example.org/home/page", "file:///opt/data", "/opt"])
def test_other_paths_are_let_through(line: str) -> None:
    assert not FORBIDDEN_FOLDER.search(line)


def missing_files(text: str, names: list[str]) -> list[str]:
    """Return the source files that a text names in backticks and that match the end of no path in ``names``."""
    return [name for name in _SOURCE.findall(text) if not any(f"/{path}".endswith(f"/{name}") for path in names)]


def test_documents_name_source_files_that_exist(documents: list[Path], own_files: list[Path], root: Path) -> None:
    names = [path.relative_to(root).as_posix() for path in own_files]
    missing = {
        str(path.relative_to(root)): found
        for path in documents
        if path.name != "CHANGELOG.md" and (found := missing_files(path.read_text(encoding="utf-8"), names))
    }

    assert not missing


def test_a_source_file_that_does_not_exist_is_found() -> None:
    assert missing_files("`a/b.py` `b.py` `c.py` `.b.py` b.py", ["src/a/b.py"]) == ["c.py", ".b.py"]


def prose(text: str) -> str:
    """Return the text of a Markdown file without code and link targets."""
    return re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`\n]*`", "`", _FENCE.sub("", text)))


def test_documents_use_plain_words(documents: list[Path], root: Path) -> None:
    pages = [path for path in documents if path.name in {"README.md", "CHANGELOG.md"} or path.is_relative_to(root / "docs")]
    # This page quotes documents of the examples.
    pages = [path for path in pages if path.name != "theme-samples.md"]
    texts = {str(path.relative_to(root)): prose(path.read_text(encoding="utf-8")) for path in [*pages, root / ".env.example"]}
    lines = sum(1 for text in texts.values() for line in text.splitlines() if line.strip())
    hits = [f"{name}: {found[0]!r}" for name, text in texts.items() for found in _OBSCURE.finditer(text)]

    assert len(hits) <= OBSCURE_PER_1000_LINES * lines / 1000, hits


@pytest.mark.parametrize(
    "sentence", ["Whoever asks is told.", "It is written\nanew.", "See what is there.", "the one that holds"]
)
def test_obscure_words_are_recognised(sentence: str) -> None:
    assert _OBSCURE.search(prose(sentence))


@pytest.mark.parametrize("sentence", ["`agentic-rag whoever`", "[ADR](decisions/0013-index-built-beside.md)", "```\nanew\n```"])
def test_code_and_link_targets_are_no_prose(sentence: str) -> None:
    assert not _OBSCURE.search(prose(sentence))


def test_the_licence_is_the_one_that_the_package_declares(root: Path) -> None:
    project = tomllib.loads((root / "backend" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = (root / "LICENSE").read_text(encoding="utf-8")

    assert project["license"] == "Apache-2.0"
    assert "Apache License\n                           Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text
    assert (root / "backend" / project["readme"]).is_file()


def test_decisions_are_numbered_without_gaps_and_say_what_a_decision_must(root: Path) -> None:
    files = sorted(path for path in (root / "docs" / "decisions").glob("[0-9]*.md"))

    assert [int(path.name[:4]) for path in files] == list(range(1, len(files) + 1))
    for path in files:
        assert {"context", "decision", "consequences", "alternatives"} <= anchors(path.read_text(encoding="utf-8")), path.name


def test_no_text_installs_the_package_from_an_index(own_files: list[Path]) -> None:
    """It is on none. Delete this test with the first release."""
    command = re.compile(r"pip install ['\"]?agentic" + r"-rag-backend")

    assert [str(path) for path in own_files if command.search(path.read_text(encoding="utf-8", errors="replace"))] == []
