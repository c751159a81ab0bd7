"""Clients of the stores of DATA_DIR, opened in this process: the application of a server, without a socket.

All commands use the HTTP API. Here the client has an operator's key that is created for this invocation, and it names the tenant
as an operator does. No route has a special case for local callers.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from pydantic import SecretStr

from agentic_rag_backend.errors import StoreLocked, StoreUnavailable
from agentic_rag_backend.memory import pause_collection

if TYPE_CHECKING:
    from agentic_rag_backend.cli.session.client import Client
    from agentic_rag_backend.container import Container
    from agentic_rag_backend.settings import Settings

_ORIGIN = "http://in-process"


@asynccontextmanager
async def open_application(
    settings: Settings, tenant: str | None, *, work: bool, operator: bool = False, temporary: bool = False
) -> AsyncIterator[tuple[Container, Client]]:
    """Open the stores and yield the container and a client that acts for ``tenant``.

    Args:
        tenant: name or id. None: the default tenant, which is created if missing.
        work: run jobs in this process while the client is used.
        operator: act for no tenant.
        temporary: create ``tenant`` under a unique name, and remove it from every store at the end.

    Raises:
        StoreLocked: another process has DATA_DIR open.
        NotFound: the tenant does not exist.
    """
    key = secrets.token_urlsafe(48)
    async with AsyncExitStack() as stack:
        with pause_collection():
            import httpx2

            from agentic_rag_backend.api.app import create_app
            from agentic_rag_backend.api.in_process import InProcessTransport
            from agentic_rag_backend.cli.session.client import Client
            from agentic_rag_backend.library import choose_tenant

            opening = open_stores(settings.model_copy(update={"operator_key": SecretStr(key)}), work=work)
            container = await stack.enter_async_context(opening)
            app = create_app(container)
            stack.push_async_callback(app.state.answer_streams.close)
            transport = InProcessTransport(app)
        headers = {"X-API-Key": key}
        if temporary:
            tenant_created = await container.tenants.create(f"{tenant or 'temporary'}-{secrets.token_hex(4)}")
            stack.push_async_callback(container.tenants.delete, tenant_created.id)
            headers["X-Tenant-Id"] = tenant_created.id.value
        elif not operator:
            headers["X-Tenant-Id"] = (await choose_tenant(container, tenant)).id.value
        # Without a timeout: the application limits its requests.
        async with httpx2.AsyncClient(transport=transport, base_url=_ORIGIN, headers=headers, timeout=None) as http:
            yield container, Client(http, where=f"DATA_DIR {settings.data_dir}", in_process=True)


@asynccontextmanager
async def open_stores(settings: Settings, *, work: bool) -> AsyncIterator[Container]:
    """Open the container. An unusable folder is reported as such.

    Raises:
        StoreLocked: another process has DATA_DIR open.
        StoreUnavailable: DATA_DIR cannot be read or written.
    """
    async with AsyncExitStack() as stack:
        try:
            with pause_collection():
                from agentic_rag_backend.container import open_container

                container = await stack.enter_async_context(open_container(settings, work=work))
        except StoreLocked as error:
            way_out = "stop that process, or choose another folder with --data-dir or DATA_DIR"
            raise StoreLocked(f"DATA_DIR {settings.data_dir.absolute()} is in use: {way_out} ({error.message})") from error
        except OSError as error:
            raise StoreUnavailable(f"DATA_DIR {settings.data_dir} cannot be used: {error.strerror or error}") from error
        yield container
