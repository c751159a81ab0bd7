"""Readable form of results and answers: scores, titles, places and exact quotes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentic_rag_backend.cli.output import Output, plain, text

_EXCERPT = 400


def show_search(output: Output, data: Mapping[str, Any]) -> None:
    """Print chunks, facts and themes."""
    results, facts, themes = data["results"], data["facts"], data["themes"]
    if not (results or facts or themes):
        output.show("no results")
    for number, result in enumerate(results, 1):
        show_result(output, number, result)
    show_themes(output, themes)
    if facts:
        output.show("\nFacts", style="bold")
        for fact in facts:
            output.show(f"  {fact['score']:.2f}  {fact['source']['name']} -{fact['relation']}-> {fact['target']['name']}")
    show_trace(output, data["trace"])


def show_explanation(output: Output, explained: Mapping[str, Any]) -> None:
    """Print the explanation of a search for one document."""
    output.show(text(f"{explained['title']} ({explained['state']}, {explained['chunks']} chunks)", "bold"))
    rank_text = "is not among the results" if explained["rank"] is None else f"has rank {explained['rank']}"
    output.show(f"  with the strategy {explained['strategy']} it {rank_text}; the limit is {explained['limit']}")
    for leg in explained["legs"]:
        rank = "beyond the first 1,000" if leg["rank"] is None else f"rank {leg['rank']}"
        score = "not found" if leg["score"] is None else f"{rank}, score {leg['score']:.3f}"
        output.show(f"  {leg['leg']}: {score}")
    for reason in explained["dropped_by"]:
        output.show(text(f"  dropped by {reason['by']}: {reason['detail']}", "yellow"))
    for theme in explained["themes"]:
        output.show(text(f"  in the theme {theme['name']}"))
    if explained["best"] is not None:
        show_result(output, explained["rank"], explained["best"])


def show_result(output: Output, number: int, result: Mapping[str, Any]) -> None:
    """Print one chunk."""
    from rich.padding import Padding

    location = result["location"]
    headings = " › ".join(location["path"])
    output.show(text(f"\n{number}. {result['title']}", "bold"))
    lines = f"lines {location['start_line']}-{location['end_line']}"
    output.show(
        f"   score {result['score']:.3f} · {lines}{' · ' + headings if headings else ''} · document {result['document_id']}",
        style="dim",
    )
    steps = result.get("graph_path") or []
    if steps:
        output.show("   " + _path(steps), style="dim")
    if result.get("matched_question"):
        output.show(text(f"   found by the question: {result['matched_question']}", "dim"))
    output.show(Padding(text(_excerpt(result["content"])), (0, 0, 0, 3)))


def show_themes(output: Output, themes: Sequence[Mapping[str, Any]]) -> None:
    """Print communities."""
    from rich.padding import Padding

    if themes:
        output.show("\nThemes", style="bold")
    for theme in themes:
        size = f"{theme['passage_count']} passages" if theme["type"] == "raptor" else f"{theme['entity_count']} entities"
        output.show(f"  {theme['score']:.2f}  {theme['name']} ({size}, level {theme['level']})")
        output.show(Padding(text(_excerpt(theme["summary"]), "dim"), (0, 0, 0, 8)))


def show_answer(output: Output, answer: Mapping[str, Any]) -> None:
    """Print an answer with its citations."""
    output.show(text(answer["answer"], "" if answer["grounded"] else "yellow"))
    show_citations(output, answer["citations"])
    if answer["nearest"]:
        output.show("\nNearest passages", style="bold")
        show_citations(output, answer["nearest"])
    origin = (f"confidence {answer['confidence']:.2f}", answer["generator"], answer["model"])  # no model writes a refusal
    output.show("\n" + " · ".join(part for part in origin if part), style="dim")
    show_trace(output, answer["trace"])


def show_citations(output: Output, citations: Sequence[Mapping[str, Any]], *, chunk_ids: bool = True) -> None:
    """Print numbered citations: title, place and exact quote."""
    from rich.padding import Padding

    for citation in citations:
        span = f"characters {citation['start_char']}-{citation['end_char']}"
        if chunk_ids:
            span += f" · chunk {citation['chunk_id']}"
        output.show(
            text(f"\n[{citation['marker']}] {citation['title']}", "bold"),
            text(f"    {span}", "dim"),
        )
        output.show(Padding(text(f"“{citation['quote']}”", "italic"), (0, 0, 0, 4)))


def show_trace(output: Output, trace: Mapping[str, Any]) -> None:
    """Print strategy, times, a fallback and warnings of a retrieval to stderr."""
    times = trace["processing_time_ms"]
    output.note(f"{trace['strategy']} · {', '.join(f'{name} {value:.1f} ms' for name, value in times.items())}")
    if trace.get("cache") is not None:
        output.note("results of an equal search; --no-cache searches again")
    if trace["fallback_used"]:
        output.note(f"note: {trace['fallback_reason']}")
    for warning in trace["warnings"]:
        output.note(f"warning: {warning}")


def _path(steps: Sequence[Mapping[str, Any]]) -> str:
    """Return a path as one line. An arrow has the direction of the relationship."""
    first_step = steps[0]
    line = str(first_step["source"] if first_step.get("forward", True) else first_step["target"])
    for step in steps:
        forward = step.get("forward", True)
        line += f" -{step['relation']}-> {step['target']}" if forward else f" <-{step['relation']}- {step['source']}"
    return line


def _excerpt(content: str) -> str:
    text = plain(content).strip()
    return text if len(text) <= _EXCERPT else text[:_EXCERPT].rsplit(" ", 1)[0] + " …"
