"""The tree of commands. Each entry is a command or a group of commands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import typer

from agentic_rag_backend.cli.command import Run, command, local_command
from agentic_rag_backend.cli.commands import (
    build_graph,
    demo,
    documents,
    feedback,
    graph,
    ingest,
    label,
    mcp,
    questions,
    quota_commands,
    status,
    tenants,
    themes,
    usage,
)
from agentic_rag_backend.cli.commands.evaluation import diversity, evaluate, question_sets, tune
from agentic_rag_backend.cli.operations import doctor, maintenance, models, serve
from agentic_rag_backend.cli.resources import delete_command, list_command, post_command, show_command
from agentic_rag_backend.plugins import load_plugin


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandGroup:
    """Commands and groups under one name."""

    help: str
    commands: Mapping[str, Run | CommandGroup]


COMMUNITIES = themes.describe_themes("/communities", size="entity_count", heading="#entities", metavar="COMMUNITY_ID")
CommunityLevel = Annotated[int | None, typer.Option("--level", help="0 is the coarsest.")]
NODES = themes.describe_themes("/raptor", size="passage_count", heading="#passages", metavar="NODE_ID")
NodeLevel = Annotated[int | None, typer.Option("--level", help="1: clusters of passages.")]
JobState = Annotated[str | None, typer.Option("--state", help="queued, running, succeeded, partial, failed or cancelled.")]
JobKind = Annotated[str | None, typer.Option("--kind", help="ingest, delete, rebuild, raptor, import, evaluate, …")]

COMMANDS: Mapping[str, Run | CommandGroup] = {
    "serve": serve.serve_api,
    "worker": serve.run_worker,
    "demo": demo.run_demo,
    "ingest": command(ingest.ingest_sources, work=True),
    "search": command(questions.search_documents),
    "ask": command(questions.ask_question),
    "label": command(label.label_texts),
    "build-graph": command(build_graph.build_graph, work=True),
    "analyze-diversity": command(diversity.analyze_diversity),
    "benchmark": local_command(evaluate.benchmark_strategies),
    "export": command(tenants.export_tenant, operator=True),
    "import": command(tenants.import_tenant, operator=True, work=True),
    "reindex": local_command(maintenance.reindex_vectors),
    "optimize-planner": load_plugin("optimize_planner"),
    "migrate": local_command(maintenance.migrate_stores),
    "status": command(status.show_status),
    "usage": command(usage.show_usage),
    "mcp": command(mcp.serve_tools, work=True),
    "doctor": doctor.check_deployment,
    "config": maintenance.show_config,
    "documents": CommandGroup(
        help="Show, change and delete documents.",
        commands={
            "list": command(documents.list_documents),
            "show": command(documents.show_document),
            "update": command(documents.update_document, work=True),
            "chunk": command(documents.chunk_document, work=True),
            "delete": command(documents.delete_document, work=True),
        },
    ),
    "chunk": CommandGroup(help="Chunking of documents.", commands={"preview": command(documents.preview_chunks)}),
    "jobs": CommandGroup(
        help="Show, cancel and retry jobs.",
        commands={
            "list": list_command(status.JOBS, "List jobs, newest first.", state=JobState, kind=JobKind),
            "show": show_command(status.JOBS, "Show a job."),
            "cancel": post_command(status.JOBS, "cancel", "Request the cancellation of a job."),
            "retry": command(status.retry_job, work=True),
            "watch": command(status.watch_job, work=True),
        },
    ),
    "communities": CommandGroup(
        help="Communities: the themes of the documents.",
        commands={
            "list": list_command(COMMUNITIES, "List the communities of the current generation.", level=CommunityLevel),
            "show": show_command(
                COMMUNITIES,
                "Show a community with its summary and findings.",
                themes.render_theme("id", "level", "parent", "entity_count", "generation", "keywords", "stale"),
            ),
            "rebuild": command(themes.rebuild_communities, work=True),
        },
    ),
    "raptor": CommandGroup(
        help="RAPTOR tree: summaries of clusters of passages.",
        commands={
            "list": list_command(NODES, "List the nodes of the current tree.", level=NodeLevel),
            "show": show_command(
                NODES,
                "Show a node with its summary and findings.",
                themes.render_theme("id", "level", "passage_count", "children", "generation", "keywords", "stale", "written_by"),
            ),
            "status": command(themes.show_tree_status),
            "rebuild": command(themes.rebuild_tree, work=True),
        },
    ),
    "graph": CommandGroup(
        help="The knowledge graph: entities, paths, contradictions, export, edits.",
        commands={
            "entity": show_command(
                graph.ENTITIES,
                "Show an entity: its names, relationships and chunks. Several entities of one name are listed with their ids.",
                graph.render_entity,
                limit=(graph.EntityLimit, 20),
                relation_types=(graph.RelationTypes, None),
                as_of=(graph.AsOf, None),
            ),
            "paths": command(graph.show_paths),
            "contradictions": command(graph.show_contradictions),
            "export": command(graph.export_graph),
            "merge": command(graph.merge_entities),
            "split": command(graph.split_entity),
            "rename": command(graph.rename_entity),
            "delete": delete_command(
                graph.ENTITIES,
                "Delete an entity with its mentions and relationships. Documents stay.",
                graph.follow_edit,
                reason=(graph.Reason, ""),
            ),
            "edits": list_command(graph.EDITS, "List the edits of the graph, the newest first."),
            "undo": delete_command(graph.EDITS, "Undo an edit. Later edits stay in effect.", graph.follow_edit),
        },
    ),
    "evaluate": CommandGroup(
        help="Measure configurations on datasets of questions.",
        commands={
            "run": command(evaluate.run_evaluation, work=True),
            "compare": command(evaluate.compare_runs),
            "report": command(evaluate.report_run),
            "runs": list_command(evaluate.RUNS, "List runs, newest first."),
            "delete": delete_command(evaluate.RUNS, "Delete a run that has ended.", question_sets.note_deletion),
            "questions": CommandGroup(
                help="Questions that users asked, if the tenant keeps them.",
                commands={
                    "list": list_command(
                        question_sets.QUESTIONS, "List questions, newest first.", rating=question_sets.QuestionRating
                    ),
                    "delete": delete_command(question_sets.QUESTIONS, "Delete a question.", question_sets.note_deletion),
                    "clear": command(question_sets.forget_questions),
                },
            ),
            "datasets": CommandGroup(
                help="Datasets of questions with expected answers and evidence.",
                commands={
                    "list": list_command(question_sets.DATASETS, "List datasets, newest first."),
                    "show": show_command(question_sets.DATASETS, "Show a dataset."),
                    "upload": command(question_sets.upload_dataset),
                    "generate": command(question_sets.generate_dataset, work=True),
                    "from-questions": command(question_sets.take_questions),
                    "export": command(question_sets.export_dataset),
                    "delete": delete_command(
                        question_sets.DATASETS, "Delete a dataset with its runs.", question_sets.note_deletion
                    ),
                },
            ),
        },
    ),
    "tune": CommandGroup(
        help="Propose better values for searches, learned from datasets and feedback.",
        commands={
            "run": command(tune.propose_values, work=True),
            "list": list_command(tune.PROPOSALS, "List proposals, newest first."),
            "show": show_command(tune.PROPOSALS, "Show a proposal with its evidence.", tune.show_proposal),
            "accept": command(tune.accept_proposal),
            "rollback": command(tune.roll_back_proposal),
            "delete": delete_command(tune.PROPOSALS, "Delete a proposal that is not in use.", question_sets.note_deletion),
        },
    ),
    "tenants": CommandGroup(
        help="Tenants and their keys; requires the operator's key.",
        commands={
            "create": command(tenants.create_tenant, operator=True),
            "list": command(tenants.list_tenants, operator=True),
            "change": command(tenants.change_tenant, operator=True),
            "suspend": command(tenants.suspend_tenant, operator=True),
            "resume": command(tenants.resume_tenant, operator=True),
            "delete": command(tenants.delete_tenant, operator=True),
            "usage": command(usage.list_tenants_usage, operator=True),
            "quota": CommandGroup(
                help="Limits of a tenant and of its keys.",
                commands={
                    "show": command(quota_commands.show_quota, operator=True),
                    "set": command(quota_commands.set_quota, operator=True),
                },
            ),
            "keys": CommandGroup(
                help="Keys of a tenant.",
                commands={
                    "list": command(tenants.list_keys, operator=True),
                    "create": command(tenants.create_key, operator=True),
                    "rotate": command(tenants.rotate_key, operator=True),
                    "revoke": command(tenants.revoke_key, operator=True),
                },
            ),
        },
    ),
    "feedback": CommandGroup(
        help="Feedback on answers.",
        commands={
            "list": list_command(
                feedback.FEEDBACK,
                "List feedback, newest first.",
                rating=feedback.RatingOption,
                strategy=feedback.StrategyOption,
            ),
            "export": command(feedback.export_feedback),
        },
    ),
    "features": CommandGroup(
        help="Feature flags of a tenant.",
        commands={
            "show": list_command(status.FLAGS, "Show each flag's value, default and source."),
            "set": command(status.set_feature),
        },
    ),
    "models": CommandGroup(
        help="Encoders, rerankers and readers that run in this process.",
        commands={
            "list": local_command(models.list_models),
            "pull": local_command(models.pull_model),
            "check": local_command(models.check_models),
        },
    ),
}


def add_commands(app: typer.Typer, commands: Mapping[str, Run | CommandGroup]) -> None:
    """Add commands and groups to ``app``. Help lists commands before groups."""
    for name, entry in commands.items():
        if isinstance(entry, CommandGroup):
            group = typer.Typer(name=name, help=entry.help, no_args_is_help=True)
            add_commands(group, entry.commands)
            app.add_typer(group)
        else:
            app.command(name)(entry)
