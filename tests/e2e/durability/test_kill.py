"""A process may be killed at any moment: the next process reaches the same state as an undisturbed one."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from mail_messages import message_of
from tests.e2e.durability.conftest import Folder, Processes, Undisturbed

from agentic_rag_backend.jobs.coordination.recovery import GIVEN_UP_AFTER

Steps = Sequence[Mapping[str, Any]]
Point = tuple[str, int, str]
CORPUS = Path(__file__).parents[3] / "examples" / "corpus"

WHILE_INGESTING = [
    ("blobs.put", 4, "after"),
    ("queue.enqueuer", 5, "in transaction"),
    ("documents.save_prepared", 4, "after"),
    ("graph.write_document", 3, "after"),
    ("documents.publish", 3, "after"),
]
MORE_WHILE_INGESTING = [
    ("vectors.flush", 1, "after"),
    ("documents.publish", 4, "after"),
    ("vectors.upsert", 1, "after"),
    ("documents.save_prepared", 3, "after"),
    ("blobs.put", 3, "before"),
    ("documents.submit", 6, "after"),
    ("documents.begin_job", 2, "after"),
    ("documents.save_prepared", 3, "before"),
    ("documents.save_prepared", 2, "before"),
    ("graph.write_document", 1, "before"),
    ("vectors.upsert", 2, "after"),
    ("documents.publish", 2, "before"),
]
WHILE_UPDATING = [
    ("documents.publish", 1, "before"),
    ("documents.publish", 1, "after"),
    ("vectors.delete_document", 1, "after"),
]
MORE_WHILE_UPDATING = [
    ("documents.drop_versions", 1, "after"),
    ("graph.write_document", 1, "after"),
    ("documents.submit", 1, "after"),
    ("vectors.upsert", 1, "after"),
    ("graph.delete_document", 1, "after"),
    ("blobs.delete", 1, "after"),
]
WHILE_DELETING = [
    ("documents.tombstone", 1, "after"),
    ("graph.delete_document", 1, "after"),
    ("documents.purge", 1, "after"),
]
MORE_WHILE_DELETING = [
    ("vectors.delete", 1, "after"),
    ("queue.enqueuer", 1, "in transaction"),
    ("vectors.delete_document", 1, "after"),
    ("blobs.delete", 1, "after"),
    ("jobs.finish", 1, "before"),
]
WHILE_REBUILDING = [
    ("communities.publish", 1, "before"),
    ("communities.publish", 1, "after"),
]
MORE_WHILE_REBUILDING = [
    ("vectors.upsert", 1, "after"),
    ("communities.save_summaries", 1, "after"),
    ("graph.write_communities", 1, "after"),
    ("vectors.delete_generations", 1, "after"),
]


WHILE_LABELLING = [
    ("documents.revise", 2, "after"),
    ("vectors.update_metadata", 1, "after"),
]
MORE_WHILE_LABELLING = [
    ("vectors.update_metadata", 3, "before"),
    ("outbox.delivered", 1, "before"),
    ("outbox.delivered", 2, "after"),
]
DEEP = pytest.mark.deep


def points(always: Sequence[Point], more: Sequence[Point]) -> list[Any]:
    """Return parameters: ``always``, and ``more`` that only `make test-deep` runs."""
    return [pytest.param(point, id=name(point)) for point in always] + [
        pytest.param(point, id=name(point), marks=DEEP) for point in more
    ]


def name(point: Point) -> str:
    return " ".join(map(str, point))


def equal(held: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Compare part by part, so that a failure names the part and shows the difference."""
    assert held["orphans"] == {}
    for part, value in expected["state"].items():
        if held["state"][part] != value:
            only = [row for row in held["state"][part] if row not in value]
            missing = [row for row in value if row not in held["state"][part]]
            pytest.fail(f"{part}: {len(only)} too many {only[:5]}, {len(missing)} missing {missing[:5]}")


def visible_texts(folder: Folder, key: str) -> set[str]:
    """Return the texts that a reader would see of a document, without resuming the killed process's work."""
    found = rows(
        folder,
        """SELECT t.text FROM documents d JOIN chunks c ON c.document_id = d.id AND c.version = d.current_version
        JOIN chunk_texts t ON t.chunk_id = c.chunk_id WHERE d.key = ? AND d.deleted_at IS NULL""",
        key,
    )
    return {text for (text,) in found}


def rows(folder: Folder, query: str, *bound: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(folder.path / "catalogue.db")
    found = connection.execute(query, bound).fetchall()
    connection.close()
    return found


@pytest.mark.parametrize("point", points(WHILE_INGESTING, MORE_WHILE_INGESTING))
def test_ingesting(folder: Folder, ingested: tuple[Folder, dict[str, Any]], ingest: Steps, point: Point) -> None:
    folder.killed(ingest, *point)
    equal(folder.finished(ingest), ingested[1])


AGAIN_AND_AGAIN = (
    (("documents.submit", 5, "after"), ("documents.begin_job", 1, "after")),
    (("documents.begin_job", 1, "after"), ("graph.write_document", 1, "after")),
    (("vectors.upsert", 1, "after"), ("documents.publish", 1, "after")),
)
"""Fewer kills than `GIVEN_UP_AFTER`. The commit of the first document may be running at each of them; see the next test."""


@pytest.mark.parametrize("kills", AGAIN_AND_AGAIN, ids=["upload", "preparation", "commit"])
def test_ingesting_killed_again_and_again(
    folder: Folder, ingested: tuple[Folder, dict[str, Any]], ingest: Steps, kills: Sequence[Point]
) -> None:
    assert len(kills) < GIVEN_UP_AFTER
    for point in kills:
        folder.killed(ingest, *point)
    equal(folder.finished(ingest), ingested[1])


def test_a_document_whose_commit_is_killed_too_often_is_ready_after_another_upload(folder: Folder, ingest: Steps) -> None:
    """Whoever kills the process, the workflow that ran alone is blamed. The upload that follows is another version."""
    steps: Steps = [{**ingest[0], "put": {"report-0": ingest[0]["put"]["report-0"]}}]
    for _ in range(GIVEN_UP_AFTER):
        folder.killed(steps, "graph.write_document", 1, "before")
    held = folder.finished([{"put": {}}])
    assert [row[:2] for row in held["state"]["documents"]] == [["report-0", "unreadable"]]
    ((error,),) = rows(folder, "SELECT error FROM jobs")
    assert f"its process was killed {GIVEN_UP_AFTER} times" in str(error)
    held = folder.finished(steps)
    assert held["state"]["documents"] == [["report-0", "ready", "Report 0 of the Harbour Office", 2, 2, 3]]
    assert held["state"]["jobs"] == [["ingest", "failed", 1], ["ingest", "succeeded", 1]]
    assert held["orphans"] == {}
    assert folder.finished(steps)["state"] == held["state"], "the same content is unchanged"


def test_a_document_that_kills_its_process_fails_alone(
    folder: Folder, ingested: tuple[Folder, dict[str, Any]], ingest: Steps
) -> None:
    killer, wait = "report-6", [{"put": {}}]  # type: ignore[var-annotated]
    put = {key: text for key, text in ingest[0]["put"].items() if key != killer}
    everything = [{**ingest[0], "put": {**put, killer: ingest[0]["put"][killer]}}]
    folder.killed(everything, "documents.submit", len(put) + 1, "after")
    kills = 0
    while folder.comes_to(wait, "documents.save_prepared", 1, "before", containing="# Report 6 of"):
        kills += 1
        assert kills <= GIVEN_UP_AFTER
    assert kills == GIVEN_UP_AFTER
    held = folder.finished(wait)
    states = {key: state for key, state, *_ in held["state"]["documents"]}
    assert states == {**dict.fromkeys(put, "ready"), killer: "unreadable"}
    assert held["state"]["jobs"] == [["ingest", "failed", 1], ["ingest", "succeeded", 7]]
    for part in ("chunks", "chunk vectors", "mentions", "supports"):
        innocent = [row for row in ingested[1]["state"][part] if row[0] != killer]
        assert held["state"][part] == innocent, part
    # Failed jobs can be retried. Nothing else remains.
    assert set(held["orphans"]) == {"documents not ready", "versions that nobody sees"}
    ((error,),) = rows(folder, "SELECT error FROM jobs WHERE state = 'failed'")
    assert '"code":"resource_limit"' in str(error)
    assert f"its process was killed {GIVEN_UP_AFTER} times" in str(error)


def test_a_document_whose_commit_kills_its_process_fails_alone(folder: Folder) -> None:
    """The first kill may happen in a commit that another document began. Only one other document is blamed for it."""
    texts = {f"report-{number}": f"# Report {number}\n\nMara Voss measured tide {number} in Scarrow." for number in range(60)}
    killer, wait = "report-45", [{"put": {}}]  # type: ignore[var-annotated]
    put = {key: text for key, text in texts.items() if key != killer}
    folder.killed([{"put": {**put, killer: texts[killer]}}], "documents.submit", len(texts), "after")
    kills = 0
    while folder.comes_to(wait, "vectors.upsert", 1, "before", containing="Report 45"):
        kills += 1
        assert kills <= 1 + GIVEN_UP_AFTER
    states = {key: state for key, state, *_ in folder.finished(wait)["state"]["documents"]}
    assert states == {**dict.fromkeys(put, "ready"), killer: "unreadable"}


def test_a_document_that_grows_between_kills_is_not_given_up(folder: Folder) -> None:
    """Each process records a group of chunks and is killed from outside in the next one."""
    text = "\n\n".join(f"The gauge {number} of Sarn stands at pier {number} and measures the tide." for number in range(850))
    long = [{"put": {"long": text}, "chunk_size": 48}]
    for _ in range(GIVEN_UP_AFTER):
        folder.killed(long, "documents.save_prepared", 2, "before")
    held = folder.finished(long)
    ((key, state, *_),) = held["state"]["documents"]
    assert (key, state) == ("long", "ready")
    assert held["state"]["jobs"] == [["ingest", "succeeded", 1]]


@pytest.fixture(scope="session")
def changed(tmp_path_factory: pytest.TempPathFactory, ingested: tuple[Folder, dict[str, Any]], update: Steps) -> dict[str, Any]:
    return ingested[0].copied(tmp_path_factory.mktemp("changed") / "data").finished(update)


@pytest.mark.parametrize("point", points(WHILE_UPDATING, MORE_WHILE_UPDATING))
def test_updating(
    tmp_path: Path, ingested: tuple[Folder, dict[str, Any]], update: Steps, changed: dict[str, Any], point: Point
) -> None:
    folder = ingested[0].copied(tmp_path / "data")
    old = {key: visible_texts(folder, key) for key in update[0]["put"]}
    folder.killed(update, *point)
    new: dict[str, set[str]] = {}
    for key, _, text, *_ in changed["state"]["chunks"]:
        new.setdefault(key, set()).add(text)
    for key, before in old.items():
        assert visible_texts(folder, key) in (before, new[key]), key
    equal(folder.finished(update), changed)


@pytest.mark.parametrize("point", points(WHILE_DELETING, MORE_WHILE_DELETING))
def test_deleting(
    tmp_path: Path,
    ingested: tuple[Folder, dict[str, Any]],
    without_two: dict[str, Any],
    delete: Steps,
    point: Point,
) -> None:
    folder = ingested[0].copied(tmp_path / "data")
    folder.killed(delete, *point)
    if point[2] != "in transaction":
        assert visible_texts(folder, delete[0]["delete"][0]) == set()
    equal(folder.finished(delete), without_two)


def test_a_message_whose_attachments_are_taken(folder: Folder) -> None:
    """Killed between its publication and its attachments, and between the attachments: each becomes one document."""
    inner = message_of("Inner", "The lamp of Sarn burns.", {"deep.txt": "The lamp was lit in 1911."})
    content = message_of("Outer", "The pier of Sarn.", {"a.txt": "The pier opened in 1907.", "": inner, "b.txt": "It is long."})
    steps = [{"put": {"mail.eml": content.as_string()}}]
    folder.killed(steps, "documents.publish", 1, "after")
    assert rows(folder, "SELECT key FROM documents WHERE current_version = 1") == [("mail.eml",)]
    folder.killed(steps, "documents.submit", 3, "after")  # the message again, and two of its three attachments
    waiting = rows(folder, "SELECT id, place FROM documents WHERE parent_id IS NOT NULL")
    assert {place for _, place in waiting} == {"1/a.txt", "1/Inner.eml"}
    held = folder.finished([{"put": {}}])
    assert held["orphans"] == {}
    found = rows(folder, "SELECT id, place FROM documents WHERE parent_id IS NOT NULL AND current_version = 1")
    assert {place for _, place in found} == {"1/a.txt", "1/Inner.eml", "1/b.txt", "1/deep.txt"}
    assert (len(found), set(waiting) <= set(found)) == (4, True)


@pytest.fixture(scope="session")
def without_two(
    tmp_path_factory: pytest.TempPathFactory, ingested: tuple[Folder, dict[str, Any]], delete: Steps
) -> dict[str, Any]:
    return ingested[0].copied(tmp_path_factory.mktemp("deleted") / "data").finished(delete)


@pytest.fixture(scope="session")
def rebuilt(tmp_path_factory: pytest.TempPathFactory, ingested: tuple[Folder, dict[str, Any]], delete: Steps) -> Folder:
    """A folder whose communities are out of date."""
    folder = ingested[0].copied(tmp_path_factory.mktemp("rebuilt") / "data")
    folder.finished([{"rebuild": 1}, *delete])
    return folder


@pytest.fixture(scope="session")
def rebuilt_twice(tmp_path_factory: pytest.TempPathFactory, rebuilt: Folder) -> dict[str, Any]:
    return rebuilt.copied(tmp_path_factory.mktemp("twice") / "data").finished([{"rebuild": 2}])


@pytest.mark.parametrize("point", points(WHILE_REBUILDING, MORE_WHILE_REBUILDING))
def test_rebuilding(tmp_path: Path, rebuilt: Folder, rebuilt_twice: dict[str, Any], point: Point) -> None:
    folder = rebuilt.copied(tmp_path / "data")
    folder.killed([{"rebuild": 2}], *point)
    catalogue, graph = sqlite3.connect(folder.path / "catalogue.db"), sqlite3.connect(folder.path / "graph.db")
    ((current,),) = catalogue.execute("SELECT generation FROM community_pointers").fetchall()
    shown = graph.execute("SELECT count(*) FROM communities WHERE generation = ?", (current,)).fetchone()[0]
    catalogue.close()
    graph.close()
    flipped = point in (("communities.publish", 1, "after"), ("vectors.delete_generations", 1, "after"))
    assert (current > 1, shown > 0) == (flipped, True)
    held = folder.finished([{"rebuild": 2}])
    equal(held, rebuilt_twice)
    assert held["counts"]["community vectors"] > 0


@pytest.mark.parametrize("point", points(WHILE_LABELLING, MORE_WHILE_LABELLING))
def test_labelling(tmp_path: Path, undisturbed: Callable[[str], Undisturbed], point: Point) -> None:
    """Search receives a metadata change from the next process, without a comparison of the stores."""
    known = undisturbed("label")
    folder = known.before.copied(tmp_path / "data")
    folder.killed(known.steps, *point)
    equal(folder.finished([{"put": {}}]), folder.copied(tmp_path / "again").finished([{"put": {}}]))
    equal(folder.finished(known.steps), known.held)


SHARE = 6
"""Kills per scenario. Each falls into its own sixth of the duration."""
ALWAYS = {("chunk again", 2), ("index swap", 1), ("index swap", 3)}
MOMENTS = [
    pytest.param(scenario, part, id=f"{scenario} {part + 1} of {SHARE}", marks=[] if (scenario, part) in ALWAYS else DEEP)
    for scenario in ("ingest", "update", "delete", "label", "chunk again", "rebuild", "index swap")
    for part in range(SHARE)
]


@pytest.mark.parametrize(("scenario", "part"), MOMENTS)
def test_at_a_random_moment(tmp_path: Path, undisturbed: Callable[[str], Undisturbed], scenario: str, part: int) -> None:
    """The moment is drawn with a fixed seed from the duration of an undisturbed run here, including opening."""
    known = undisturbed(scenario)
    moment = known.held["took"]["done_s"] * (part + random.Random(f"{scenario} {part}").random()) / SHARE
    folder = known.before.copied(tmp_path / "data")
    keys = {row[0] for row in known.held["state"]["documents"]} if scenario != "ingest" else set()
    old = {key: visible_texts(folder, key) for key in keys}
    for attempt in range(8):
        if folder.killed_after(known.steps, moment):
            break
        moment *= 0.7  # it was done before: this process was faster than the measured one
        folder = known.before.copied(tmp_path / f"data-{attempt}")
    assert folder.kills == 1
    for key, before in old.items():
        new = {text for named, _, text, *_ in known.held["state"]["chunks"] if named == key}
        assert visible_texts(folder, key) in (before, new), key
    equal(folder.finished(known.steps), known.held)


def test_a_node_of_deleted_passages_has_no_vector(folder: Folder, mixed: Steps) -> None:
    """Kills at random moments end here too: after the deletion, before the next tree."""
    before_the_next_tree = mixed[: [next(iter(step)) for step in mixed].index("delete") + 1]
    held = folder.finished(before_the_next_tree)
    assert "" in [node[-1] for node in held["state"]["tree"]]
    assert held["orphans"] == {}


@DEEP
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", range(10))
def test_everything_at_random_moments(folder: Folder, mixed: Steps, seed: int) -> None:
    """After any number of kills, search and catalogue agree, including filters, before the stores are compared."""
    moments = random.Random(seed)
    while folder.kills < GIVEN_UP_AFTER - 1 and folder.killed_after(mixed, moments.uniform(0.4, 6.0)):
        pass
    held = folder.finished([{"put": {}}])
    assert held["orphans"] == {}
    assert folder.finished(mixed)["orphans"] == {}


@DEEP
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", range(8))
def test_the_examples_at_random_moments(
    folder: Folder, processes: Processes, examples: dict[str, Any], examples_steps: Steps, seed: int
) -> None:
    moments = random.Random(seed)
    # A document that is present at `GIVEN_UP_AFTER` kills fails, and its next upload is another version.
    while folder.kills < GIVEN_UP_AFTER - 1 and folder.killed_after(examples_steps, moments.uniform(0.3, 5.0)):
        pass
    held = folder.finished(examples_steps)
    assert held["orphans"] == {}
    for part in ("documents", "chunks", "chunk vectors", "jobs"):
        assert held["state"][part] == examples["state"][part]
    # Which of two spellings names an entity depends on the order of commits, which also differs between undisturbed runs.
    for part in ("entities", "mentions", "supports", "node vectors"):
        assert held["counts"][part] == pytest.approx(examples["counts"][part], rel=0.01), part


@pytest.fixture(scope="session")
def examples_steps() -> Steps:
    return [{"put": {path.stem: path.read_text() for path in sorted(CORPUS.iterdir())}}]


@pytest.fixture(scope="session")
def examples(
    tmp_path_factory: pytest.TempPathFactory, processes: Processes, ingested: tuple[Folder, Any], examples_steps: Steps
) -> Any:
    undisturbed = type(ingested[0])(tmp_path_factory.mktemp("examples") / "data", processes)
    return undisturbed.finished(examples_steps)
