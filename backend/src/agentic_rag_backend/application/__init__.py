"""The application: what callers can do, for every way in. The HTTP API, the library and the command line call it.

A service method has the caller as its first argument. The caller has the tenant, the scopes and the flags.
"""

from __future__ import annotations

from dataclasses import dataclass

from agentic_rag_backend.application.admin import AdminService, WorkService
from agentic_rag_backend.application.documents import DocumentService
from agentic_rag_backend.application.evaluations import EvaluationService
from agentic_rag_backend.application.feedback import AnswerFeedback
from agentic_rag_backend.application.graph import GraphService
from agentic_rag_backend.application.labelling import LabellingService
from agentic_rag_backend.application.named_sets import DocumentSets
from agentic_rag_backend.application.questions import AnswerWriting, SearchService
from agentic_rag_backend.application.scores import SubmittedScores
from agentic_rag_backend.application.tenant_experiments import TenantExperiments
from agentic_rag_backend.application.tenant_tuning import TenantTuning
from agentic_rag_backend.container import Container


@dataclass(frozen=True, slots=True)
class Application:
    """The services of the application. They have no state of their own."""

    container: Container

    @property
    def search(self) -> SearchService:
        """Searches, and explains searches."""
        return SearchService(self.container)

    @property
    def answers(self) -> AnswerWriting:
        """Answers questions."""
        return AnswerWriting(self.container)

    @property
    def labels(self) -> LabellingService:
        """Labels texts."""
        return LabellingService(self.container)

    @property
    def feedback(self) -> AnswerFeedback:
        """Takes and lists feedback on answers."""
        return AnswerFeedback(self.container)

    @property
    def scores(self) -> SubmittedScores:
        """Takes scores of answers, and reports their means."""
        return SubmittedScores(self.container)

    @property
    def documents(self) -> DocumentService:
        """Accepts, changes, reads and deletes documents."""
        return DocumentService(self.container)

    @property
    def document_sets(self) -> DocumentSets:
        """Names selections of documents, in which searches can stay."""
        return DocumentSets(self.container)

    @property
    def graph(self) -> GraphService:
        """Reads and edits the knowledge graph and its themes."""
        return GraphService(self.container)

    @property
    def work(self) -> WorkService:
        """Reads, cancels and retries jobs."""
        return WorkService(self.container)

    @property
    def admin(self) -> AdminService:
        """Describes and changes the tenant's deployment: flags, ontology, rebuilds and comparisons."""
        return AdminService(self.container)

    @property
    def evaluations(self) -> EvaluationService:
        """Measures configurations on datasets of questions."""
        return EvaluationService(self.container)

    @property
    def experiments(self) -> TenantExperiments:
        """Compares two configurations on requests."""
        return TenantExperiments(self.container)

    @property
    def tuning(self) -> TenantTuning:
        """Proposes values for the tenant's searches."""
        return TenantTuning(self.container)
