from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from agentic_rag_backend.memory import pause_collection


def test_collection_pauses_and_goes_on_also_after_an_error() -> None:
    assert gc.isenabled()
    with pause_collection():
        assert not gc.isenabled()
        with pause_collection():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ValueError, match="in the start"), pause_collection():
        raise ValueError("in the start")
    assert gc.isenabled()


def test_a_start_that_is_over_leaves_what_it_made_out_of_collections() -> None:
    # In a separate process, because freezing objects cannot be undone.
    code = """
import gc
from agentic_rag_backend.memory import pause_collection, serve_from_now
before = gc.get_threshold()
with pause_collection():
    made = [[] for _ in range(1000)]
    serve_from_now()
    assert gc.isenabled()
    assert gc.get_threshold() > before, gc.get_threshold()
    assert gc.get_freeze_count() > 1000, gc.get_freeze_count()
assert gc.isenabled()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
