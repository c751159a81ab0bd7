"""Sessions of ONNX Runtime for encoders."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as failures

from agentic_rag_backend.errors import ConfigurationError
from agentic_rag_backend.memory import give_back
from agentic_rag_backend.models.embedding.onnx.exactness import multiplies_exactly
from agentic_rag_backend.models.embedding.onnx.integer_products import with_float_products, with_integer_products
from agentic_rag_backend.models.embedding.onnx.lookup import looked_up_first

Arithmetic = Literal["float32", "int8"]
_LOAD_FAILURES = (failures.Fail, failures.InvalidArgument, failures.InvalidGraph, failures.InvalidProtobuf, failures.NoModel)


class NoIntegerWeights(ConfigurationError):
    """A model has no int8 weights that can be multiplied as integers."""


def possible_arithmetic(arithmetic: Arithmetic | None) -> Arithmetic:
    """Return the arithmetic to try; "int8" for None, if this processor multiplies exactly.

    Raises:
        ConfigurationError: "int8" is required, and this processor multiplies inexactly.
    """
    if arithmetic == "float32" or multiplies_exactly():
        return arithmetic or "int8"
    if arithmetic is None:
        return "float32"
    raise ConfigurationError(
        "EMBEDDING_ARITHMETIC=int8 is impossible on this processor, which multiplies integers of 8 bits inexactly (x86 without"
        " VNNI does); set EMBEDDING_ARITHMETIC=float32"
    )


def open_sessions(
    path: Path, cores: int, arithmetic: Arithmetic
) -> tuple[onnxruntime.InferenceSession, onnxruntime.InferenceSession]:
    """Return a session on one thread and one on all cores. On a single core both are the same.

    A model's own integer products are computed in float32 if this processor multiplies inexactly: slower, but the same vectors.

    Raises:
        NoIntegerWeights: the model has no int8 weights for ``arithmetic``.
        ConfigurationError: the file is no model.
    """
    stored = path.read_bytes()
    rearranged = looked_up_first(stored)
    if not multiplies_exactly():
        rearranged = with_float_products(rearranged)
    if arithmetic == "int8":
        integers = with_integer_products(rearranged)
        if integers is rearranged:
            raise NoIntegerWeights(f"EMBEDDING_ARITHMETIC=int8 needs a model with int8 weights; {path} has none")
        rearranged = integers
    # From bytes, the runtime cannot load weights in separate files. So a model that is not rearranged is loaded from its path.
    model = str(path) if rearranged is stored else rearranged
    del stored, rearranged
    try:
        single_session = open_session(model, 1)
        return single_session, open_session(model, cores) if cores > 1 else single_session
    except _LOAD_FAILURES as error:
        raise ConfigurationError(f"{path} is not a model that onnxruntime {onnxruntime.__version__} reads: {error}") from error
    finally:
        del model
        give_back()  # the temporary memory of loading: 70 MB in small pieces


def open_session(model: str | bytes, threads: int) -> onnxruntime.InferenceSession:
    """Return a session of a model, given by its path or its bytes."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Waiting threads must not spin: the rest of the pipeline needs the cores (measured: same time, half the CPU).
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    # The session keeps the bytes to load them again with another provider; there is no other provider.
    session._model_bytes = None
    return session
