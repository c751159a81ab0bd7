"""Programming languages: the grammar of each, and the nodes of its syntax tree that define classes and functions."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from dataclasses import dataclass

import tree_sitter


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeLanguage:
    """Node types of one language.

    Args:
        grammars: "module" or "module:function" of each grammar. The first that parses a file without an error is used.
        classes: nodes that have members: classes, modules, namespaces, interfaces.
        functions: nodes that define functions and methods.
        values: nodes that give a name to a value, by the field of the value. They define a function if the value is one.
        imports: nodes that import from other files.
        calls: functions that import when they are called.
        wrappers: nodes around a definition, which belong to it: decorators, exports, templates.
        remarks: nodes that belong to the definition below them: comments and attributes.
        receiver: field of a method's node that names its class.
    """

    grammars: tuple[str, ...]
    classes: frozenset[str]
    functions: frozenset[str]
    values: Mapping[str, str]
    imports: frozenset[str]
    calls: frozenset[str]
    wrappers: frozenset[str]
    remarks: frozenset[str]
    receiver: str | None


FUNCTION_VALUES = frozenset({"arrow_function", "function_expression", "generator_function", "class"})
"""Values that a name is given to in order to define it."""


def _make_language(
    grammars: str,
    *,
    classes: str = "",
    functions: str = "",
    values: Mapping[str, str] | None = None,
    imports: str = "",
    calls: str = "",
    around: str = "",
    receiver: str | None = None,
) -> CodeLanguage:
    return CodeLanguage(
        grammars=tuple(grammars.split()),
        classes=frozenset(classes.split()),
        functions=frozenset(functions.split()),
        values=values or {},
        imports=frozenset(imports.split()),
        calls=frozenset(calls.split()),
        wrappers=frozenset(around.split()),
        remarks=frozenset({"comment", "line_comment", "block_comment", "multiline_comment", "attribute_item", "attribute_list"}),
        receiver=receiver,
    )


_SCRIPT_VALUES = {
    "variable_declarator": "value",
    "assignment_expression": "right",
    "field_definition": "value",
    "public_field_definition": "value",
}
_SCRIPT_FUNCTIONS = "function_declaration generator_function_declaration method_definition"
_C_CLASSES = "struct_specifier union_specifier enum_specifier type_definition"

LANGUAGES: Mapping[str, CodeLanguage] = {
    "python": _make_language(
        "tree_sitter_python",
        classes="class_definition",
        functions="function_definition",
        imports="import_statement import_from_statement future_import_statement",
        around="decorated_definition",
    ),
    "javascript": _make_language(
        "tree_sitter_javascript",
        classes="class_declaration",
        functions=_SCRIPT_FUNCTIONS,
        values=_SCRIPT_VALUES,
        imports="import_statement",
        calls="require",
        around="export_statement lexical_declaration variable_declaration expression_statement",
    ),
    "typescript": _make_language(
        "tree_sitter_typescript:language_typescript tree_sitter_typescript:language_tsx",
        classes="class_declaration abstract_class_declaration interface_declaration enum_declaration internal_module module "
        "type_alias_declaration",
        functions=f"{_SCRIPT_FUNCTIONS} function_signature method_signature abstract_method_signature",
        values=_SCRIPT_VALUES,
        imports="import_statement",
        around="export_statement ambient_declaration lexical_declaration variable_declaration expression_statement",
    ),
    "java": _make_language(
        "tree_sitter_java",
        classes="class_declaration interface_declaration enum_declaration record_declaration annotation_type_declaration",
        functions="method_declaration constructor_declaration compact_constructor_declaration",
        imports="import_declaration",
    ),
    "c": _make_language(
        "tree_sitter_c tree_sitter_cpp",
        classes=f"{_C_CLASSES} class_specifier namespace_definition",
        functions="function_definition",
        imports="preproc_include",
        around="template_declaration",
    ),
    "cpp": _make_language(
        "tree_sitter_cpp",
        classes=f"{_C_CLASSES} class_specifier namespace_definition concept_definition",
        functions="function_definition",
        imports="preproc_include using_declaration",
        around="template_declaration",
    ),
    "c_sharp": _make_language(
        "tree_sitter_c_sharp",
        classes="class_declaration interface_declaration struct_declaration enum_declaration record_declaration "
        "namespace_declaration",
        functions="method_declaration constructor_declaration destructor_declaration operator_declaration delegate_declaration "
        "local_function_statement property_declaration",
        imports="using_directive",
    ),
    "go": _make_language(
        "tree_sitter_go",
        classes="type_spec type_alias",
        functions="function_declaration method_declaration",
        imports="import_declaration",
        around="type_declaration",
        receiver="receiver",
    ),
    "rust": _make_language(
        "tree_sitter_rust",
        classes="mod_item struct_item enum_item union_item trait_item impl_item",
        functions="function_item function_signature_item macro_definition",
        imports="use_declaration extern_crate_declaration",
    ),
    "ruby": _make_language(
        "tree_sitter_ruby",
        classes="module class singleton_class",
        functions="method singleton_method",
        calls="require require_relative load",
    ),
    "php": _make_language(
        "tree_sitter_php:language_php",
        classes="class_declaration interface_declaration trait_declaration enum_declaration",
        functions="function_definition method_declaration",
        imports="namespace_use_declaration require_expression require_once_expression include_expression include_once_expression",
    ),
    "kotlin": _make_language(
        "tree_sitter_kotlin",
        classes="class_declaration object_declaration companion_object",
        functions="function_declaration secondary_constructor",
        imports="import",
    ),
    "swift": _make_language(
        "tree_sitter_swift",
        classes="class_declaration protocol_declaration",
        functions="function_declaration init_declaration deinit_declaration protocol_function_declaration",
        imports="import_declaration",
    ),
    "scala": _make_language(
        "tree_sitter_scala",
        classes="class_definition object_definition trait_definition enum_definition",
        functions="function_definition function_declaration",
        imports="import_declaration",
    ),
    "bash": _make_language("tree_sitter_bash", functions="function_definition", calls="source ."),
}


@functools.cache
def load_grammar(name: str) -> tree_sitter.Language:
    """Return the grammar that `CodeLanguage.grammars` names."""
    module, _, function = name.partition(":")
    return tree_sitter.Language(getattr(importlib.import_module(module), function or "language")())
