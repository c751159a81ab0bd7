"""The table of plug-ins: each part loads, each folder is listed, and nothing loads a part that no setting asks for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import agentic_rag_backend.plugins
from agentic_rag_backend.errors import ConfigurationError
from agentic_rag_backend.plugins import PLUGINS, load_plugin

FOLDER = Path(agentic_rag_backend.plugins.__file__).parent


@pytest.mark.parametrize("name", PLUGINS)
def test_each_part_loads(name: str) -> None:
    assert callable(load_plugin(name))


def test_each_folder_is_in_the_table() -> None:
    folders = {path.parent.name for path in FOLDER.glob("*/__init__.py")}

    assert folders == {plugin.module.partition(".")[0] for plugin in PLUGINS.values()}


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "agentic_rag_backend.plugins.graphiti.search", None)

    with pytest.raises(ConfigurationError, match=r"GRAPHITI_SEARCH_ENABLED=true requires the extra 'server'"):
        load_plugin("fact_search")


def test_an_application_loads_no_part_that_nothing_asks_for(tmp_path: Path) -> None:
    program = (
        "import asyncio, sys\n"
        "from agentic_rag_backend.api.app import create_app\n"
        "from agentic_rag_backend.container import open_container\n"
        "from agentic_rag_backend.settings import Settings\n"
        "async def main():\n"
        "    async with open_container(Settings(_env_file=None, data_dir=sys.argv[1])) as container:\n"
        "        create_app(container)\n"
        "asyncio.run(main())\n"
        "print(*[name for name in sys.modules if name.startswith('agentic_rag_backend.plugins.')])\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=False, timeout=120
    )

    assert (result.returncode, result.stdout.strip()) == (0, ""), result.stderr
