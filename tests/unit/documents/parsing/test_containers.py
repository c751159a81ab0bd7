from __future__ import annotations

import io
import warnings
import zipfile

import pytest
from lxml import etree
from office_files import zipped

from agentic_rag_backend.documents.parsing import containers
from agentic_rag_backend.documents.parsing.containers import ZipContainer, xml_tree
from agentic_rag_backend.errors import ResourceLimit, UnreadableDocument


def test_members_are_read() -> None:
    container = ZipContainer(zipped({"a.xml": "<a>é</a>", "folder/": "", "folder/b.txt": b"b"}))
    assert list(container.names) == ["a.xml", "folder/b.txt"]
    assert container.read_tree("a.xml").text == "é"
    assert container.read_member("folder/b.txt") == b"b"
    with pytest.raises(UnreadableDocument, match="no member 'c'"):
        container.read_member("c")
    # A damaged directory may have names without letters.
    assert list(ZipContainer(zipped({"a": "1", "b": "2"}).replace(b"b", b"\0")).names) == ["a"]


def two_members_of_one_name() -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as written, warnings.catch_warnings(action="ignore"):
        written.writestr("a", "1")
        written.writestr("a", "2")
    return target.getvalue()


def encrypted() -> bytes:
    content = bytearray(zipped({"a": "text"}))
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    return bytes(content)


def compressed_by_lzma() -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_LZMA) as written:
        written.writestr("a", "1")
    return target.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\x03\x04", "damaged"),
        (zipped({"a": "text" * 100})[:-30], "damaged"),
        (zipped({"../a": "1"}), "leads out"),
        (zipped({"/etc/a": "1"}), "leads out"),
        (zipped({"a\\..\\b": "1"}), "leads out"),
        (two_members_of_one_name(), "two members"),
        (encrypted(), "encrypted"),
        (compressed_by_lzma(), "Deflate"),
        (zipped({str(number): "" for number in range(10_001)}), "10001 members; the limit is 10000"),
    ],
    ids=["signature", "truncated", "parent", "root", "backslash", "duplicate", "encrypted", "lzma", "many"],
)
def test_hostile_containers_are_refused(content: bytes, message: str) -> None:
    with pytest.raises(UnreadableDocument, match=message):
        ZipContainer(content)


def lying(content: bytes, size: int) -> bytes:
    """Return a ZIP file whose directory states that its member has another size."""
    changed = bytearray(content)
    directory = changed.index(b"PK\x01\x02")
    changed[directory + 24 : directory + 28] = size.to_bytes(4, "little")
    return bytes(changed)


def test_bombs_stop_early() -> None:
    bomb = zipped({"a": bytes(100_000_000)})
    container = ZipContainer(bomb)
    with pytest.raises(ResourceLimit, match="limit is 200 times its size"):
        container.read_member("a")
    assert container._unzipped <= containers.RATIO_FROM_BYTES + containers._BLOCK_BYTES
    with pytest.raises(UnreadableDocument):
        ZipContainer(lying(bomb, 10)).read_member("a")


def test_all_members_together_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(containers, "MAX_UNZIPPED_BYTES", 5 * 1024 * 1024)
    container = ZipContainer(zipped({str(number): bytes(1024 * 1024) for number in range(6)}))
    with pytest.raises(ResourceLimit, match="more than 5 MiB"):
        [container.read_member(name) for name in container.names]


LAUGHS = '<!DOCTYPE a [<!ENTITY b "ha"><!ENTITY c "&b;&b;&b;">]><a>&c;</a>'
EXTERNAL = '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>'


@pytest.mark.parametrize(
    ("xml", "message"),
    [
        (LAUGHS.encode(), "DOCTYPE"),
        (EXTERNAL.encode(), "DOCTYPE"),
        (LAUGHS.encode("utf-16"), "DOCTYPE"),
        (EXTERNAL.encode("utf-16-be"), "DOCTYPE"),
        (b"<a>" * 300 + b"</a>" * 300, "'a.xml' are nested more than 256 deep"),
        (b"<a>", "not valid"),
        (b"", "not valid"),
        (b"<a>\x00</a>", "not valid"),
    ],
    ids=["entities", "external", "utf-16", "utf-16-be", "deep", "open", "empty", "NUL"],
)
def test_hostile_xml_is_refused(xml: bytes, message: str) -> None:
    with pytest.raises(UnreadableDocument, match=message):
        xml_tree(xml, "a.xml")


def test_xml_that_needs_too_much_memory_is_not_damaged() -> None:
    with pytest.raises(MemoryError):
        containers.xml_problem(etree.ErrorTypes.ERR_NO_MEMORY, "unknown error", "the XML of 'a.xml'")
    with pytest.raises(ResourceLimit, match=r"'a\.xml' has a text of more than 10000000 bytes without tags"):
        xml_tree(b"<a>" + b"text " * 2_000_001 + b"</a>", "a.xml")
