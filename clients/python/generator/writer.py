"""Modules of the client, written from the OpenAPI description."""

from __future__ import annotations

import keyword
import re
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from generator.names import (
    BASES,
    BODY,
    EVENTS,
    FIXED,
    HEADERS,
    LIMITS,
    MIXINS,
    NAMES,
    NOT_READY,
    OPERATIONS,
    READING,
    RETURNS,
    STREAMED,
    WRITTEN,
)

Schema = Mapping[str, Any]


@dataclass(frozen=True)
class Argument:
    """A parameter of a method."""

    name: str
    annotation: str
    description: str
    required: bool


@dataclass
class Writer:
    """Writes the modules from a description."""

    description: Schema
    literals: set[str] = field(default_factory=set)
    bodies: set[str] = field(default_factory=set)
    results: set[str] = field(default_factory=set)

    @property
    def schemas(self) -> Mapping[str, Schema]:
        schemas: Mapping[str, Schema] = self.description["components"]["schemas"]
        return schemas

    def write(self) -> dict[str, str]:
        """Return the text of each module by its file name."""
        operations = self.write_operations()
        for route, _ in WRITTEN.values():
            verb, path = route.split(" ")
            self.annotate(self.read_data(self.description["paths"][path][verb.lower()])[0], for_request=False)
        models = self.write_models()
        return {"models.py": models, "parameters.py": self.write_parameters(), "operations.py": operations}

    # -- types ---------------------------------------------------------------------------------------------------------------

    def annotate(self, schema: Schema, *, for_request: bool, module: str = "") -> str:
        """Return the type of a value of a request or a response. ``module`` is the prefix of the names of classes."""

        def annotate(inner: Schema) -> str:
            return self.annotate(inner, for_request=for_request, module=module)

        if "$ref" in schema:
            return self.refer(schema["$ref"].rpartition("/")[2], for_request=for_request, module=module)
        if "anyOf" in schema:
            return " | ".join(dict.fromkeys(annotate(inner) for inner in schema["anyOf"]))
        if "enum" in schema or "const" in schema:
            values = schema.get("enum", [schema.get("const")])
            literal = f"Literal[{', '.join(repr(value) for value in values)}]"
            return literal if for_request else f"{literal} | str"
        match schema.get("type"):
            case "array" if "prefixItems" in schema:
                return f"tuple[{', '.join(annotate(item) for item in schema['prefixItems'])}]"
            case "array":
                return f"{'Sequence' if for_request else 'list'}[{annotate(schema.get('items', {}))}]"
            case "object":
                values = schema.get("additionalProperties")
                inner = annotate(values) if isinstance(values, Mapping) else "Any"
                return f"{'Mapping' if for_request else 'dict'}[str, {inner}]"
            case "string" if schema.get("format") in ("date", "date-time"):
                time = "datetime" if schema["format"] == "date-time" else "date"
                return f"{time} | str" if for_request else time
            case simple:
                names = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
                return names.get(str(simple), "Any")

    def refer(self, name: str, *, for_request: bool, module: str) -> str:
        """Return the name of a schema's class, and note that it is needed."""
        schema = self.schemas[name]
        if "enum" in schema:
            self.literals.add(name)
            return name if for_request else f"{name} | str"
        if "properties" not in schema:
            return self.annotate(schema, for_request=for_request, module=module)
        noted = self.bodies if for_request else self.results
        if name not in noted:
            noted.add(name)
            for inner in schema["properties"].values():
                self.annotate(inner, for_request=for_request)
        return name if for_request else module + model_name(name)

    # -- modules -------------------------------------------------------------------------------------------------------------

    def write_models(self) -> str:
        """Return the module of the results."""
        classes = []
        names = Counter([*map(model_name, self.results), *self.literals])
        if repeated := [name for name, count in names.items() if count > 1]:
            raise SystemExit(f"NAMES must distinguish {repeated}")
        for name in sorted(self.results, key=model_name):
            schema = self.schemas[name]
            base = f"{MIXINS[name]}, Model" if name in MIXINS else "Model"
            lines = [
                f"class {model_name(name)}({base}):",
                *docstring(schema.get("description", ""), 1),
            ]
            for member, inner in schema["properties"].items():
                lines.append("    " + self.write_field(member, inner, required=member in schema.get("required", ())))
            classes.append("\n".join(lines))
        imported = sorted(self.literals & set(re.findall(r"\w+", "\n".join(classes))))
        head = header("Results of the server. A field that a response lacks raises AttributeError when it is read.")
        head += "from datetime import date, datetime\nfrom typing import Any, Literal\n\nfrom pydantic import Field\n\n"
        head += "from agentic_rag_client.model import ABSENT, Model\n"
        head += f"from agentic_rag_client.parameters import {', '.join(imported)}\n"
        head += f"from agentic_rag_client.prompts import {', '.join(sorted(MIXINS.values()))}\n"
        return head + "\n\n" + "\n\n\n".join(classes) + "\n"

    def write_field(self, member: str, schema: Schema, *, required: bool) -> str:
        name = python_name(member)
        annotation = self.annotate(schema, for_request=False)
        default = "ABSENT" if required else repr(schema.get("default"))
        if not required and "default" not in schema and "None" not in annotation:
            default = "ABSENT"
        if name != member:
            return f"{name}: {annotation} = Field(default={default}, alias={member!r})"
        if isinstance(schema.get("default"), list) and not required:
            return f"{name}: {annotation} = Field(default_factory=list)"
        return f"{name}: {annotation} = {default}"

    def write_parameters(self) -> str:
        """Return the module of the values that requests contain."""
        parts = [
            f"{name} = Literal[{', '.join(repr(value) for value in self.schemas[name]['enum'])}]"
            for name in sorted(self.literals)
        ]
        classes = []
        for name in sorted(self.bodies):
            schema = self.schemas[name]
            lines = [f"class {name}(TypedDict, total=False):", *docstring(schema.get("description", ""), 1)]
            for member, inner in schema["properties"].items():
                annotation = self.annotate(inner, for_request=True)
                required = member in schema.get("required", ())
                lines.append(f"    {member}: {f'Required[{annotation}]' if required else annotation}")
                lines += docstring(inner["description"], 1) if inner.get("description") else []
            classes.append("\n".join(lines))
        head = header("Values of requests: dictionaries with these fields, and the names that a field accepts.")
        head += "from collections.abc import Mapping, Sequence\nfrom datetime import datetime\n"
        head += "from typing import Any, Literal, Required, TypedDict\n\n"
        return head + "\n".join(parts) + "\n\n\n" + "\n\n\n".join(classes) + "\n"

    def write_operations(self) -> str:
        """Return the module of the operations: a class for each group, and one of all groups."""
        groups: dict[str, list[str]] = {"": []}
        for name, route in (OPERATIONS | STREAMED).items():
            group, _, method = name.rpartition(".")
            groups.setdefault(group, []).append(textwrap.indent(self.write_method(name, method, route), "    "))
        root = groups.pop("")
        classes = []
        for group, methods in groups.items():
            base = BASES.get(group, "Resource")
            title = f'class {class_name(group)}({base}[Mode]):\n    """Operations of `client.{group}`."""'
            classes.append("\n\n".join([title, *methods]))
            document = f'"""Operations of {words(group)}."""'
            root.append(
                f"    @cached_property\n    def {group}(self) -> {class_name(group)}[Mode]:\n        {document}\n"
                f"        return {class_name(group)}(self._session)"
            )
        title = 'class Operations(Resource[Mode]):\n    """The operations of a client."""'
        classes.append("\n\n".join([title, *root]))
        code = "\n\n\n".join(classes)
        needed = sorted((self.literals | self.bodies) & set(re.findall(r"(?<!\.)\b\w+", code)))
        head = header("Operations of the server, one method each.")
        head += "from collections.abc import Mapping, Sequence\nfrom datetime import date, datetime\n"
        head += (
            "from functools import cached_property\nfrom typing import Any, Literal\n\nfrom agentic_rag_client import models\n"
        )
        head += "from agentic_rag_client.answer_events import AnswerEvent, read_answer\n"
        head += "from agentic_rag_client.event_streams import AsyncEventStream\n"
        head += "from agentic_rag_client.files import DatasetFiles, DocumentFiles, TenantArchives\n"
        head += "from agentic_rag_client.job_events import JobEvent, JobEvents, read_job\n"
        head += "from agentic_rag_client.downloads import AsyncDownload\n"
        head += "from agentic_rag_client.methods import Mode, Resource, download, event_stream, listing, operation\n"
        head += "from agentic_rag_client.pages import AsyncPages\n"
        head += f"from agentic_rag_client.parameters import {', '.join(needed)}\n" if needed else ""
        head += "from agentic_rag_client.requests import Call, fill_path\n"
        return head + "\n\n" + code + "\n"

    # -- methods -------------------------------------------------------------------------------------------------------------

    def write_method(self, name: str, method: str, route: str) -> str:
        """Return the code of one method."""
        verb, path = route.split(" ")
        operation = self.description["paths"][path][verb.lower()]
        arguments = sorted(self.read_arguments(name, operation), key=lambda argument: not argument.required)
        returns, decorator, expression = self.choose_result(name, operation, self.write_call(name, route, operation))
        signature = ["self", *(f"{argument.name}: {argument.annotation}" for argument in arguments if argument.required)]
        optional = [
            f"{argument.name}: {optional_type(argument.annotation)} = None" for argument in arguments if not argument.required
        ]
        signature += ["*", *optional] if optional else []
        is_async = "async " if decorator == "operation" else ""
        text = "\n".join(docstring(describe(operation, arguments), 1))
        return f"@{decorator}\n{is_async}def {method}({', '.join(signature)}) -> {returns}:\n{text}\n    {expression}"

    def write_call(self, name: str, route: str, operation: Schema) -> str:
        """Return the expression of a method's request."""
        if self.is_mapping(operation):
            return f"Call({', '.join(map(repr, route.split(' ')))}, body={BODY})"
        if name in LIMITS:
            verb, path = route.split(" ")
            ids = ", ".join(re.findall(r"{(\w+)}", path))
            return f"Call({verb!r}, fill_path({path!r}, {ids}), body=limits)"
        fixed = {member: value for member, value in FIXED.get(name, {}).items() if value is not None}
        options = [f"locals() | {fixed!r}" if fixed else "locals()"]
        options += ["keyed=True"] if "idempotency-key" in headers(operation) else []
        options += ["repeatable=True"] if name in READING else []
        options += [f"accepted={NOT_READY[name]}"] if name in NOT_READY else []
        return f"Call.of({route!r}, {', '.join(options)})"

    def read_arguments(self, name: str, operation: Schema) -> list[Argument]:
        """Return the parameters of a method."""
        arguments = []
        for parameter in operation.get("parameters", ()):
            member, schema = parameter["name"], parameter["schema"]
            text = parameter.get("description") or schema.get("description") or ""
            if parameter["in"] == "header":
                header = member.lower()
                if header in HEADERS:
                    arguments.append(Argument(header.replace("-", "_"), "str", HEADERS[header] or text, required=False))
            elif member.endswith(".NAME"):
                arguments.append(Argument(member.removesuffix(".NAME"), "Mapping[str, str]", text, required=False))
            else:
                annotation = "Mapping[str, Any]" if member == "filter" else self.annotate(schema, for_request=True)
                arguments.append(Argument(python_name(member), annotation, text, required=bool(parameter.get("required"))))
        schema = self.read_body(operation)
        if name in LIMITS:
            return [*arguments, Argument("limits", "Mapping[str, float | None]", LIMITS[name], required=True)]
        if self.is_mapping(operation):
            return [
                *arguments,
                Argument(BODY, self.annotate(schema, for_request=True), schema.get("description", ""), required=True),
            ]
        for member, inner in schema.get("properties", {}).items():
            if member not in FIXED.get(name, {}):
                annotation, required = self.annotate(inner, for_request=True), member in schema.get("required", ())
                arguments.append(Argument(python_name(member), annotation, inner.get("description", ""), required))
        return arguments

    def read_body(self, operation: Schema) -> Schema:
        """Return the schema of a JSON body, or an empty one."""
        content = operation.get("requestBody", {}).get("content", {}).get("application/json")
        return resolve(content["schema"], self.schemas) if content else {}

    def is_mapping(self, operation: Schema) -> bool:
        """Return whether the body is a mapping of any names, which is one parameter."""
        schema = self.read_body(operation)
        return bool(schema) and "properties" not in schema

    def choose_result(self, name: str, operation: Schema, call: str) -> tuple[str, str, str]:
        """Return the type of a method's result, its decorator, and the statement that returns it."""
        if name in STREAMED:
            reader, event = EVENTS[name.partition(".")[0]]
            expression = f"return AsyncEventStream({reader}(self._session, {call}))"
            return f"AsyncEventStream[{event}]", "event_stream", expression
        contents = [content for _, content in successes(operation)]
        media_types = {media for content in contents for media in content}
        if not media_types:
            return "None", "operation", f"await self._session.send({call})"
        if media_types - {"application/json", "text/event-stream"}:
            return "AsyncDownload", "download", f"return AsyncDownload(self._session, {call})"
        if name in RETURNS:
            model = self.refer(RETURNS[name], for_request=False, module="models.")
            return model, "operation", f"return await self._session.read({call}, {model})"
        data, is_enveloped = self.read_data(operation)
        if data.get("type") != "array":
            model = self.annotate(data, for_request=False, module="models.")
            options = "" if is_enveloped else ", enveloped=False"
            return model, "operation", f"return await self._session.read({call}, {model}{options})"
        item = self.annotate(data["items"], for_request=False, module="models.")
        if any(parameter["name"] == "cursor" for parameter in operation.get("parameters", ())):
            return f"AsyncPages[{item}]", "listing", f"return AsyncPages(self._session, {call}, {item})"
        return f"Sequence[{item}]", "operation", f"return await self._session.read_list({call}, {item})"

    def read_data(self, operation: Schema) -> tuple[Schema, bool]:
        """Return the schema of a result, and whether it is the data of an envelope."""
        schema: Schema = successes(operation)[0][1]["application/json"]["schema"]
        data = resolve(schema, self.schemas)["properties"].get("data")
        return (schema, False) if data is None else (data, True)


def resolve(schema: Schema, schemas: Mapping[str, Schema]) -> Schema:
    """Return the schema that a body refers to, also if the body is optional."""
    references = [schema, *schema.get("anyOf", ())]
    return next((schemas[inner["$ref"].rpartition("/")[2]] for inner in references if "$ref" in inner), schema)


def headers(operation: Schema) -> set[str]:
    """Return the names of the headers that a route reads."""
    return {parameter["name"].lower() for parameter in operation.get("parameters", ()) if parameter["in"] == "header"}


def successes(operation: Schema) -> list[tuple[str, Schema]]:
    """Return status and content of the successful responses."""
    return [
        (status, response.get("content", {})) for status, response in operation["responses"].items() if status.startswith("2")
    ]


def model_name(schema: str) -> str:
    """Return the name of a result's class."""
    return NAMES.get(schema) or re.sub(r"(View|Out)$", "", schema)


def python_name(member: str) -> str:
    """Return the name of a field in Python."""
    return f"{member}_" if keyword.iskeyword(member) else member


def class_name(group: str) -> str:
    """Return the name of a group's class."""
    return {"questions": "AskedQuestions"}.get(group, group.title())


def words(group: str) -> str:
    return {"raptor": "the RAPTOR tree", "graph": "the knowledge graph"}.get(group, group)


def optional_type(annotation: str) -> str:
    return annotation if annotation.endswith("None") or annotation == "Any" else f"{annotation} | None"


def describe(operation: Schema, arguments: Sequence[Argument]) -> str:
    """Return the text of a method's docstring."""
    parts = [operation["summary"].rstrip(".") + "."]
    text = (operation.get("description") or "").strip()
    parts += [text] if text and text.rstrip(".") != parts[0].rstrip(".") else []
    lines = [f"    {argument.name}: {argument.description.rstrip('.')}." for argument in arguments if argument.description]
    parts += ["Args:\n" + "\n".join(lines)] if lines else []
    return "\n\n".join(parts)


def docstring(text: str, level: int) -> list[str]:
    """Return the lines of a docstring, wrapped; none without a text."""
    indent, lines = "    " * level, []
    for line in re.sub(r"(?<=\S)\n(?=[\w`(])", " ", text.replace("\\", "\\\\").replace('"""', "'''")).splitlines():
        start = line[: len(line) - len(line.lstrip())]
        hanging = start + ("    " if re.match(r" +\w+: ", line) else "")
        width = 122 - len(indent)
        lines += textwrap.wrap(line, width, subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False) or [""]
    if len(lines) == 1 and len(lines[0]) < 106:
        return [f'{indent}"""{lines[0]}"""']
    return [f'{indent}"""{lines[0]}', *(f"{indent}{line}".rstrip() for line in lines[1:]), f'{indent}"""'] if lines else []


def header(purpose: str) -> str:
    """Return the beginning of a module."""
    origin = "Written by `make client` from the OpenAPI description. Do not edit."
    return f'"""{purpose}\n\n{origin}\n"""\n\nfrom __future__ import annotations\n\n'
