"""Routes of protocols that have an error form of their own."""

from __future__ import annotations

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse

from agentic_rag_backend.api.requests.bodies import Handler, JsonRoute
from agentic_rag_backend.errors import AgenticRagError, InvalidRequest
from agentic_rag_backend.wording import message_of


class ProtocolRoute(JsonRoute):
    """A route whose errors have another form than problems."""

    @staticmethod
    def respond_with_error(error: AgenticRagError) -> JSONResponse:
        """Return an error in the form of the protocol."""
        raise NotImplementedError

    def get_route_handler(self) -> Handler:
        """Return the handler that converts errors."""
        handle = super().get_route_handler()

        async def converted(request: Request) -> Response:
            try:
                return await handle(request)
            except AgenticRagError as error:
                return self.respond_with_error(error)
            except RequestValidationError as error:
                problems = (f"{'.'.join(map(str, item['loc'][1:]))}: {message_of(item)}" for item in error.errors())
                return self.respond_with_error(InvalidRequest("; ".join(problems)))

        return converted
