"""Read, check and fill prompt files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from agentic_rag_backend.errors import ConfigurationError, InvalidRequest
from agentic_rag_backend.language.prompt_marks import FENCES, neutralise_fences

MAX_PROMPT_CHARACTERS = 32_000
MAX_OCCURRENCES = 2
"""Most occurrences of one placeholder in a prompt."""
_PLACEHOLDER = re.compile(r"\{\{\s*([a-z_]+)\s*\}\}")
_HEADER = re.compile(r"\A---\r?\n(.*?)\r?\n---\r?\n", re.DOTALL)
_SECTIONS = re.compile(r"\A\s*# System[ \t]*\n(?P<system>.*?)^# User[ \t]*\n(?P<user>.*)\Z", re.DOTALL | re.MULTILINE)
_UNQUOTABLE = re.compile(r"[\s<>\"]+")
_BRACKETED_NUMBER = re.compile(r"\[(\s*\d[\d\s,;–-]*)\]")


@dataclass(frozen=True, slots=True)
class Prompt:
    """A checked prompt. ``system`` and ``user`` are templates; `render` fills them."""

    name: str
    version: str
    description: str
    system: str
    user: str

    @property
    def id(self) -> str:
        """Name and version, such as ``answer@1``: the key of cached replies and of usage counts."""
        return f"{self.name}@{self.version}"

    @property
    def placeholders(self) -> frozenset[str]:
        """The names between double braces, in both sections."""
        return frozenset(_PLACEHOLDER.findall(self.system) + _PLACEHOLDER.findall(self.user))

    def render(self, values: Mapping[str, str]) -> tuple[str, str]:
        """Return (system, user) with every placeholder replaced, in one pass: braces inside a value stay as they are.

        Raises:
            ConfigurationError: the prompt asks for a value that is not given.
        """
        missing_values = sorted(self.placeholders - set(values))
        if missing_values:
            raise ConfigurationError(
                f"prompt {self.id} asks for {{{{{missing_values[0]}}}}}, which is not among {', '.join(sorted(values)) or 'none'}"
            )
        system = _PLACEHOLDER.sub(lambda match: values[match[1]], self.system)
        user = _PLACEHOLDER.sub(lambda match: values[match[1]], self.user)
        return system.strip(), user.strip()


def fence(name: str, text: str, *, attributes: Mapping[str, str | int] | None = None) -> str:
    """Wrap untrusted ``text`` so that nothing inside it can end the fence or look like a marker of ours.

    The fence is ``<name …>`` … ``</name>``. Inside, the tags of all fences that prompts use are neutralised
    (`neutralise_fences`), and a bracketed number such as ``[3]`` becomes ``(3)``. Attribute values lose quotes, angle
    brackets and newlines. The adapter of the language model neutralises the tokens of chat templates in all messages.

    Raises:
        ValueError: ``name`` is not in `FENCES` (a programming error).
    """
    if name not in FENCES:
        raise ValueError(f"the fences of prompts are {', '.join(FENCES)}; got {name!r}")
    attribute_text = "".join(
        f' {key}="{_UNQUOTABLE.sub(" ", without_markers(str(value))).strip()}"' for key, value in (attributes or {}).items()
    )
    return f"<{name}{attribute_text}>\n{without_markers(neutralise_fences(text)).strip()}\n</{name}>"


def without_markers(text: str) -> str:
    """Return ``text`` with each bracketed number, such as ``[3]``, in parentheses. The length stays."""
    return _BRACKETED_NUMBER.sub(r"(\1)", text)


def parse(text: str, *, name: str = "custom", required: Collection[str] = (), allowed: Collection[str] | None = None) -> Prompt:
    """Return the prompt written in ``text``: a file with header and sections, or plain text, which is all ``# User``.

    Args:
        text: at most 32,000 characters.
        name: used where the header gives none.
        required: placeholders that must occur.
        allowed: placeholders that may occur; None: any.

    Raises:
        InvalidRequest: too long, empty, a section or required placeholder missing, an unknown placeholder, or one that occurs
            more than `MAX_OCCURRENCES` times.
    """
    if len(text) > MAX_PROMPT_CHARACTERS:
        raise InvalidRequest(f"a prompt has at most {MAX_PROMPT_CHARACTERS} characters; this one has {len(text)}")
    header, body = _read_header(text)
    sections = _SECTIONS.match(body)
    if sections is None and header:
        raise InvalidRequest(f"prompt {name!r} must have the sections '# System' and '# User', in this order")
    system, user = (sections["system"], sections["user"]) if sections else ("", body)
    prompt = Prompt(
        header.get("name", name), header.get("version", "1"), header.get("description", ""), system.strip(), user.strip()
    )
    # A placeholder is a few characters, and the passages are thousands of tokens, which somebody pays for.
    placeholder_counts = Counter(_PLACEHOLDER.findall(prompt.system) + _PLACEHOLDER.findall(prompt.user))
    for often, times in placeholder_counts.items():
        if times <= MAX_OCCURRENCES:
            continue
        raise InvalidRequest(
            f"prompt {name!r} may contain the placeholder {{{{{often}}}}} at most {MAX_OCCURRENCES} times; it has {times}"
        )
    if not prompt.user:
        raise InvalidRequest(f"prompt {name!r} is empty")
    missing_placeholders = sorted(set(required) - prompt.placeholders)
    if missing_placeholders:
        raise InvalidRequest(f"prompt {name!r} must contain the placeholder {{{{{missing_placeholders[0]}}}}}")
    unknown = sorted(prompt.placeholders - set(allowed)) if allowed is not None else []
    if unknown:
        raise InvalidRequest(
            f"prompt {name!r} has the unknown placeholder {{{{{unknown[0]}}}}}; known are {', '.join(sorted(allowed or ()))}"
        )
    return prompt


def read_file(path: Path, *, required: Collection[str] = (), allowed: Collection[str] | None = None) -> Prompt:
    """Return the prompt in a file of the operator's, such as ``DUAL_LEVEL_PROMPT_FILE``.

    Raises:
        ConfigurationError: it cannot be read, is not UTF-8, or is not a prompt; the message names the file and why.
    """
    try:
        return parse(path.read_text(encoding="utf-8"), name=path.stem, required=required, allowed=allowed)
    except OSError as error:
        raise ConfigurationError(f"prompt file {path} cannot be read: {error.strerror or type(error).__name__}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"prompt file {path} is not UTF-8: byte {error.start}") from error
    except InvalidRequest as error:
        raise ConfigurationError(f"prompt file {path}: {error.message}") from error


@cache
def built_in(name: str) -> Prompt:
    """Return the prompt of that name shipped with the package.

    Raises:
        ConfigurationError: there is none of that name.
    """
    if name not in built_in_names():
        raise ConfigurationError(f"no prompt is named {name!r}; there are {', '.join(built_in_names())}")
    return parse(files(__package__).joinpath(f"{name}.md").read_text(encoding="utf-8"), name=name)


@cache
def built_in_names() -> tuple[str, ...]:
    """Return the names of the prompts shipped with the package, sorted."""
    entries = (Path(entry.name) for entry in files(__package__).iterdir())
    return tuple(sorted(entry.stem for entry in entries if entry.suffix == ".md"))


def _read_header(text: str) -> tuple[dict[str, str], str]:
    match = _HEADER.match(text)
    if match is None:
        return {}, text
    pairs = (line.partition(":") for line in match[1].splitlines() if ":" in line)
    return {key.strip(): value.strip() for key, _, value in pairs}, text[match.end() :]
