"""``agentic-rag``: commands and exit codes (0 success, 1 failure, 2 wrong usage)."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from pydantic import ValidationError
from typer.exceptions import Abort, TyperException

from agentic_rag_backend import __version__
from agentic_rag_backend.cli.command import wants_traceback
from agentic_rag_backend.cli.command_tree import COMMANDS, add_commands
from agentic_rag_backend.cli.output import Output
from agentic_rag_backend.cli.progress import UNFINISHED, CommandStopped
from agentic_rag_backend.errors import AgenticRagError, ConfigurationError, InvalidRequest, PayloadTooLarge
from agentic_rag_backend.wording import describe_value, message_of

FAILED, USAGE, INTERRUPTED = 1, 2, 130

app = typer.Typer(
    name="agentic-rag",
    help="Graph-backed retrieval with checked citations: ingest documents and ask questions.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _declare_root(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
) -> None:
    """Graph-backed retrieval with checked citations: ingest documents and ask questions."""


add_commands(app, COMMANDS)


def run(arguments: Sequence[str]) -> int:
    """Run one invocation and return its exit code. Every error is one line without a traceback."""
    output = Output(as_json="--json" in arguments)
    try:
        code = typer.main.get_command(app)(args=list(arguments), prog_name="agentic-rag", standalone_mode=False)
    except AgenticRagError as error:
        output.error(error.code, error.message)
        return USAGE if isinstance(error, (InvalidRequest, PayloadTooLarge, ConfigurationError)) else FAILED
    except TyperException as error:
        return _report_misuse(error, output)
    except CommandStopped as stop:
        return _report_interruption(stop.message, output)
    except (KeyboardInterrupt, Abort):
        return _report_interruption(UNFINISHED, output)
    except BrokenPipeError:
        # The reader of stdout has closed it, as `| head` does.
        sys.stdout = open("/dev/null", "w", encoding="utf-8")  # noqa: PTH123, SIM115 - for the interpreter's last flush
        return FAILED
    except Exception as error:  # the boundary of the command line, like the HTTP handler of a server
        if wants_traceback():
            raise
        output.error("internal_error", f"an unexpected {type(error).__name__}: {error} (LOG_LEVEL=debug shows the traceback)")
        return FAILED
    return code if isinstance(code, int) else 0


def _report_interruption(message: str, output: Output) -> int:
    output.error("interrupted", message) if output.as_json else output.note(message)
    return INTERRUPTED


def _report_misuse(error: TyperException, output: Output) -> int:
    message = error.format_message()
    if type(error).__name__ == "NoArgsIsHelpError":
        typer.echo(message)
        return USAGE
    output.error("usage", _describe_refusal(error) or message)
    return USAGE


def _describe_refusal(error: TyperException) -> str | None:
    """Return the message for a value that typer refused by its type or range. Typer checks both with pydantic."""
    parameter = getattr(error, "param", None)
    if not isinstance(error.__cause__, ValidationError) or parameter is None:
        return None
    problem = error.__cause__.errors(include_url=False)[0]
    name = parameter.metavar if parameter.param_type_name == "argument" else max(parameter.opts, key=len)
    return f"{name} {message_of(problem)}; got {describe_value(problem['input'])}"


def main() -> None:
    """Run the command line of this process."""
    code = run(sys.argv[1:])
    if code == INTERRUPTED:
        # The stores are closed. A normal exit would wait for the threads of a model.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
