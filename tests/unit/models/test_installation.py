"""Installation of models from a real HTTP server on loopback, through a proxy, and from a folder."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from model_hub import ModelHub, model_hub

from agentic_rag_backend.errors import ConfigurationError, ModelUnavailable
from agentic_rag_backend.models import download as download_module
from agentic_rag_backend.models.facts_files import EncoderFacts, read_facts
from agentic_rag_backend.models.installation import CHECKSUMS_FILE, Hub, LocalFolder, has_files, install_model, require_files
from agentic_rag_backend.models.registry import HubFile, KnownModel

WEIGHTS, TOKENIZER = bytes(range(256)) * 3_000, b'{"a": 1}'
SHA256 = hashlib.sha256(WEIGHTS).hexdigest()
FILES = (
    HubFile("model.onnx", "onnx/model_quantized.onnx", SHA256, len(WEIGHTS)),
    HubFile("tokenizer.json", "tokenizer.json", hashlib.sha256(TOKENIZER).hexdigest(), len(TOKENIZER)),
)
MODEL = KnownModel(
    name="small", kind="encoder", facts=EncoderFacts(pooling="cls"), repository="maker/small", revision="abc", files=FILES
)
UNKNOWN = replace(MODEL, files=tuple(replace(file, sha256=None, size_bytes=None) for file in FILES))
ROOT = "/maker/small/resolve/abc"
OTHER = WEIGHTS[::-1]


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelHub]:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setattr(download_module, "PAUSE_S", 0.0)
    with model_hub({f"{ROOT}/onnx/model_quantized.onnx": WEIGHTS, f"{ROOT}/tokenizer.json": TOKENIZER}) as running:
        yield running


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_files_are_downloaded_verified_and_moved_into_place(hub: ModelHub, tmp_path: Path) -> None:
    seen: list[tuple[str, int, int | None]] = []
    assert not has_files(MODEL, tmp_path)
    with pytest.raises(ConfigurationError, match=r"small is not installed in .*; run 'agentic-rag models pull small'"):
        require_files(MODEL, tmp_path)
    folder = install_model(MODEL, tmp_path, Hub(hub.url + "/"), lambda *shown: seen.append(shown))
    assert names(folder) == {"model.onnx", "tokenizer.json", "encoder.json"}
    assert (folder / "model.onnx").read_bytes() == WEIGHTS
    assert read_facts(folder) == MODEL.facts
    assert require_files(MODEL, tmp_path) == folder == tmp_path / "small"
    with (folder / "model.onnx").open("r+b") as file:
        file.truncate(1_000)
    assert not has_files(MODEL, tmp_path)
    (folder / "model.onnx").write_bytes(WEIGHTS)
    assert seen[-1] == ("small: tokenizer.json", len(TOKENIZER), len(TOKENIZER))
    done = [completed for text, completed, _ in seen if "model.onnx" in text]
    assert done == sorted(done)
    assert done[-1] == len(WEIGHTS)
    hub.ranges.clear()
    install_model(MODEL, tmp_path, Hub(hub.url))
    assert hub.ranges == []


def test_a_cut_connection_continues_where_it_ended(hub: ModelHub, tmp_path: Path) -> None:
    hub.cut_after = 100_000  # more cuts than attempts without a new byte
    folder = install_model(MODEL, tmp_path, Hub(hub.url))
    assert (folder / "model.onnx").read_bytes() == WEIGHTS
    assert hub.ranges == [None, *(f"bytes={done}00000-" for done in range(1, 8)), None]


def test_an_interrupted_download_continues_in_the_next_run(hub: ModelHub, tmp_path: Path) -> None:
    def interrupt(text: str, completed: int, total: int | None) -> None:
        if completed >= 500_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        install_model(MODEL, tmp_path, Hub(hub.url), interrupt)
    begun = (tmp_path / "small" / "model.onnx.part").stat().st_size
    assert 0 < begun < len(WEIGHTS)
    assert not has_files(MODEL, tmp_path)
    folder = install_model(MODEL, tmp_path, Hub(hub.url))
    assert hub.ranges[1] == f"bytes={begun}-"
    assert (folder / "model.onnx").read_bytes() == WEIGHTS
    assert not (folder / "model.onnx.part").exists()


@pytest.mark.parametrize("knows_ranges", [True, False], ids=["a part that is too long", "a server without ranges"])
def test_a_part_that_cannot_be_continued_begins_again(hub: ModelHub, tmp_path: Path, knows_ranges: bool) -> None:
    hub.knows_ranges = knows_ranges
    (tmp_path / "small").mkdir()
    part = tmp_path / "small" / "model.onnx.part"
    part.write_bytes(b"?" * 100 if not knows_ranges else b"?" * 2_000)
    smaller = replace(MODEL, files=(replace(FILES[0], size_bytes=None), FILES[1])) if knows_ranges else MODEL
    if knows_ranges:
        hub.files[f"{ROOT}/onnx/model_quantized.onnx"] = WEIGHTS[:1_000]
        smaller = replace(
            smaller, files=(replace(smaller.files[0], sha256=hashlib.sha256(WEIGHTS[:1_000]).hexdigest()), FILES[1])
        )
    install_model(smaller, tmp_path, Hub(hub.url))
    assert require_files(smaller, tmp_path)


def test_a_wrong_file_is_not_installed_and_the_good_one_stays(hub: ModelHub, tmp_path: Path) -> None:
    folder = install_model(MODEL, tmp_path, Hub(hub.url))
    hub.files[f"{ROOT}/onnx/model_quantized.onnx"] = OTHER
    newer = replace(MODEL, files=(replace(FILES[0], sha256="0" * 64), FILES[1]))
    for _ in range(2):
        with pytest.raises(ModelUnavailable) as failed:
            install_model(newer, tmp_path, Hub(hub.url))
        for part in ("onnx/model_quantized.onnx of small", hashlib.sha256(OTHER).hexdigest(), "0" * 64):
            assert part in failed.value.message
        assert (folder / "model.onnx").read_bytes() == WEIGHTS
        assert "model.onnx.part" not in names(folder)


def test_a_damaged_file_is_named_and_replaced(hub: ModelHub, tmp_path: Path) -> None:
    folder = install_model(MODEL, tmp_path, Hub(hub.url))
    (folder / "model.onnx").write_bytes(OTHER)
    with pytest.raises(ConfigurationError, match=rf"model\.onnx has SHA-256 {hashlib.sha256(OTHER).hexdigest()}, not {SHA256}"):
        require_files(MODEL, tmp_path)
    install_model(MODEL, tmp_path, Hub(hub.url))
    assert require_files(MODEL, tmp_path)


def test_a_server_that_sends_too_much_is_not_read_to_the_end(hub: ModelHub, tmp_path: Path) -> None:
    hub.files[f"{ROOT}/onnx/model_quantized.onnx"] = WEIGHTS * 20
    seen: list[int] = []
    with pytest.raises(ModelUnavailable, match=f"not {SHA256}"):
        install_model(MODEL, tmp_path, Hub(hub.url), lambda text, completed, total: seen.append(completed))
    assert max(seen) < 2 * len(WEIGHTS)


def test_passing_failures_are_repeated_and_others_are_not(hub: ModelHub, tmp_path: Path) -> None:
    hub.failures = [503, 429, 500]
    install_model(MODEL, tmp_path, Hub(hub.url))
    assert len(hub.ranges) == 5
    absent = replace(MODEL, name="absent", revision="none")
    hub.ranges.clear()
    with pytest.raises(
        ModelUnavailable, match=r"/none/onnx/model_quantized.onnx cannot be downloaded: HTTP 404; set HTTPS_PROXY"
    ):
        install_model(absent, tmp_path, Hub(hub.url))
    assert len(hub.ranges) == 1
    hub.failures = [503] * 9
    with pytest.raises(ModelUnavailable, match="HTTP 503"):
        install_model(absent, tmp_path, Hub(hub.url))
    assert len(hub.failures) == 9 - download_module.ATTEMPTS


def test_a_hub_that_cannot_be_reached_is_named_with_the_remedy(hub: ModelHub, tmp_path: Path) -> None:
    hub.server_close()
    with pytest.raises(ModelUnavailable, match=r"127\.0\.0\.1.*ConnectError.*MODEL_HUB_URL.*--from FOLDER"):
        install_model(MODEL, tmp_path, Hub("http://127.0.0.1:1"))


def test_a_proxy_of_the_environment_is_used(hub: ModelHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", hub.url)
    hub.cut_after = 300_000
    install_model(MODEL, tmp_path, Hub("http://hub.example"))
    assert set(hub.hosts) == {"hub.example"}
    assert require_files(MODEL, tmp_path)


def test_the_hash_of_a_first_download_is_required_afterwards(hub: ModelHub, tmp_path: Path) -> None:
    folder = install_model(UNKNOWN, tmp_path, Hub(hub.url))
    assert json.loads((folder / CHECKSUMS_FILE).read_text())["model.onnx"] == SHA256
    assert require_files(UNKNOWN, tmp_path)
    hub.files[f"{ROOT}/onnx/model_quantized.onnx"] = OTHER
    (folder / "model.onnx").unlink()
    with pytest.raises(ModelUnavailable, match=f"not {SHA256}"):
        install_model(UNKNOWN, tmp_path, Hub(hub.url))
    (folder / "model.onnx").write_bytes(OTHER)
    with pytest.raises(ConfigurationError, match=f"not {SHA256}"):
        require_files(UNKNOWN, tmp_path)
    (folder / CHECKSUMS_FILE).write_text("[")
    with pytest.raises(ConfigurationError, match=r"checksums\.json is damaged"):
        require_files(UNKNOWN, tmp_path)


def test_without_a_known_hash_no_beginning_of_an_earlier_run_is_kept(hub: ModelHub, tmp_path: Path) -> None:
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "model.onnx.part").write_bytes(b"another version")
    folder = install_model(UNKNOWN, tmp_path, Hub(hub.url))
    assert (folder / "model.onnx").read_bytes() == WEIGHTS


@pytest.mark.parametrize("names_of", ["name", "path"])
def test_a_folder_has_the_names_of_the_hub_or_of_an_installation(tmp_path: Path, names_of: str) -> None:
    source = tmp_path / "source"
    for file, content in zip(FILES, (WEIGHTS, TOKENIZER), strict=True):
        path = source / getattr(file, names_of)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    install_model(MODEL, tmp_path / "models", LocalFolder(source))
    assert require_files(MODEL, tmp_path / "models")
    (source / "tokenizer.json").unlink()
    with pytest.raises(ModelUnavailable, match=r"source lacks tokenizer\.json of again"):
        install_model(replace(MODEL, name="again"), tmp_path / "models", LocalFolder(source))


def test_processes_install_one_after_the_other(hub: ModelHub, tmp_path: Path) -> None:
    threads = [threading.Thread(target=install_model, args=(MODEL, tmp_path, Hub(hub.url))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(hub.ranges) == len(FILES)
    assert require_files(MODEL, tmp_path)


def test_a_folder_that_cannot_be_written_is_named(hub: ModelHub, tmp_path: Path) -> None:
    (tmp_path / "small").write_text("a file")
    with pytest.raises(ModelUnavailable, match=r"small cannot be installed in .*: File exists"):
        install_model(MODEL, tmp_path, Hub(hub.url))
