from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
import structlog
from sample_passages import theme_of

from agentic_rag_backend.domain.query import BALANCED, FactHit, Hit, LevelWeights, Query, Retrieval, ThemeHit, Trace
from agentic_rag_backend.errors import FeatureDisabled, ModelUnavailable, StoreUnavailable
from agentic_rag_backend.retrieval.strategies.dual_level import DualLevel, DualLevelOptions

Ask = Callable[..., Query]


def low(*hits: Hit, relevance: float = 0.8, **trace: object) -> Retrieval:
    facts = tuple(
        FactHit(id=f"f{hit.id}", source=None, relation="r", target=None, fact="", chunk_id=hit.id, document_id="d", score=1.0)  # type: ignore[arg-type]
        for hit in hits
    )
    return Retrieval(hits=hits, facts=facts, relevance=relevance, trace=_trace("graph", trace))


def high(*themes: ThemeHit, **trace: object) -> Retrieval:
    relevance = max((each.score for each in themes), default=0.0)
    return Retrieval(themes=themes, relevance=relevance, trace=_trace("community", trace))


def _trace(name: str, given: dict[str, object]) -> Trace:
    return Trace(strategy=name, **{"methods_used": ("dense", name), **given})  # type: ignore[arg-type]


@dataclass
class Level:
    """Returns a retrieval or raises an error, after a delay."""

    answer: Retrieval | BaseException
    delay_s: float = 0.0
    asked: list[Query] = field(default_factory=list)
    cancelled: bool = False

    async def retrieve(self, query: Query) -> Retrieval:
        self.asked.append(query)
        try:
            await asyncio.sleep(self.delay_s)
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


@pytest.fixture
def ask(query: Ask) -> Ask:
    return lambda **fields: query(**{"dual_level": True, **fields})


def dual(low_level: Level, high_level: Level, **options: object) -> DualLevel:
    return DualLevel(low_level, high_level, DualLevelOptions(**options))  # type: ignore[arg-type]


# --- both levels -----------------------------------------------------------------------------------------------------


async def test_both_levels_answer(ask: Ask, hit: Callable[..., Hit]) -> None:
    chunks = Level(low(hit("c1"), hit("c2"), warnings=("low warns",), details={"linked_entities": 2}))
    themes = Level(high(theme_of("t1", 0.9), theme_of("t2", 0.4), warnings=("high warns",), details={"generation": 7}))
    asked = ask()
    found = await dual(chunks, themes).retrieve(asked)
    assert [each.id for each in found.hits] == ["c1", "c2"]
    assert [fact.chunk_id for fact in found.facts] == ["c1", "c2"]
    assert [each.id for each in found.themes] == ["t1", "t2"]
    assert found.weights == BALANCED
    assert found.relevance == 0.9
    assert chunks.asked == themes.asked == [asked]
    trace = found.trace
    assert (trace.strategy, trace.fallback_used, trace.fallback_reason) == ("dual_level", False, None)
    assert trace.methods_used == ("dense", "graph", "community")
    assert trace.warnings == ("low warns", "high warns")
    assert trace.details == {"linked_entities": 2, "generation": 7}


@pytest.mark.parametrize(
    ("in_query", "effective"), [({}, LevelWeights(0.6, 0.4)), ({"weights": LevelWeights(0.9, 0.1)}, LevelWeights(0.9, 0.1))]
)
async def test_the_weights_are_the_querys(
    ask: Ask, hit: Callable[..., Hit], in_query: dict[str, LevelWeights], effective: LevelWeights
) -> None:
    retriever = dual(Level(low(hit("c1"))), Level(high(theme_of("t1", 0.9))))
    assert (await retriever.retrieve(ask(**in_query))).weights == effective


async def test_each_starts_before_the_other_ends(ask: Ask) -> None:
    meeting = asyncio.Barrier(2)

    class Meets:
        async def retrieve(self, query: Query) -> Retrieval:
            async with asyncio.timeout(5):
                await meeting.wait()
            return high(theme_of("t1", 0.9))

    found = await DualLevel(Meets(), Meets(), DualLevelOptions()).retrieve(ask())
    assert found.themes


# --- one level -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "code"), [(StoreUnavailable("the vectors are away"), "store_unavailable"), (KeyError("secret"), "KeyError")]
)
@pytest.mark.parametrize("side", ["low", "high"])
async def test_one_that_fails_leaves_the_other(ask: Ask, hit: Callable[..., Hit], side: str, error: Exception, code: str) -> None:
    chunks = Level(error if side == "low" else low(hit("c1")))
    themes = Level(error if side == "high" else high(theme_of("t1", 0.3)))
    with structlog.testing.capture_logs() as logged:
        found = await dual(chunks, themes).retrieve(ask())
    assert bool(found.hits) is bool(found.facts) is (side == "high")
    assert bool(found.themes) is (side == "low")
    assert found.trace.fallback_used
    assert found.trace.fallback_reason == f"the {side} level failed: {code}"
    assert found.weights == (LevelWeights(0.0, 1.0) if side == "low" else LevelWeights(1.0, 0.0))
    assert found.relevance == (0.3 if side == "low" else 0.8)
    assert "secret" not in str(found.trace)
    events = {entry["event"]: entry for entry in logged}
    assert events["dual_level_failed"]["level"] == side
    assert events["dual_level_failed"]["exc_info"] is error
    assert events["dual_level_fallback"]["reason"] == found.trace.fallback_reason
    assert events["dual_level_fallback"]["tenant_id"] == "t_" + "0" * 32


@pytest.mark.parametrize("answer", [low(), low(relevance=1.0)])
async def test_a_low_level_without_chunks_is_empty(ask: Ask, answer: Retrieval) -> None:
    found = await dual(Level(answer), Level(high(theme_of("t1", 0.3)))).retrieve(ask())
    assert found.weights == LevelWeights(0.0, 1.0)
    assert found.trace.fallback_reason == "the low level found nothing above its floor"


@pytest.mark.parametrize(("relevance", "shown"), [(0.39, False), (0.4, True)])
async def test_the_low_level_below_its_floor_is_empty(ask: Ask, hit: Callable[..., Hit], relevance: float, shown: bool) -> None:
    retriever = dual(Level(low(hit("c1"), relevance=relevance)), Level(high(theme_of("t1", 0.3))), low_min_score=0.4)
    found = await retriever.retrieve(ask())
    assert bool(found.hits) is shown
    assert bool(found.facts) is shown
    assert found.trace.fallback_used is not shown
    assert found.relevance == (relevance if shown else 0.3)


async def test_themes_below_their_floor_are_dropped(ask: Ask, hit: Callable[..., Hit]) -> None:
    themes = high(theme_of("t1", 0.5), theme_of("t2", 0.4), theme_of("t3", 0.39))
    found = await dual(Level(low(hit("c1"))), Level(themes), high_min_score=0.4).retrieve(ask())
    assert [each.id for each in found.themes] == ["t1", "t2"]
    assert not found.trace.fallback_used
    found = await dual(Level(low(hit("c1"))), Level(themes), high_min_score=0.6).retrieve(ask())
    assert found.themes == ()
    assert found.weights == LevelWeights(1.0, 0.0)
    assert found.trace.fallback_reason == "the high level found nothing above its floor"


async def test_warnings_and_details_of_an_empty_level_are_kept(ask: Ask) -> None:
    chunks = Level(
        low(relevance=0.1, warnings=("options.entities: the graph knows no 'Nobody'",), details={"linked_entities": 0})
    )
    found = await dual(chunks, Level(high(theme_of("t1", 0.9)))).retrieve(ask())
    assert found.trace.warnings == ("options.entities: the graph knows no 'Nobody'",)
    assert found.trace.details == {"linked_entities": 0}
    assert found.trace.methods_used == ("dense", "community")


# --- neither ---------------------------------------------------------------------------------------------------------


async def test_nothing_found_is_said_of_both(ask: Ask) -> None:
    found = await dual(Level(low()), Level(high())).retrieve(ask())
    assert (found.hits, found.facts, found.themes, found.relevance) == ((), (), (), 0.0)
    assert found.weights == BALANCED
    assert found.trace.fallback_reason == (
        "the low level found nothing above its floor; the high level found nothing above its floor"
    )


async def test_one_failed_and_one_empty_is_no_answer(ask: Ask) -> None:
    """The failed level might have found results."""
    for levels in ((Level(StoreUnavailable("away")), Level(high())), (Level(low()), Level(StoreUnavailable("away")))):
        with pytest.raises(StoreUnavailable, match="away"):
            await dual(*levels).retrieve(ask())
    with pytest.raises(StoreUnavailable, match="a level of retrieval failed"):
        await dual(Level(KeyError("k")), Level(high())).retrieve(ask())


async def test_what_a_failed_level_may_hide_is_handed_on(ask: Ask, hit: Callable[..., Hit]) -> None:
    found = await dual(Level(low(hit("c1"))), Level(StoreUnavailable("away"))).retrieve(ask())
    assert found.trace.hidden == ("the high level failed: store_unavailable",)
    assert (await dual(Level(low(hit("c1"))), Level(high())).retrieve(ask())).trace.hidden == ()


async def test_both_failing_is_an_error(ask: Ask) -> None:
    for errors, raised in [
        ((ModelUnavailable("m"), StoreUnavailable("s")), ModelUnavailable),
        ((StoreUnavailable("s"), ModelUnavailable("m")), StoreUnavailable),
        ((KeyError("k"), ModelUnavailable("m")), ModelUnavailable),
        ((ModelUnavailable("m"), KeyError("k")), ModelUnavailable),
        ((KeyError("k"), ValueError("v")), StoreUnavailable),
    ]:
        with pytest.raises(raised) as error:
            await dual(Level(errors[0]), Level(errors[1])).retrieve(ask())
        assert type(error.value) is raised
        if raised is StoreUnavailable and isinstance(errors[0], KeyError):
            assert error.value.__cause__ is errors[0]
            assert "'k'" not in str(error.value)


# --- stopping and switching off --------------------------------------------------------------------------------------


async def test_being_cancelled_cancels_both(ask: Ask, hit: Callable[..., Hit]) -> None:
    chunks, themes = Level(low(hit("c1")), delay_s=30), Level(high(theme_of("t1", 0.9)), delay_s=30)
    task = asyncio.create_task(dual(chunks, themes).retrieve(ask()))
    while not (chunks.asked and themes.asked):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert chunks.cancelled
    assert themes.cancelled


@pytest.mark.parametrize("side", ["low", "high"])
async def test_a_level_that_was_cancelled_is_no_fallback(ask: Ask, hit: Callable[..., Hit], side: str) -> None:
    chunks = Level(asyncio.CancelledError() if side == "low" else low(hit("c1")))
    themes = Level(asyncio.CancelledError() if side == "high" else high(theme_of("t1", 0.9)))
    with pytest.raises(asyncio.CancelledError):
        await dual(chunks, themes).retrieve(ask())


async def test_a_timeout_around_it_holds(ask: Ask, hit: Callable[..., Hit]) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.02):
            await dual(Level(low(hit("c1")), delay_s=30), Level(high(theme_of("t1", 0.9)))).retrieve(ask())


async def test_switched_off_nothing_is_asked(query: Ask, hit: Callable[..., Hit]) -> None:
    chunks, themes = Level(low(hit("c1"))), Level(high(theme_of("t1", 0.9)))
    with pytest.raises(FeatureDisabled, match="DUAL_LEVEL_RETRIEVAL_ENABLED"):
        await dual(chunks, themes).retrieve(query(dual_level=False))
    assert chunks.asked == themes.asked == []
