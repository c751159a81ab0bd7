"""`infra/install.py` installs uv from the lock file and gives it pip's settings for package indexes."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def program(root: Path) -> ModuleType:
    """Return ``infra/install.py`` as a module."""
    spec = importlib.util.spec_from_file_location("install", root / "infra" / "install.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_settings_of_pip_are_read_by_precedence(program: ModuleType) -> None:
    listed = """:env:.find-links='/wheels'
:env:.disable-pip-version-check='1'
global.index-url='https://global.example/simple'
global.timeout='20'
install.index-url='https://install.example/simple'
download.index-url='https://download.example/simple'
"""
    expected = {"index-url": "https://install.example/simple", "timeout": "20", "find-links": "/wheels"}
    assert program.pip_settings(listed) == {**expected, "disable-pip-version-check": "1"}


def test_uv_uses_the_indexes_of_pip(program: ModuleType) -> None:
    settings = {
        "index-url": "https://one.example/simple",
        "extra-index-url": "https://two.example/simple\nhttps://three.example/simple",
        "find-links": "/wheels\n/more-wheels",
        "trusted-host": "one.example",
        "cert": "/certificates.pem",
        "disable-pip-version-check": "1",
    }
    assert program.uv_variables(settings) == {
        "UV_DEFAULT_INDEX": "https://one.example/simple",
        "UV_INDEX": "https://two.example/simple https://three.example/simple",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_FIND_LINKS": "/wheels,/more-wheels",
        "UV_INSECURE_HOST": "one.example",
        "SSL_CERT_FILE": "/certificates.pem",
    }


def test_uv_itself_is_installed_with_its_hashes(program: ModuleType) -> None:
    lines = program.requirement(program.LOCK_OF_UV.read_text(encoding="utf-8"), "uv").splitlines()
    assert re.match(r"uv==[\d.]+ ", lines[0])
    assert len([line for line in lines if "--hash=sha256:" in line]) > 5
    assert not [line for line in lines[1:] if not line.startswith("    ")]
