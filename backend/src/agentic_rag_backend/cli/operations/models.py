"""``models list|pull|check``: the models that run in this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentic_rag_backend.cli.command import LocalSession
from agentic_rag_backend.cli.output import Output, table
from agentic_rag_backend.cli.progress import ProgressDisplay
from agentic_rag_backend.errors import AgenticRagError, ConfigurationError

if TYPE_CHECKING:
    from agentic_rag_backend.models.checking import ModelCheck
    from agentic_rag_backend.models.registry import KnownModel
    from agentic_rag_backend.settings import Settings


def list_models(session: LocalSession) -> None:
    """List the known models with their size, languages and licence."""
    models = [_describe_model(model, session.settings) for model in _known_models(session.settings)]
    session.output.present(models, _show_models)


def pull_model(
    session: LocalSession,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of a model, as 'models list' shows it.")],
    source: Annotated[
        Path | None,
        typer.Option("--from", metavar="FOLDER", help="Folder with the files, for a machine without access to the hub."),
    ] = None,
) -> None:
    """Download a model into DATA_DIR/models and verify its files. A repeated command continues an interrupted download."""
    from agentic_rag_backend.container.models import models_folder
    from agentic_rag_backend.container.private_folder import make_private
    from agentic_rag_backend.models.installation import Hub, LocalFolder, install_model

    settings = session.settings
    model = _find_model(settings, name)
    if not model.files:
        raise ConfigurationError(f"{name} is part of the installed packages; there is nothing to download")
    make_private(settings.data_dir)
    with ProgressDisplay(model.name, total=model.size_bytes, counted=False) as display:
        folder = install_model(
            model,
            models_folder(settings),
            Hub(settings.model_hub_url) if source is None else LocalFolder(source),
            lambda text, done, total: display.update(text, completed=done, total=total),
        )
    uses = {
        "encoder": f"set EMBEDDING_MODEL={model.name}, and run 'agentic-rag reindex' if there are documents",
        "reranker": "name the reranker cross_encoder in a search",
        "reader": "set CLAIM_VERIFIER=nli",
    }
    message = f"{model.name} is installed in {folder}. To use it, {uses[model.kind]}."
    session.output.present({"name": model.name, "folder": str(folder)}, lambda output, _: output.show(message))


async def check_models(
    session: LocalSession,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Name of a model; default: every installed model.")] = None,
) -> None:
    """Verify the files of installed models and try the models out. Fails if a model does not work."""
    checks = await _check_models(session.settings, name)
    session.output.present(checks, _show_checks)
    if any(check["state"] != "ok" for check in checks):
        raise typer.Exit(1)


def _show_models(output: Output, models: Sequence[Mapping[str, Any]]) -> None:
    columns = ["name", "kind", "state", "MB", "languages", "licence"]
    output.show(table(columns, [[model[column] for column in columns] for model in models]))
    for model in models:
        if model["checksums"] != "known":
            output.show(f"{model['name']}: its checksums are {model['checksums']}.")


def _show_checks(output: Output, checks: Sequence[Mapping[str, Any]]) -> None:
    columns = ["name", "state", "dimensions", "norm", "arithmetic", "CPU ms a passage"]
    output.show(table(columns, [[check.get(column, "") for column in columns] for check in checks]))


def _known_models(settings: Settings) -> list[KnownModel]:
    """Return the known models, and the configured reranker."""
    from agentic_rag_backend.models.registry import MODELS, reranker_of

    configured = reranker_of(settings.cross_encoder_model)
    return [*MODELS.values(), *([] if configured.name in MODELS else [configured])]


def _find_model(settings: Settings, name: str) -> KnownModel:
    from agentic_rag_backend.models.registry import known_model

    return next((model for model in _known_models(settings) if name in (model.name, model.repository)), None) or known_model(name)


def _describe_model(model: KnownModel, settings: Settings) -> dict[str, Any]:
    from agentic_rag_backend.container.models import models_folder
    from agentic_rag_backend.models.installation import has_files

    size = model.size_bytes
    installed = "installed" if has_files(model, models_folder(settings)) else "not installed"
    verified = all(file.sha256 for file in model.files)
    return {
        "name": model.name,
        "kind": model.kind,
        "state": installed if model.files else "bundled",
        "MB": "" if not size else round(size / 1e6, 1),
        "licence": model.licence or "unknown",
        "checksums": "known" if verified else "recorded at the first download",
        **asdict(model.facts),
        **({"labels": list(model.labels)} if model.labels else {}),
        "dimensions": model.facts.dimensions or "",
        "languages": ", ".join(model.facts.languages or ("many",)),
        "files": [
            {"address": f"{settings.model_hub_url}/{model.repository}/resolve/{model.revision}/{file.path}", **asdict(file)}
            for file in model.files
        ],
    }


async def _check_models(settings: Settings, name: str | None) -> list[dict[str, Any]]:
    """Return the results of each model, one after the other, so that their times are comparable."""
    from agentic_rag_backend.container.models import models_folder
    from agentic_rag_backend.models.installation import has_files

    if name is not None:
        return [await _try_model(settings, _find_model(settings, name))]
    models = [model for model in _known_models(settings) if has_files(model, models_folder(settings))]
    rows = [await _try_model(settings, model) for model in models]
    return rows if settings.embedding_model_path is None else [*rows, await _try_model(settings, None)]


async def _try_model(settings: Settings, model: KnownModel | None) -> dict[str, Any]:
    """Return the results of a model; None: the encoder of EMBEDDING_MODEL_PATH."""
    try:
        result = await _try_out(settings, model)
    except AgenticRagError as error:
        return {"name": model.name if model else str(settings.embedding_model_path), "state": error.message}
    return {
        "name": model.name if model else str(settings.embedding_model_path),
        "state": "ok",
        "dimensions": result.dimensions or "",
        "norm": "" if result.norm is None else round(result.norm, 4),
        "arithmetic": result.arithmetic,
        "CPU ms a passage": round(result.ms, 1),
    }


async def _try_out(settings: Settings, model: KnownModel | None) -> ModelCheck:
    from agentic_rag_backend.container.models import models_folder, open_encoder
    from agentic_rag_backend.models.checking import check_encoder, check_reader, check_reranker
    from agentic_rag_backend.models.installation import require_files

    if model is not None and model.kind == "reranker":
        return check_reranker(require_files(model, models_folder(settings)))
    if model is not None and model.kind == "reader":
        return await check_reader(model.name, require_files(model, models_folder(settings)))
    encoder = open_encoder(settings.model_copy(update={"embedding_threads": 1}), model)
    try:
        return await check_encoder(encoder)
    finally:
        await encoder.close()
