from __future__ import annotations

from tests.unit.knowledge.conftest import MakeChunks

from agentic_rag_backend.domain.document import CALLS, DEFINES, IMPORTS, CodeName, CodeRelation
from agentic_rag_backend.domain.graph import Alias, Extraction
from agentic_rag_backend.knowledge.extraction.relations.code_relations import module_name, with_code
from agentic_rag_backend.knowledge.extraction.rules import RuleExtractor

HEAD = "from util import load_all"
BODY = "class LockKeeper:\n    def open(self):\n        load_all()"
START = len(HEAD) + 1
CLASS, METHOD = CodeName(("LockKeeper",)), CodeName(("LockKeeper", "open"))
RELATIONS = (
    CodeRelation(CodeName(()), IMPORTS, CodeName(("util",), own=False), 0, len(HEAD)),
    CodeRelation(CodeName(()), DEFINES, CLASS, START, START + 17),
    CodeRelation(CLASS, DEFINES, METHOD, START + 22, START + 37),
    CodeRelation(METHOD, CALLS, CodeName(("util", "load_all"), own=False), START + 46, START + 56),
)


def test_relations_are_the_knowledge_of_the_chunks_that_state_them(chunks: MakeChunks) -> None:
    made = chunks(HEAD, BODY)
    head, body = with_code(RuleExtractor().extract_document("locks.py", made), made, "src/locks.py", RELATIONS)
    assert [(each.source, each.relation, each.target, each.fact) for each in head.relationships] == [
        ("locks", "imports", "util", HEAD)
    ]
    assert [(each.source, each.relation, each.target, each.fact) for each in body.relationships] == [
        ("locks", "defines", "locks.LockKeeper", "class LockKeeper:"),
        ("locks.LockKeeper", "defines", "locks.LockKeeper.open", "def open(self):"),
        ("locks.LockKeeper.open", "calls", "util.load_all", "load_all()"),
    ]
    for each, chunk in zip((head, body), made, strict=True):
        assert all(fact.fact == chunk.text[fact.fact_start : fact.fact_end] for fact in each.relationships)
        for mention in each.mentions:
            last = chunk.text[mention.start_char : mention.end_char]
            assert mention.about or mention.name.endswith(last)
        assert {mention.type for mention in each.mentions if "ock" in mention.name and mention.name != "locks.py"} <= {"code"}
    assert Alias(name="locks.LockKeeper", alias="LockKeeper", type="code") in body.aliases
    assert not any(alias.alias == "open" for alias in body.aliases), "many files have such a name"


def test_names_of_files() -> None:
    for title, name in (
        ("a/b/locks.py", "locks"),
        ("C:\\x\\Locks.java", "Locks"),
        ("Makefile", "Makefile"),
        (" ", "file"),
        (".py", "file"),
    ):
        assert module_name(title) == name
    java = (
        CodeRelation(CodeName(()), DEFINES, CodeName(("Locks",)), 0, 11),
        CodeRelation(CodeName(("Locks",)), DEFINES, CodeName(("Locks", "f")), 0, 11),
    )
    assert with_code([Extraction(chunk_id="c")], [], "Locks.java", java) == [Extraction(chunk_id="c")], "no chunk has the line"


def test_a_class_of_the_name_of_its_file_is_named_once(chunks: MakeChunks) -> None:
    made = chunks("class Locks { void f() {} }")
    one = CodeName(("Locks",))
    relations = (CodeRelation(CodeName(()), DEFINES, one, 0, 27), CodeRelation(one, DEFINES, CodeName(("Locks", "f")), 0, 27))
    (found,) = with_code([Extraction(chunk_id=made[0].id)], made, "Locks.java", relations)
    assert [(each.source, each.target) for each in found.relationships] == [("Locks", "Locks.f")]
