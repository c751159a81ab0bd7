"""Scores that callers submitted: one row for each metric of a submission, without any text."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from sqlalchemy import Integer, and_, cast, func, insert, or_, select, tuple_
from sqlalchemy.engine import Connection

from agentic_rag_backend.domain.score_submission import MetricMean, ScoreGroup, SubmittedScore
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.domain.usage_report import Period
from agentic_rag_backend.stores.catalogue.operations import CataloguePart, lock_tenant, read, write
from agentic_rag_backend.stores.catalogue.pages import Page, check_limit, decode_cursor, encode_cursor, wrong_cursor
from agentic_rag_backend.stores.catalogue.tables import submitted_scores as scores

_SCOPE = "submitted scores"
_GROUP = (scores.c.day, scores.c.strategy, scores.c.configuration)
ScorePage = Page[tuple[ScoreGroup, Mapping[str, MetricMean]]]


def add(connection: Connection, tenant: TenantId, id: str, group: ScoreGroup, values: Mapping[str, SubmittedScore]) -> None:
    """Record the scores of one submission. `NotFound` if the tenant does not exist."""
    lock_tenant(connection, tenant)
    shared = {"tenant_id": tenant.value, "id": id, "day": group.day}
    shared |= {"strategy": group.strategy, "configuration": group.configuration}
    rows = [{**shared, "metric": name, "value": score.value, "computed": score.computed} for name, score in values.items()]
    if rows:
        connection.execute(insert(scores), rows)


def page(
    connection: Connection,
    tenant: TenantId,
    period: Period,
    *,
    limit: int,
    cursor: str | None = None,
    strategy: str | None = None,
    configuration: str | None = None,
) -> ScorePage:
    """Return the means of each day, strategy and configuration of a period, the newest day first."""
    selected = and_(scores.c.tenant_id == tenant.value, scores.c.day >= period.start, scores.c.day <= period.end)
    for column, value in ((scores.c.strategy, strategy), (scores.c.configuration, configuration)):
        if value is not None:
            selected = and_(selected, column == value)
    statement = select(*_GROUP).where(selected).group_by(*_GROUP)
    if cursor is not None:
        day, after_strategy, after_configuration = _read_cursor(cursor)
        later = tuple_(scores.c.strategy, scores.c.configuration) > tuple_(after_strategy, after_configuration)
        statement = statement.where(or_(scores.c.day < day, and_(scores.c.day == day, later)))
    ordered = statement.order_by(scores.c.day.desc(), scores.c.strategy, scores.c.configuration)
    groups = [ScoreGroup(*row) for row in connection.execute(ordered.limit(check_limit(limit) + 1))]
    shown = groups[:limit]
    means: dict[ScoreGroup, dict[str, MetricMean]] = {group: {} for group in shown}
    figures = (
        func.count(),
        func.sum(cast(scores.c.computed, Integer)),
        *(compute(scores.c.value) for compute in (func.avg, func.min, func.max)),
    )
    of_page = tuple_(*_GROUP).in_([(group.day, group.strategy, group.configuration) for group in shown])
    grouped = select(*_GROUP, scores.c.metric, *figures).where(selected, of_page).group_by(*_GROUP, scores.c.metric)
    for day, name, label, metric, count, computed, *values in connection.execute(grouped) if shown else ():
        means[ScoreGroup(day, name, label)][metric] = MetricMean(count, int(computed), *map(float, values))
    items = tuple((group, dict(sorted(means[group].items()))) for group in shown)
    if len(groups) <= limit:
        return Page(items)
    group = shown[-1]
    return Page(items, encode_cursor(_SCOPE, (group.day.isoformat(), group.strategy, group.configuration)))


def _read_cursor(cursor: str) -> tuple[date, str, str]:
    day, strategy, configuration = decode_cursor(_SCOPE, cursor, str, str, str)
    try:
        return date.fromisoformat(day), strategy, configuration
    except ValueError:
        raise wrong_cursor(cursor) from None


class SubmittedScoreCatalogue(CataloguePart):
    """Scores of answers that callers measured elsewhere."""

    add = write(add)
    page = read(page)
