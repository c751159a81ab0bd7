"""Imports of source code: the modules that a statement names, and the names that it brings into the file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

MAX_CHARACTERS = 2_000
"""Longer statements are cut."""
_QUOTED = re.compile(r"""["'<]([^"'<>\n]{1,200})["'>]""")
_WORD = re.compile(r"[^\W\d]\w*")
_LIST = re.compile(r"[{(]([^{}()]*)[})]")
_DOTTED = re.compile(r"[^\W\d][\w]*(?:(?:\.|::|\\)[^\W\d]\w*)*")
_SEPARATOR = re.compile(r"::|[./\\]")
_KEYWORDS = frozenset({"import", "use", "using", "extern", "crate", "static", "pub", "function", "const", "global", "type", "as"})
_SCRIPTS = frozenset({"javascript", "typescript"})


@dataclass(frozen=True, slots=True)
class Import:
    """``modules`` as the statement names them, and the full path of each name that it brings into the file."""

    modules: tuple[str, ...] = ()
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def read_import(text: str, language: str) -> Import:
    """Return the import that a statement of ``language`` makes."""
    text = text[:MAX_CHARACTERS]
    if language == "python":
        return _read_python_import(text)
    quoted = [_file_stem(path) if path[:1] in "./" else path for path in _QUOTED.findall(text)]
    if language in _SCRIPTS:
        module = quoted[-1:] if quoted else []
        return Import(tuple(module), _script_names(text, _last_part(module[0])) if module else {})
    if quoted:
        return Import(tuple(quoted), {_last_part(path): (_last_part(path),) for path in quoted} if language == "go" else {})
    return _read_dotted_import(text)


def _read_python_import(text: str) -> Import:
    names: dict[str, tuple[str, ...]] = {}
    text = " ".join(word for line in text.split("\n") for word in line.split("#", 1)[0].split())
    if not text.startswith("from"):
        modules = []
        for part in text.removeprefix("import").split(","):
            name_words = part.split()
            if name_words:
                modules.append(name_words[0])
                path = tuple(name_words[0].split("."))
                renamed = len(name_words) > 1  # import a.b as c
                names[name_words[-1] if renamed else path[0]] = path[-1:] if renamed else path[:1]
        return Import(tuple(modules), names)
    before, _, names_text = text.removeprefix("from").partition(" import ")
    module = before.strip().lstrip(".").strip()
    for part in names_text.strip("() ").split(","):
        name_words = part.split()
        if name_words and name_words[0].isidentifier():
            names[name_words[-1]] = (*module.split(".")[-1:], name_words[0]) if module else (name_words[0],)
    return Import((module,) if module else tuple(path[0] for path in names.values()), names)  # from . import a


def _script_names(text: str, module: str) -> dict[str, tuple[str, ...]]:
    names: dict[str, tuple[str, ...]] = {}
    list_match = _LIST.search(text)
    for part in list_match[1].split(",") if list_match else ():
        words = _WORD.findall(part)
        if words:
            names[words[-1]] = (module, words[0])
    before = text.split("from", 1)[0].split("{", 1)[0]
    words = [word for word in _WORD.findall(before) if word not in _KEYWORDS]
    if words and "from" in text:
        names[words[-1]] = (module,) if "*" in before else (module, words[-1])
    return names


def _read_dotted_import(text: str) -> Import:
    paths = [path for path in _DOTTED.findall(_LIST.sub("", text)) if path not in _KEYWORDS]
    if not paths:
        return Import()
    module_path = tuple(_SEPARATOR.split(paths[0]))
    list_match = _LIST.search(text)
    names: dict[str, tuple[str, ...]] = {}
    for part in list_match[1].split(",") if list_match else ():
        words = _WORD.findall(part)
        if words:
            names[words[-1]] = (module_path[-1], words[0])
    if not list_match:
        # The last part is a class, or a function of the module before it.
        names[paths[-1] if len(paths) > 1 else module_path[-1]] = (
            module_path[-1:] if module_path[-1][:1].isupper() else module_path[-2:]
        )
    return Import((paths[0],), names)


def _last_part(module: str) -> str:
    return _SEPARATOR.split(module)[-1] or module


def _file_stem(path: str) -> str:
    """Return the name of the file that a relative path imports."""
    return path.rstrip("/").rpartition("/")[2].partition(".")[0] or path
