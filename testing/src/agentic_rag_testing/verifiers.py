"""The contract of a `ClaimVerifier`, run from ``tests/contract`` on every verifier.

Each check is an async function of a function that makes a verifier of an answer's claims. `CHECKS` lists them. A verifier that
breaks a rule of `answering.claims.base` fails at least one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import get_args

from agentic_rag_backend.answering.claims.base import ClaimVerifier, Reason, Verdict
from agentic_rag_backend.answering.claims.reading import Claim
from agentic_rag_backend.answering.evidence.context import Passage

Make = Callable[[Sequence[Passage]], ClaimVerifier]
Check = Callable[[Make], Awaitable[None]]

FOUNDED = "Mira Voss founded the Halden Institute in 1994."
DELAYED = "The tidal barrage was delayed by two years."
UNSTATED = "Zebulon Quark filmed the moon landing in Atlantis."
FALSE: dict[Reason, str] = {
    "number": "Mira Voss founded the Halden Institute in 1995.",
    "name": "Jorin Sorrel founded the Halden Institute in 1994.",
    "negated": "The tidal barrage was not delayed by two years.",
}
PASSAGES = tuple(
    Passage(marker=marker, chunk_id=f"c{marker}", document_id=f"d{marker}", title=title, text=text, start_char=100, score=1.0)
    for marker, title, text in (
        (1, "Halden", f"{FOUNDED} It studies tides."),
        (2, "Barrage", f"The council met in May. {DELAYED}"),
    )
)
COPIES = (Claim(FOUNDED, (1,)), Claim(DELAYED, (2,)))
CLAIMS = (*COPIES, Claim(UNSTATED, (1,)), *(Claim(text, (1, 2)) for text in FALSE.values()), COPIES[0])


async def a_verdict_for_every_claim_in_order(make: Make) -> None:
    """There is a verdict for each claim, in order, also for an equal claim, and none for no claim."""
    verdicts = await make(PASSAGES).verify(CLAIMS)
    assert [verdict.claim for verdict in verdicts] == list(CLAIMS)
    assert await make(PASSAGES).verify([]) == []


async def a_verdict_has_quotes_or_a_reason(make: Make) -> None:
    """A claim that holds has quotes of the given passages and no reason; a contradicted one has a known reason and none."""
    for verdict in await make(PASSAGES).verify(CLAIMS):
        assert verdict.holds == bool(verdict.supports) or verdict.status == "unverified"
        assert verdict.reason is None or verdict.reason in get_args(Reason)
        for support in verdict.supports:
            assert support.passage in PASSAGES
            assert 0 <= support.start < support.end <= len(support.passage.text)
            assert 0 < support.score <= 1


async def a_copied_sentence_holds(make: Make) -> None:
    """A copy of a passage's sentence holds, and is quoted from this passage."""
    for verdict in await make(PASSAGES).verify(COPIES):
        assert _quoted(verdict) == [(verdict.claim.markers[0], verdict.claim.text)]


async def a_wrong_marker_is_replaced(make: Make) -> None:
    """A copied sentence holds with the marker of another passage, of no passage, and without one."""
    claims = [Claim(FOUNDED, markers) for markers in ((2,), (9,), ())]
    for verdict in await make(PASSAGES).verify(claims):
        assert _quoted(verdict) == [(1, FOUNDED)]


async def a_claim_that_no_passage_states_fails(make: Make) -> None:
    """A claim about something else is unsupported, and so is every claim without passages."""
    (verdict,) = await make(PASSAGES).verify([Claim(UNSTATED, (1,))])
    assert verdict.reason == "unsupported"
    assert [verdict.reason for verdict in await make(()).verify(COPIES)] == ["unsupported"] * len(COPIES)


async def a_changed_copy_fails(make: Make) -> None:
    """A copy with another number, another name or a denial fails, and the reason says what differs."""
    verdicts = await make(PASSAGES).verify([Claim(text, (1, 2)) for text in FALSE.values()])
    assert [verdict.reason for verdict in verdicts] == list(FALSE)


async def claims_may_come_one_by_one(make: Make) -> None:
    """A verifier decides about a claim alike alone and among others."""
    together, verifier = await make(PASSAGES).verify(CLAIMS), make(PASSAGES)
    assert [verdict for claim in CLAIMS for verdict in await verifier.verify([claim])] == together


async def a_final_verdict_stays(make: Make) -> None:
    """`settle` changes only verdicts that `may_change` names, and returns one for every verdict, in order."""
    verifier = make(PASSAGES)
    verdicts = await verifier.verify(CLAIMS)
    settled = await verifier.settle(verdicts)
    assert [verdict.claim for verdict in settled] == list(CLAIMS)
    for before, after in zip(verdicts, settled, strict=True):
        assert before == after or verifier.may_change(before)


async def nothing_failed(make: Make) -> None:
    """A verifier whose parts work reports no failure."""
    verifier = make(PASSAGES)
    await verifier.verify(CLAIMS)
    assert list(verifier.failures) == []


def _quoted(verdict: Verdict) -> list[tuple[int, str]]:
    return [(support.passage.marker, support.quote) for support in verdict.supports]


CHECKS: tuple[Check, ...] = (
    a_verdict_for_every_claim_in_order,
    a_verdict_has_quotes_or_a_reason,
    a_copied_sentence_holds,
    a_wrong_marker_is_replaced,
    a_claim_that_no_passage_states_fails,
    a_changed_copy_fails,
    claims_may_come_one_by_one,
    a_final_verdict_stays,
    nothing_failed,
)
