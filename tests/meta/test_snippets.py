"""Everything that the README and the guide tell users to type exists: routes, fields, commands, options, targets, imports."""

from __future__ import annotations

import ast
import importlib
import json
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import typer

from agentic_rag_backend.api.app import BASE_PATH, create_app
from agentic_rag_backend.cli.app import app as cli
from agentic_rag_backend.container import Container
from agentic_rag_backend.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]
ORIGIN = "http://127.0.0.1:8000"
OTHER_ADDRESSES = {"http://127.0.0.1:9000/token", "$ORIGIN/mcp"}
"""Addresses that the OpenAPI description lacks: a provider of tokens, and the Model Context Protocol. Other tests run them."""
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ASSIGNMENT = re.compile(r"[A-Z_]+=")
_OPERATORS = set("();|&<>")
_SHELL = {"export", "source", "curl", "make", "agentic-rag", "python", "pip", "cp", "while", "do", "done", "grep", "sleep"}


def blocks(path: Path, language: str) -> list[str]:
    """Return the code blocks of one language."""
    return [found[2] for found in _BLOCK.finditer(path.read_text(encoding="utf-8")) if found[1] == language]


def commands(block: str) -> Iterator[list[str]]:
    """Yield the simple commands of a shell block, including those in pipes and ``$(…)``, without leading assignments."""
    for line in block.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars="();|&<>")
        lexer.whitespace_split = True
        lexer.commenters = "#"
        words: list[str] = []
        for token in [*lexer, ";"]:
            if set(token) <= _OPERATORS:
                while words and _ASSIGNMENT.match(words[0]):
                    words.pop(0)
                if words:
                    yield words
                words = []
            else:
                words.append(token)


def said(program: str) -> list[list[str]]:
    """Return every invocation of a program in all pages."""
    return [words for page in PAGES for block in blocks(page, "bash") for words in commands(block) if words[0] == program]


SPECIFICATION = create_app(
    cast(Container, SimpleNamespace(settings=Settings(_env_file=None)))  # type: ignore[call-arg]
).openapi()


def route_of(words: Sequence[str]) -> tuple[str, str, dict[str, Any]]:
    """Return method, path and specification of the route that a curl command calls.

    Raises:
        LookupError: there is no such route.
    """
    address = next(word for word in words if word.startswith(("$API", "$ORIGIN", ORIGIN)))
    path = address.replace("$API", BASE_PATH).replace("$ORIGIN", "").replace(ORIGIN, "").partition("?")[0]
    body = {"--json", "-d", "-F", "--data-binary"} & set(words)
    method = words[words.index("-X") + 1] if "-X" in words else ("POST" if body else "GET")
    for template, methods in SPECIFICATION["paths"].items():
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path) and method.lower() in methods:
            return method, template, methods[method.lower()]
    raise LookupError(f"no route {method} {path}")


def schema_of(route: dict[str, Any], media_type: str) -> dict[str, Any]:
    """Return the schema of a route's body."""
    schema: dict[str, Any] = route["requestBody"]["content"][media_type]["schema"]
    if "$ref" in schema:
        schema = SPECIFICATION["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def problems_of_body(words: Sequence[str], route: dict[str, Any]) -> list[str]:
    """Return the errors in the fields that a curl command sends."""
    sent: set[str] = set()
    if "--json" in words:
        schema = schema_of(route, "application/json")
        sent = set(json.loads(words[words.index("--json") + 1]))
    elif "-F" in words:
        schema = schema_of(route, "multipart/form-data")
        sent = {words[place + 1].partition("=")[0] for place, word in enumerate(words) if word == "-F"}
    else:
        return []
    if "properties" not in schema:
        return []
    unknown, missing = sent - set(schema["properties"]), set(schema.get("required", [])) - sent
    return [f"unknown field {name}" for name in unknown] + [f"missing field {name}" for name in missing]


@pytest.mark.parametrize("words", [words for words in said("curl") if not OTHER_ADDRESSES & set(words)], ids=" ".join)
def test_curl_calls_a_route_with_fields_that_it_has(words: list[str]) -> None:
    assert problems_of_body(words, route_of(words)[2]) == []


@pytest.mark.parametrize("line", ["curl $API/nothing", "curl -X PUT $API/status", "curl $API/documents/$ID/none"])
def test_a_route_that_does_not_exist_is_found(line: str) -> None:
    with pytest.raises(LookupError):
        route_of(shlex.split(line))


def test_a_field_that_does_not_exist_is_found() -> None:
    words = shlex.split("""curl $API/search --json '{"question": "?"}'""")

    assert sorted(problems_of_body(words, route_of(words)[2])) == ["missing field query", "unknown field question"]


def problem_of_invocation(words: Sequence[str]) -> str | None:
    """Return the error of an invocation of the command line: a command or an option that does not exist."""
    command: Any = typer.main.get_command(cli)
    rest = list(words[1:])
    while rest and hasattr(command, "commands") and not rest[0].startswith("-"):
        if rest[0] not in command.commands:
            return f"no command {rest[0]!r}"
        command = command.commands[rest.pop(0)]
    if hasattr(command, "commands") and not rest:
        return "a group, not a command"
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)} | {"-h", "--help"}
    unknown = [word for word in rest if word.startswith("-") and word.partition("=")[0] not in known]
    return f"no option {unknown[0]!r}" if unknown else None


@pytest.mark.parametrize("words", said("agentic-rag"), ids=" ".join)
def test_commands_and_their_options_exist(words: list[str]) -> None:
    assert problem_of_invocation(words) is None


@pytest.mark.parametrize(
    "line", ["agentic-rag fly", "agentic-rag ask --loudly Q", "agentic-rag documents", "agentic-rag tenants fly"]
)
def test_a_command_that_does_not_exist_is_found(line: str) -> None:
    assert problem_of_invocation(shlex.split(line)) is not None


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))

    assert {word for words in said("make") for word in words[1:] if "=" not in word} <= targets


def test_the_readme_shows_the_ways_in() -> None:
    readme = [words for block in blocks(ROOT / "README.md", "bash") for words in commands(block)]

    assert ["make", "demo"] in readme
    assert ["make", "test"] in readme
    assert {"curl", "agentic-rag"} <= {words[0] for words in readme}
    assert blocks(ROOT / "README.md", "python")


def test_blocks_use_only_programs_that_are_there() -> None:
    used = {words[0] for page in PAGES for block in blocks(page, "bash") for words in commands(block)}
    functions = {
        found for page in PAGES for block in blocks(page, "bash") for found in re.findall(r"^(\w+)\(\) \{", block, re.MULTILINE)
    }

    assert {word for word in used if not word.startswith((".", "$", "{", "}"))} <= _SHELL | functions


_FRAMEWORKS = {f"agentic_rag_client.{name}" for name in ("haystack", "langchain", "llamaindex")}
"""Modules that `make test-clients` imports, in an environment with the frameworks."""


@pytest.mark.parametrize("block", [block for page in PAGES for block in blocks(page, "python")])
def test_python_examples_compile_and_import_what_exists(block: str) -> None:
    tree = compile(block, "example", "exec", flags=ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)

    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module not in _FRAMEWORKS:
            module = importlib.import_module(node.module)
            assert [name.name for name in node.names if not hasattr(module, name.name)] == []
