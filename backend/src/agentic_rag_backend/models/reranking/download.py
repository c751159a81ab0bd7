"""Finds the files of a cross-encoder: in a folder, or on the model hub."""

from __future__ import annotations

from pathlib import Path

from agentic_rag_backend.errors import ModelUnavailable
from agentic_rag_backend.models.embedding.weights import MODEL_FILE, TOKENIZER_FILE

REMEDY = f"set CROSS_ENCODER_MODEL_PATH to a folder with {MODEL_FILE} and {TOKENIZER_FILE}"
_SOURCES = {MODEL_FILE: f"onnx/{MODEL_FILE}", TOKENIZER_FILE: TOKENIZER_FILE}
"""Path in a repository of the hub by file name: the layout that exported models have there."""


def download(repository: str, folder: Path) -> Path:
    """Return the folder below ``folder`` with the files of a repository. Files that are there are not downloaded again.

    Raises:
        ModelUnavailable: a file cannot be downloaded.
    """
    # Only needed here, and slow to import.
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    target = folder / repository.replace("/", "--")
    for name, source in _SOURCES.items():
        if (target / name).is_file():
            continue
        try:
            held = Path(hf_hub_download(repository, source, local_dir=target))
        except LocalEntryNotFoundError as error:
            raise ModelUnavailable(f"the model hub, which has {repository!r}, cannot be reached; {REMEDY}") from error
        except (HfHubHTTPError, HFValidationError, OSError, ValueError) as error:
            raise ModelUnavailable(
                f"{source} of {repository!r} cannot be downloaded: {type(error).__name__}; {REMEDY}"
            ) from error
        if held != target / name:
            held.replace(target / name)
    return target
