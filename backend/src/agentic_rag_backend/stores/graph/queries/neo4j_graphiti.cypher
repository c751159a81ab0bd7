// What Graphiti's searches show: by uuid, within the tenant, in the order asked, as maps in one list. Moments are numbers: making
// the driver's own kind of them took a third of a search's time.
// name: graphiti_nodes
UNWIND range(0, size($uuids) - 1) AS place
MATCH (e:Entity {uuid: $uuids[place], group_id: $tenant}) USING INDEX SEEK e:Entity(uuid)
WITH e, min(place) AS place
ORDER BY place
RETURN collect({uuid: e.uuid, id: e.id, name: e.name, summary: e.summary, labels: labels(e), created_at: datetime(e.created_at).epochMillis}) AS rows;

// name: graphiti_nodes_by_name
// Those that have one of the names, in the order of the names; then the ends of the facts, in the order of the facts.
CALL () {
    UNWIND range(0, size($names) - 1) AS place
    MATCH (n:EntityName {group_id: $tenant, normalised: $names[place]})<-[:NAMED]-(e:Entity) USING INDEX SEEK n:EntityName(group_id, normalised)
    RETURN e, place
  UNION ALL
    UNWIND range(0, size($edges) - 1) AS place
    MATCH (a:Entity)-[r:RELATES_TO {uuid: $edges[place]}]->(b:Entity) USING INDEX SEEK r:RELATES_TO(uuid) WHERE r.group_id = $tenant
    UNWIND [a, b] AS e
    RETURN e, size($names) + place AS place
}
WITH e, min(place) AS place
ORDER BY place, e.id
LIMIT $limit
RETURN collect({uuid: e.uuid, id: e.id, name: e.name, summary: e.summary, labels: labels(e), created_at: datetime(e.created_at).epochMillis}) AS rows;

// name: graphiti_nodes_of_passages
// What the passages name, in the order of the passages, what a passage is about and names most first.
UNWIND range(0, size($passages) - 1) AS place
MATCH (c:Episodic {uuid: $passages[place], group_id: $tenant}) USING INDEX SEEK c:Episodic(uuid)
CALL (c) {
    MATCH (c)-[m:MENTIONS]->(e:Entity)
    RETURN e, m ORDER BY m.about DESC, m.count DESC, e.id LIMIT $per_passage
}
WITH e, min(place) AS place, max(m.count) AS count, max(toInteger(m.about)) AS about
ORDER BY place, about DESC, count DESC, e.id
LIMIT $limit
RETURN collect({uuid: e.uuid, id: e.id, name: e.name, summary: e.summary, labels: labels(e), created_at: datetime(e.created_at).epochMillis}) AS rows;

// name: graphiti_edges
UNWIND range(0, size($uuids) - 1) AS place
MATCH (a:Entity)-[r:RELATES_TO {uuid: $uuids[place]}]->(b:Entity) USING INDEX SEEK r:RELATES_TO(uuid) WHERE r.group_id = $tenant
WITH a, r, b, min(place) AS place
ORDER BY place
RETURN collect({uuid: r.uuid, id: r.id, source: a.uuid, target: b.uuid, source_labels: labels(a), target_labels: labels(b), name: r.name,
    fact: r.fact, episodes: r.episodes, created_at: datetime(r.created_at).epochMillis, valid_at: datetime(r.valid_at).epochMillis, invalid_at: datetime(r.invalid_at).epochMillis, expired_at: datetime(r.expired_at).epochMillis}) AS rows;

// name: graphiti_edges_of_passages
// What the passages state, in the order of the passages.
UNWIND range(0, size($passages) - 1) AS passage
MATCH (c:Episodic {uuid: $passages[passage], group_id: $tenant}) USING INDEX SEEK c:Episodic(uuid)
UNWIND c.entity_edges[..$per_passage] AS edge
WITH edge, min(passage) AS place
MATCH (a:Entity)-[r:RELATES_TO {uuid: edge}]->(b:Entity) USING INDEX SEEK r:RELATES_TO(uuid) WHERE r.group_id = $tenant
WITH a, r, b, place
ORDER BY place, r.id
LIMIT $limit
RETURN collect({uuid: r.uuid, id: r.id, source: a.uuid, target: b.uuid, source_labels: labels(a), target_labels: labels(b), name: r.name,
    fact: r.fact, episodes: r.episodes, created_at: datetime(r.created_at).epochMillis, valid_at: datetime(r.valid_at).epochMillis, invalid_at: datetime(r.invalid_at).epochMillis, expired_at: datetime(r.expired_at).epochMillis}) AS rows;

// name: graphiti_episodes
UNWIND range(0, size($uuids) - 1) AS place
MATCH (c:Episodic {uuid: $uuids[place], group_id: $tenant}) USING INDEX SEEK c:Episodic(uuid)
WITH c, min(place) AS place
ORDER BY place
RETURN collect({uuid: c.uuid, name: c.name, source: c.source, source_description: c.source_description, content: c.content,
    created_at: datetime(c.created_at).epochMillis, valid_at: datetime(c.valid_at).epochMillis, entity_edges: c.entity_edges}) AS rows;
