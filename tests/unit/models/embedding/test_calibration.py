"""Calibration: the table, scales, the measurement on the sample, its file and its failures."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from squeezed_encoder import FLOOR, Squeezed

from agentic_rag_backend.models.embedding.base import Embedder
from agentic_rag_backend.models.embedding.bundled import BundledEmbedder
from agentic_rag_backend.models.embedding.calibration import (
    BUNDLED_CALIBRATION,
    BUNDLED_SCALE,
    CALIBRATIONS,
    LEAST_SEPARATION,
    LEVELS,
    RETRY_S,
    SHARES,
    Calibrator,
    CosineScale,
    fit_scale,
    load_sample,
    make_calibration,
    measure_calibration,
    sample_cosines,
    separation_of,
    shares_below,
)
from agentic_rag_backend.retrieval.passages.passage_features import similarities
from agentic_rag_backend.retrieval.scoring import relevance

BGE_SMALL = "onnx-6c9c6101a956d62d-d241a60d-cls-512-384"


class RandomVectors:
    """An encoder whose vectors say nothing about texts. With ``constant``, all are the same."""

    fingerprint = "random"

    def __init__(self, *, constant: bool = False) -> None:
        self._constant = constant

    async def embed(self, texts: Sequence[str]) -> np.ndarray:
        return np.stack([await self.embed_query(text) for text in texts])

    async def embed_query(self, text: str) -> np.ndarray:
        seed = 1 if self._constant else int.from_bytes(text.encode()[:24], "big")
        vector = np.random.default_rng(seed).normal(size=64)
        return (vector / np.linalg.norm(vector)).astype(np.float32)


@pytest.fixture(scope="module")
def bundled() -> BundledEmbedder:
    return BundledEmbedder(threads=1)


@pytest.fixture
def squeezed(bundled: BundledEmbedder) -> Squeezed:
    return Squeezed(bundled)


def calibrator_of(encoder: object, file: Path | None = None, **named: Any) -> Calibrator:
    return Calibrator(cast("Embedder", encoder), file, **named)


def test_the_bundled_encoder_keeps_its_values() -> None:
    for fingerprint in ("onnx-8199be6f699a395f-be50c362-mean-256-384", "onnx-8199be6f699a395f-be50c362-mean-256-384-int8"):
        calibration = CALIBRATIONS[fingerprint]
        assert (calibration.similar_question, calibration.passage_of_fact) == (0.5, 0.2)
        for scale in (calibration.questions, calibration.passages):
            # Equal to the last bit, also outside [0, 1].
            assert [scale.convert_cosine(cosine) for cosine in (-0.3, 0.123456789, 1.0000001)] == [-0.3, 0.123456789, 1.0000001]
            assert scale.cosine_of(0.3) == 0.3
    assert BUNDLED_SCALE.converted_all(values := np.array([-0.2, 0.7])) is values


def test_the_table_has_the_encoders_that_the_program_knows(bundled: BundledEmbedder) -> None:
    assert CALIBRATIONS[bundled.fingerprint].source == "fitted"
    bge = CALIBRATIONS[BGE_SMALL]
    assert (bge.encoder, bge.source) == ("bge-small-en-v1.5", "fitted")
    converted = make_calibration("", "fitted", questions=bge.questions, passages=bge.passages)
    assert bge.similar_question == pytest.approx(converted.similar_question, abs=1e-3)
    assert bge.passage_of_fact == pytest.approx(converted.passage_of_fact, abs=1e-3)


@pytest.mark.parametrize(
    "cosines", [(0.1, 0.2, 0.3, 0.4, 0.5), (0.1, 0.2, 0.2, 0.4, 0.5, 1.0), (-1.1, 0.2, 0.3, 0.4, 0.5, 1.0), (0, 1, 2, 3, 4, 5)]
)
def test_a_scale_ascends_and_has_each_level(cosines: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="scale"):
        CosineScale(cosines)


def test_a_scale_converts_both_ways() -> None:
    scale = CosineScale((0.7, 0.76, 0.8, 0.86, 0.93, 1.0))
    assert [scale.convert_cosine(cosine) for cosine in (0.5, 0.7, 0.78, 0.86, 1.1)] == pytest.approx([0.0, 0.0, 0.3, 0.6, 1.0])
    assert [scale.convert_cosine(scale.cosine_of(level)) for level in (0.05, 0.5, 0.95)] == pytest.approx([0.05, 0.5, 0.95])
    assert scale.converted_all(np.array([[0.78, 0.86]])).tolist() == [pytest.approx([0.3, 0.6])]


@given(st.lists(st.floats(-1, 1, width=32), min_size=2, max_size=40), st.lists(st.floats(0, 1), min_size=5, max_size=5))
def test_equated_scales_ascend_whatever_the_cosines_are(cosines: list[float], shares: list[float]) -> None:
    shares = sorted(shares)
    low, high = np.quantile(cosines, shares[0]), np.quantile(cosines, shares[-1])
    assume(high - low > 0.001)
    scale = fit_scale(np.array(cosines), shares)
    assert scale.cosines[-1] == 1.0
    assert scale.cosines[0] == pytest.approx(np.quantile(cosines, shares[0]), abs=1e-3)


def test_cosines_that_do_not_differ_have_no_scale() -> None:
    with pytest.raises(ValueError, match=r"all about 0\.8300"):
        fit_scale(np.full(40, 0.83), SHARES["questions"])


def test_a_scale_is_equated_by_quantiles() -> None:
    cosines = np.linspace(-0.2, 1.0, 5_000)
    assert fit_scale(0.7 + 0.3 * cosines, shares_below(cosines)).cosines == pytest.approx(
        [0.7 + 0.3 * level for level in LEVELS], abs=1e-3
    )


async def test_the_shares_are_those_of_the_bundled_encoder(bundled: BundledEmbedder) -> None:
    cosines = await sample_cosines(bundled)
    for kind, shares in SHARES.items():
        assert shares_below(cosines[kind]) == pytest.approx(shares, abs=2e-3)
        # Both ends of the scale need pairs.
        assert (cosines[kind] > LEVELS[-2]).sum() >= 10
        assert (cosines[kind] < LEVELS[0]).sum() >= 10
    assert separation_of(cosines["questions"]) > 0.99


async def test_an_encoder_of_another_scale_decides_alike(bundled: BundledEmbedder, squeezed: Squeezed) -> None:
    calibration = await calibrator_of(squeezed).current_calibration()
    assert (calibration.encoder, calibration.source) == ("squeezed", "measured")
    assert calibration.similar_question == pytest.approx(FLOOR + 0.3 * 0.5, abs=0.01)
    assert calibration.passage_of_fact == pytest.approx(FLOOR + 0.3 * 0.2, abs=0.01)
    sample = load_sample()
    expected, actual = await sample_cosines(bundled), await sample_cosines(cast("Embedder", squeezed))
    for own, other in zip(expected["questions"][::7].tolist(), actual["questions"][::7].tolist(), strict=True):
        assert relevance(other, 0.2, calibration) == pytest.approx(relevance(own, 0.2, BUNDLED_CALIBRATION), abs=0.02)
    # Two wordings of one text are as near, and two texts about different things as far.
    near = similarities(list(await bundled.embed(sample.texts[:40])), BUNDLED_SCALE)
    assert similarities(list(await squeezed.embed(sample.texts[:40])), calibration.passages) == pytest.approx(near, abs=0.03)
    uncalibrated = similarities(list(await squeezed.embed(sample.texts[:40])), BUNDLED_SCALE)
    assert uncalibrated.min() > 0.6


async def test_a_measurement_is_kept_for_the_encoder(squeezed: Squeezed, tmp_path: Path) -> None:
    file = tmp_path / "calibration.json"
    calibrator = calibrator_of(squeezed, file)
    assert (calibrator.pending, calibrator.reason) == (True, "it is measured at the first search")
    first, again = await asyncio.gather(calibrator.current_calibration(), calibrator.current_calibration())
    assert first is again
    assert (calibrator.pending, calibrator.reason) == (False, None)
    measured = squeezed.texts
    assert measured == len(load_sample().texts) + len(load_sample().questions)
    assert await calibrator_of(squeezed, file).current_calibration() == first
    assert squeezed.texts == measured
    # Another encoder, and a file that is damaged, need a measurement.
    squeezed.fingerprint = "squeezed-2"
    assert (await calibrator_of(squeezed, file).current_calibration()).encoder == "squeezed-2"
    assert squeezed.texts == 2 * measured
    for damaged in ("", "[]", "{}", file.read_text().replace("1.0", "0.0")):
        file.write_text(damaged)
        assert (await calibrator_of(squeezed, file).current_calibration()).source == "measured"
    assert squeezed.texts == 6 * measured


async def test_a_folder_that_cannot_be_written_does_not_matter(squeezed: Squeezed, tmp_path: Path) -> None:
    assert (await calibrator_of(squeezed, tmp_path / "absent" / "calibration.json").current_calibration()).source == "measured"


async def test_an_encoder_that_is_away_is_measured_later(squeezed: Squeezed) -> None:
    now = [0.0]
    calibrator = calibrator_of(squeezed, clock=lambda: now[0])
    squeezed.away = True
    calibration = await calibrator.current_calibration()
    assert (calibration.encoder, calibration.source) == ("squeezed", "default")
    assert calibration.questions == BUNDLED_SCALE
    assert (calibrator.pending, calibrator.reason) == (True, "it is away")
    squeezed.away = False
    now[0] = RETRY_S - 1
    assert (await calibrator.current_calibration()).source == "default"
    assert squeezed.texts == 0
    now[0] = RETRY_S
    assert (await calibrator.current_calibration()).source == "measured"


async def test_a_search_does_not_wait_longer_than_it_may(squeezed: Squeezed) -> None:
    answers = asyncio.Event()
    embed = squeezed.embed

    async def late(texts: Sequence[str]) -> np.ndarray:
        await answers.wait()
        return await embed(texts)

    squeezed.embed = late  # type: ignore[method-assign]
    calibrator = calibrator_of(squeezed)
    assert (await calibrator.current_calibration(wait_s=0.01)).source == "default"
    answers.set()
    assert (await calibrator.current_calibration()).source == "measured"


async def test_a_measurement_ends_with_the_process(squeezed: Squeezed) -> None:
    async def never(texts: Sequence[str]) -> np.ndarray:
        await asyncio.Event().wait()
        raise AssertionError

    squeezed.embed = never  # type: ignore[method-assign]
    calibrator = calibrator_of(squeezed)
    await calibrator.current_calibration(wait_s=0.01)
    await calibrator.close()
    await calibrator_of(squeezed).close()


async def test_an_unexpected_error_reaches_the_search(squeezed: Squeezed) -> None:
    async def broken(texts: Sequence[str]) -> np.ndarray:
        raise KeyError("broken")

    squeezed.embed = broken  # type: ignore[method-assign]
    calibrator = calibrator_of(squeezed)
    for _ in range(2):
        with pytest.raises(KeyError):
            await calibrator.current_calibration()


@pytest.mark.parametrize(("constant", "reason"), [(False, "nearer than others"), (True, "nearer than others")])
async def test_vectors_without_meaning_have_the_default(constant: bool, reason: str) -> None:
    calibrator = calibrator_of(RandomVectors(constant=constant))
    calibration = await calibrator.current_calibration()
    assert (calibration.source, calibration.questions) == ("default", BUNDLED_SCALE)
    assert not calibrator.pending
    assert reason in str(calibrator.reason)
    assert 0.3 < LEAST_SEPARATION < 1
    with pytest.raises(ValueError, match=reason):
        await measure_calibration(cast("Embedder", RandomVectors(constant=constant)))
