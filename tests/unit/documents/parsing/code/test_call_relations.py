from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentic_rag_backend.documents.parsing.code import call_relations as module
from agentic_rag_backend.documents.parsing.code import definitions as definitions_module
from agentic_rag_backend.documents.parsing.code.call_relations import structure_of
from agentic_rag_backend.documents.parsing.code.definitions import find_definitions
from agentic_rag_backend.documents.parsing.code.grammars import LANGUAGES
from agentic_rag_backend.domain.document import CodeName

SAMPLES = {
    "python": (
        "import os\nimport numpy as np\nfrom a.util import load as ld\nfrom . import near\n\nclass Shop:\n    def open(self):\n"
        "        self.close(); ld(1); near.go(); np.zeros(3); print(2); other.close()\n    def close(self):\n        helper()\n\n"
        "def helper():\n    return Shop()\n",
        "imports os, imports numpy, imports a.util, imports near, defines .Shop, .Shop defines .Shop.open, "
        ".Shop defines .Shop.close, defines .helper, .Shop.open calls .Shop.close, .Shop.open calls util.load, "
        ".Shop.open calls near.go, "
        ".Shop.open calls numpy.zeros, .Shop.close calls .helper, .helper calls .Shop",
    ),
    "javascript": (
        'import a, {b as c} from "./lib/util.js";\nimport * as ns from "pkg";\n'
        "function f() { g(); c(); ns.x(); new B(); a() }\n"
        "function g() {}\nclass B { m() { this.n() } n() {} }\nconst h = () => f();\n",
        "imports util, imports pkg, defines .f, defines .g, defines .B, .B defines .B.m, .B defines .B.n, defines .h, "
        ".f calls .g, "
        ".f calls util.b, .f calls pkg.x, .f calls .B, .f calls util.a, .B.m calls .B.n, .h calls .f",
    ),
    "typescript": (
        'import {a} from "./x";\nfunction f(): void { a(); g(); }\nfunction g(): void {}\n',
        "imports x, defines .f, defines .g, .f calls x.a, .f calls .g",
    ),
    "java": (
        "import a.b.Util;\nclass A {\n  void f() { g(); Util.h(); new A(); unknown(); }\n  void g() {}\n}\n",
        "imports a.b.Util, defines .A, .A defines .A.f, .A defines .A.g, .A.f calls .A.g, .A.f calls Util.h, .A.f calls .A",
    ),
    "c": (
        '#include <stdio.h>\n#include "util.h"\nint f(int a) { printf("x"); return g(a); }\nint g(int a) { return 0; }\n',
        "imports stdio.h, imports util.h, defines .f, defines .g, .f calls printf, .f calls .g",
    ),
    "cpp": (
        "#include <a>\nnamespace n {\nclass S {\n  void m() { k(); }\n  void k() {}\n};\n}\n",
        "imports a, defines .n, .n defines .n.S, .n.S defines .n.S.m, .n.S defines .n.S.k, .n.S.m calls .n.S.k",
    ),
    "c_sharp": (
        "using A.B;\nclass S {\n  void M() { K(); }\n  void K() {}\n}\n",
        "imports A.B, defines .S, .S defines .S.M, .S defines .S.K, .S.M calls .S.K",
    ),
    "go": (
        'package a\nimport "fmt"\nfunc f() { g(); fmt.Println(1) }\nfunc g() {}\ntype S struct{}\nfunc (s *S) M() { g() }\n',
        "imports fmt, defines .f, defines .g, defines .S, .S defines .S.M, .f calls .g, .f calls fmt.Println, .S.M calls .g",
    ),
    "rust": (
        "use a::util::load;\nstruct S;\nimpl S {\n    fn new() -> S { S }\n    fn go(&self) { Self::new(); load(); helper(); }\n"
        "}\n"
        "fn helper() { S::new(); }\n",
        "imports a::util::load, defines .S, .S defines .S.new, .S defines .S.go, defines .helper, .S.go calls .S.new, "
        ".S.go calls util.load, .S.go calls .helper, .helper calls .S.new",
    ),
    "ruby": (
        "require 'json'\nclass A\n  def f\n    g(1)\n  end\n  def g(x)\n  end\nend\n",
        "imports json, defines .A, .A defines .A.f, .A defines .A.g, .A.f calls .A.g",
    ),
    "php": (
        "<?php\nuse X\\Y\\Shop;\nfunction f() { g(); Shop::k(); }\nfunction g() {}\n",
        "imports X\\Y\\Shop, defines .f, defines .g, .f calls .g, .f calls Shop.k",
    ),
    "kotlin": (
        "import a.b.C\nfun f() { g(1); C.x(2) }\nfun g(x: Int) {}\n",
        "imports a.b.C, defines .f, defines .g, .f calls .g, .f calls C.x",
    ),
    "swift": (
        "import Foundation\nfunc f() { g(1) }\nfunc g(x: Int) {}\n",
        "imports Foundation, defines .f, defines .g, .f calls .g",
    ),
    "scala": (
        "import a.b.C\nobject A {\n  def f() = { g(1); C.h(2) }\n  def g(x: Int) = 1\n}\n",
        "imports a.b.C, defines .A, .A defines .A.f, .A defines .A.g, .A.f calls .A.g, .A.f calls C.h",
    ),
    "bash": (
        ". ./lib.sh\nf() {\n  g a\n}\ng() {\n  return 1\n}\n",
        "imports lib.sh, defines .f, defines .g, .f calls .g",
    ),
}


def shown(text: str, language: str) -> set[str]:
    def name(one: CodeName) -> str:
        return f".{'.'.join(one.path)}" if one.own and one.path else ".".join(one.path)

    found = structure_of(text, language).relations
    return {f"{name(each.source)} {each.relation} {name(each.target)}".strip() for each in found}


@pytest.mark.parametrize("language", LANGUAGES)
def test_files_of_every_language_define_import_and_call(language: str) -> None:
    text, expected = SAMPLES[language]
    assert shown(text, language) == set(expected.split(", "))
    structure = structure_of(text, language)
    assert structure.definitions == find_definitions(text, language)
    places = [each.start_char for each in structure.relations]
    assert places == sorted(places)
    for each in structure.relations:
        line = text[each.start_char : each.end_char]
        assert line == line.strip() != ""
        assert "\n" not in line


def test_imports_of_python() -> None:
    text = (
        "from importlib import (\n    load,  # loads\n    store as put,\n)\nimport a.b as c, d.e\nload(); put(); c.f(); d.e.g()\n"
    )
    calls = {"calls importlib.load", "calls importlib.store", "calls b.f", "calls d.e.g"}
    assert shown(text, "python") == {"imports importlib", "imports a.b", "imports d.e", *calls}


def test_a_place_counts_characters_and_a_long_line_is_cut() -> None:
    long = f"größe = 'ü'\ndef läuft():\n    {'ä' * 400} = 1; rufe(); \n\ndef rufe(): pass\n"
    found = {each.relation: long[each.start_char : each.end_char] for each in structure_of(long, "python").relations}
    assert found == {"calls": "rufe();", "defines": "def rufe(): pass"}


def test_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    many = "".join(f"def f{number}():\n    f{number - 1}()\n" for number in range(60))
    assert len(structure_of(many, "python").relations) == 119
    monkeypatch.setattr(module, "MAX_RELATIONS", 50)
    assert len(structure_of(many, "python").relations) == 50
    monkeypatch.setattr(definitions_module, "MAX_BYTES", 100)
    assert structure_of(many, "python") == module.CodeStructure()


@settings(deadline=None, max_examples=40)
@given(
    text=st.lists(
        st.sampled_from([*"(){}[]:;.,\n\t 'ä$", "def f", "class A", "import ", "from ", "f()", "self.", "=>", "as b"])
    ).map("".join)
)
def test_broken_code_has_bounded_relations_within_the_text(text: str) -> None:
    for language in ("python", "javascript", "cpp", "ruby", "bash"):
        for each in structure_of(text, language).relations:
            assert 0 <= each.start_char < each.end_char <= len(text)
            assert each.target.path
