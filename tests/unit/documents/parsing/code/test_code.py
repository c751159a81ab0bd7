from __future__ import annotations

import ast
import inspect
import json
import textwrap
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentic_rag_backend.documents.parsing.code import definitions as module
from agentic_rag_backend.documents.parsing.code.code_parser import CodeParser
from agentic_rag_backend.documents.parsing.code.definitions import Definition, find_definitions
from agentic_rag_backend.documents.parsing.code.grammars import LANGUAGES
from agentic_rag_backend.documents.parsing.registry import parser_of
from agentic_rag_backend.domain import media_types
from agentic_rag_backend.errors import UnreadableDocument

SAMPLES = {
    "python": "import os\nfrom a import b\n\n# Above.\n@decorated\nclass Shop:\n    @property\n    async def open(self): ...\n",
    "javascript": 'import a from "b";\nclass Shop {\n  open() {}\n}\nexport const close = () => 1;\nfunction main() {}\n',
    "typescript": 'import a from "b";\ninterface Shop {\n  open(): void\n}\nexport function main<T>(x: T): T { return x; }\n',
    "java": "package a;\nimport b.C;\n@Deprecated\npublic class Shop {\n  Shop() {}\n  void open() {}\n}\n",
    "c": "#include <a.h>\nstruct shop { int a; };\nstatic char *open_shop(struct shop *s) { return 0; }\n",
    "cpp": "#include <a>\nnamespace n {\nclass Shop {\n  void open() {}\n};\n}\ntemplate <class T>\nvoid n::Shop::close() {}\n",
    "c_sharp": "using System;\nnamespace A.B {\n  class Shop {\n    void Open() {}\n  }\n}\n",
    "go": 'package a\nimport "fmt"\n// Shop sells.\ntype Shop struct {}\nfunc (s *Shop) Open() {}\nfunc main() {}\n',
    "rust": "use std::io;\n#[derive(Debug)]\nstruct Shop;\nimpl Shop {\n    fn open(&self) {}\n}\nfn main() {}\n",
    "ruby": 'require "a"\nmodule M\n  class Shop < Base\n    def open; end\n    def self.close; end\n  end\nend\n',
    "php": "<?php\nuse X\\Y;\nclass Shop {\n  function open() {}\n}\nfunction main() {}\n",
    "kotlin": "import a.B\n/** Sells. */\nclass Shop(val x: Int) {\n  fun open() {}\n}\nobject Only {\n}\n",
    "swift": "import Foundation\nclass Shop {\n  init() {\n  }\n  func open() {\n  }\n}\n",
    "scala": "import a.b._\nclass Shop {\n  def open() = 1\n}\nobject Only {\n}\n",
    "bash": ". ./a.sh\nopen_shop() {\n  echo\n}\n",
}
PATHS = {
    "python": ["Shop", "Shop/open"],
    "javascript": ["Shop", "Shop/open", "close", "main"],
    "typescript": ["Shop", "Shop/open", "main"],
    "java": ["Shop", "Shop/Shop", "Shop/open"],
    "c": ["shop", "open_shop"],
    "cpp": ["n", "n/Shop", "n/Shop/open", "n::Shop::close"],
    "c_sharp": ["A.B", "A.B/Shop", "A.B/Shop/Open"],
    "go": ["Shop", "Shop.Open", "main"],
    "rust": ["Shop", "Shop", "Shop/open", "main"],
    "ruby": ["M", "M/Shop", "M/Shop/open", "M/Shop/close"],
    "php": ["Shop", "Shop/open", "main"],
    "kotlin": ["Shop", "Shop/open", "Only"],
    "swift": ["Shop", "Shop/init", "Shop/open"],
    "scala": ["Shop", "Shop/open", "Only"],
    "bash": ["open_shop"],
}


def lines_of(found: Definition, text: str) -> list[str]:
    return textwrap.dedent(text[found.start_char : found.end_char]).splitlines()


@pytest.mark.parametrize("language", LANGUAGES)
def test_classes_functions_and_imports_of_every_language(language: str) -> None:
    text = SAMPLES[language]
    found = find_definitions(text, language)
    assert ["/".join(each.path) for each in found if each.kind != "import"] == PATHS[language]
    assert any(each.kind == "import" for each in found)
    for each in found:
        assert each.start_char == 0 or text[each.start_char - 1] == "\n"
        assert text[each.start_char : each.end_char].strip()


def test_every_language_has_a_media_type_and_a_parser() -> None:
    assert LANGUAGES.keys() == {each.language for each in media_types.SOURCE_CODE.values()}
    for media_type, each in media_types.SOURCE_CODE.items():
        assert each.language is not None
        parsed = parser_of(media_type).parse(SAMPLES[each.language].encode())
        assert (parsed.text, parsed.language) == (SAMPLES[each.language], each.language)
        assert parsed.headings
        assert parser_of(media_type).restore(parsed.text) == parsed


def test_a_definition_begins_with_its_comments_and_decorators() -> None:
    python = find_definitions(SAMPLES["python"], "python")
    assert lines_of(python[2], SAMPLES["python"])[:3] == ["# Above.", "@decorated", "class Shop:"]
    assert lines_of(python[3], SAMPLES["python"]) == ["@property", "async def open(self): ..."]
    assert lines_of(find_definitions(SAMPLES["rust"], "rust")[1], SAMPLES["rust"]) == ["#[derive(Debug)]", "struct Shop;"]
    assert lines_of(find_definitions(SAMPLES["cpp"], "cpp")[-1], SAMPLES["cpp"])[0] == "template <class T>"
    apart = "# Licence.\n\nx = 1  # a note\ndef f():\n    return x\n"
    assert lines_of(find_definitions(apart, "python")[0], apart)[0] == "def f():"


def test_offsets_count_characters() -> None:
    text = '# Grüße 🎉\nNAME = "東京"\n\nclass Größe:\n    def maß(self):\n        return "ü"\n\ndef ende(): ...\n'
    found = find_definitions(text, "python")
    assert [lines_of(each, text)[0] for each in found] == ["class Größe:", "def maß(self):", "def ende(): ..."]
    assert [each.path[-1] for each in found] == ["Größe", "maß", "ende"]


def test_functions_within_functions_are_definitions_but_not_headings() -> None:
    text = "def outer():\n    def inner():\n        class Local: ...\n    return inner\n\nclass A:\n    def m(self): ...\n"
    assert [each.path for each in find_definitions(text, "python")][:3] == [
        ("outer",),
        ("outer", "inner"),
        ("outer", "inner", "Local"),
    ]
    headings = CodeParser("python").parse(text).headings
    assert [(each.level, each.title) for each in headings] == [(1, "outer"), (1, "A"), (2, "m")]


@pytest.mark.parametrize("real", [json.decoder, textwrap, inspect], ids=lambda real: real.__name__)
def test_real_code_is_read_as_python_itself_reads_it(real: ModuleType) -> None:
    text = inspect.getsource(real)
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    expected = sorted((node.lineno, node.name) for node in ast.walk(ast.parse(text)) if isinstance(node, kinds))
    found = [each for each in find_definitions(text, "python") if each.kind != "import"]
    assert [each.path[-1] for each in found] == [name for _, name in expected]
    for each, (line, name) in zip(found, expected, strict=True):
        within = text.splitlines()[text.count("\n", 0, each.start_char) : line]
        assert name in within[-1]
        assert all(above.strip().startswith(("#", "@")) for above in within[:-1])


def test_errors_in_the_code_are_tolerated() -> None:
    text = "class A:\n    def f(self): ...\n\nx = = 1\n\ndef g():\n    return 1\n"
    assert "g" in {each.path[-1] for each in find_definitions(text, "python")}
    assert CodeParser("python").parse("not python at all }{").headings == ()


def test_a_dialect_is_read_with_the_grammar_that_fits() -> None:
    tsx = "function App(): JSX.Element { return <div><b>text</b></div>; }\nfunction other() {}\n"
    cast = "const a = <string>b;\nfunction main() {}\n"
    header = "class Shop {\npublic:\n  int open() { return 1; }\n};\n"
    assert [each.path[-1] for each in find_definitions(tsx, "typescript")] == ["App", "other"]
    assert [each.path[-1] for each in find_definitions(cast, "typescript")] == ["main"]
    assert [each.path for each in find_definitions(header, "c")] == [("Shop",), ("Shop", "open")]


@pytest.mark.parametrize("unit", ["(", "[{(", "-", "not ", "lambda:", "if x:\n ", "a b c ", '"', "@a\n", "class A:\n", "# a\n"])
def test_hostile_code_becomes_text(unit: str) -> None:
    text = unit * 20_000 + "x"
    parsed = CodeParser("python").parse(text)
    assert parsed.text == text


@pytest.mark.parametrize(
    ("language", "unit"),
    [
        ("cpp", "A<"),
        ("cpp", "template<"),
        ("javascript", "(()=>"),
        ("ruby", "class A;"),
        ("kotlin", "fun f(){"),
        ("swift", "a.b{"),
    ],
)
def test_deep_nesting_of_other_languages(language: str, unit: str) -> None:
    assert len(find_definitions(unit * 10_000, language)) <= module.MAX_DEPTH


def test_large_or_complicated_files_have_no_structure(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "def f(): ...\n" * 5_000
    assert len(find_definitions(text, "python")) == 5_000
    monkeypatch.setattr(module, "MAX_STEPS", 10)
    assert find_definitions(text, "python") == ()
    monkeypatch.undo()
    monkeypatch.setattr(module, "MAX_BYTES", 1_000)
    assert CodeParser("python").parse(text).headings == ()


@pytest.mark.parametrize("language", LANGUAGES)
@settings(max_examples=25, derandomize=True)
@given(data=st.data())
def test_any_code_is_read_or_refused(language: str, data: st.DataObject) -> None:
    content = bytearray(SAMPLES[language].encode())
    for at in data.draw(st.lists(st.integers(0, len(content) - 1), max_size=8)):
        content[at] = data.draw(st.integers(0, 255))
    try:
        parsed = parser_of(next(name for name, each in media_types.FORMATS.items() if each.language == language)).parse(
            bytes(content)
        )
    except UnreadableDocument:
        return
    starts = [each.start_char for each in parsed.headings]
    assert starts == sorted(starts)
    for each in find_definitions(parsed.text, language):
        assert 0 <= each.start_char < each.end_char <= len(parsed.text)
