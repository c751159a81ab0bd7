// Rows come back as one list: the driver's cost is by the record, a quarter of a millisecond each.
// Pages are ordered by both properties of their index: by the second alone, all that is left would be read and sorted for each.
// name: entities_by_name
UNWIND $names AS wanted
MATCH (n:EntityName {group_id: $tenant, normalised: wanted})<-[:NAMED]-(e:Entity) USING INDEX SEEK n:EntityName(group_id, normalised)
WITH DISTINCT wanted, e
WITH wanted, e.id AS id, e.name AS name, e.type AS type, coalesce(e.description, e.summary) AS summary,
    COLLECT { MATCH (e)-[:NAMED]->(n:EntityName) RETURN n.name } AS names
ORDER BY wanted, name, type, id
RETURN collect([wanted, id, name, type, summary, names]) AS rows;

// name: main_uses
UNWIND $names AS wanted
MATCH (n:EntityName {group_id: $tenant, normalised: wanted}) USING INDEX SEEK n:EntityName(group_id, normalised)
CALL (n) {
    MATCH (n)<-[c:CALLS]-() WHERE c.type <> ''
    RETURN c LIMIT $limit
}
RETURN collect([wanted, c.position, n.name, c.type, c.description, coalesce(c.assigned, '')]) AS rows;

// name: described_uses
UNWIND $names AS wanted
MATCH (n:EntityName {group_id: $tenant, normalised: wanted}) USING INDEX SEEK n:EntityName(group_id, normalised)
CALL (n) {
    MATCH (n)<-[c:CALLS]-() WHERE c.type <> '' AND c.description <> ''
    RETURN c LIMIT $limit
}
RETURN collect([wanted, c.position, n.name, c.type, c.description, coalesce(c.assigned, '')]) AS rows;

// name: alias_uses
// A name that only an editor gave has no full name.
UNWIND $names AS wanted
MATCH (n:EntityName {group_id: $tenant, normalised: wanted}) USING INDEX SEEK n:EntityName(group_id, normalised)
CALL (n) {
    MATCH (n)<-[c:CALLS]-() WHERE c.type = '' AND c.main <> ''
    RETURN c LIMIT $limit
}
RETURN collect([wanted, c.position, c.main, c.type, c.description, coalesce(c.assigned, '')]) AS rows;

// name: documents_naming
UNWIND $uuids AS uuid
MATCH (e:Entity {uuid: uuid, group_id: $tenant}) USING INDEX SEEK e:Entity(uuid)
MATCH (e)-[:NAMED]->(:EntityName)<-[:CALLS]-(v:DocumentVersion)
WITH DISTINCT v.document_id AS document
RETURN collect([document]) AS rows;

// name: entities_by_uuid
UNWIND $uuids AS uuid
MATCH (e:Entity {uuid: uuid, group_id: $tenant}) USING INDEX SEEK e:Entity(uuid)
WITH DISTINCT e.id AS id, e.name AS name, e.type AS type, coalesce(e.description, e.summary) AS summary,
    COLLECT { MATCH (e)-[:NAMED]->(n:EntityName) RETURN n.name } AS names
RETURN collect([id, name, type, summary, names]) AS rows;

// name: entities_page
MATCH (e:Entity) USING INDEX SEEK e:Entity(group_id, id) WHERE e.group_id = $tenant AND e.id > $after
WITH e ORDER BY e.group_id, e.id LIMIT $limit
WITH e.id AS id, e.name AS name, e.type AS type, coalesce(e.description, e.summary) AS summary,
    COLLECT { MATCH (e)-[:NAMED]->(n:EntityName) RETURN n.name } AS names
ORDER BY id
RETURN collect([id, name, type, summary, names]) AS rows;

// name: relationships_by_uuid
UNWIND $uuids AS uuid
MATCH (a:Entity)-[r:RELATES_TO {uuid: uuid}]->(b:Entity) USING INDEX SEEK r:RELATES_TO(uuid) WHERE r.group_id = $tenant
WITH DISTINCT a, r, b
MATCH ()-[s:STATES]->() USING INDEX SEEK s:STATES(group_id, edge) WHERE s.group_id = $tenant AND s.edge = r.uuid
WITH r.id AS id, a.id AS source, b.id AS target, r.name AS relation,
    s.position AS position, s.fact AS fact, s.weight AS weight, s.valid_at AS valid_at, s.invalid_at AS invalid_at
ORDER BY id, position
RETURN collect([id, source, target, relation, position, fact, weight, valid_at, invalid_at]) AS rows;

// name: relationships_between
// Bounded whatever hub is among the ends: an end with many edges is not expanded, but asked for each other end.
UNWIND $uuids AS uuid
MATCH (e:Entity {uuid: uuid, group_id: $tenant}) USING INDEX SEEK e:Entity(uuid)
WITH DISTINCT e
WITH collect(e) AS ends, collect(CASE WHEN COUNT { (e)-[:RELATES_TO]-() } > $hub_degree THEN e END) AS hubs
CALL (ends, hubs) {
    UNWIND ends AS a
    WITH a, ends WHERE COUNT { (a)-[:RELATES_TO]-() } <= $hub_degree
    MATCH (a)-[r:RELATES_TO]-(b:Entity) WHERE b IN ends
    RETURN r
  UNION
    UNWIND hubs AS a
    UNWIND hubs AS b
    MATCH (a)-[r:RELATES_TO]->(b)
    RETURN r
}
WITH DISTINCT r WHERE r.group_id = $tenant
MATCH ()-[s:STATES]->() USING INDEX SEEK s:STATES(group_id, edge) WHERE s.group_id = $tenant AND s.edge = r.uuid
WITH r.id AS id, startNode(r).id AS source, endNode(r).id AS target, r.name AS relation,
    s.position AS position, s.fact AS fact, s.weight AS weight, s.valid_at AS valid_at, s.invalid_at AS invalid_at
ORDER BY id, position
RETURN collect([id, source, target, relation, position, fact, weight, valid_at, invalid_at]) AS rows;

// name: edges_from
// The order names every property of the index, so that it is read backwards from its end and a hub costs as much as any entity.
UNWIND $uuids AS uuid
CALL (uuid) {
    MATCH (a:Entity)-[r:RELATES_TO]->(b:Entity) USING INDEX SEEK r:RELATES_TO(group_id, source_node_uuid, weight, id)
    WHERE r.group_id = $tenant AND r.source_node_uuid = uuid AND r.weight IS NOT NULL AND r.id IS NOT NULL
        AND ($relations IS NULL OR r.name IN $relations)
    RETURN a.id AS entity, r, a, b ORDER BY r.group_id DESC, r.source_node_uuid DESC, r.weight DESC, r.id DESC LIMIT $limit
}
RETURN collect([entity, r.id, a.id, b.id, r.name, r.weight]) AS rows;

// name: edges_to
UNWIND $uuids AS uuid
CALL (uuid) {
    MATCH (a:Entity)-[r:RELATES_TO]->(b:Entity) USING INDEX SEEK r:RELATES_TO(group_id, target_node_uuid, weight, id)
    WHERE r.group_id = $tenant AND r.target_node_uuid = uuid AND r.weight IS NOT NULL AND r.id IS NOT NULL
        AND ($relations IS NULL OR r.name IN $relations)
    RETURN b.id AS entity, r, a, b ORDER BY r.group_id DESC, r.target_node_uuid DESC, r.weight DESC, r.id DESC LIMIT $limit
}
RETURN collect([entity, r.id, a.id, b.id, r.name, r.weight]) AS rows;

// name: relationships_page
MATCH (a:Entity)-[r:RELATES_TO]->(b:Entity) USING INDEX SEEK r:RELATES_TO(group_id, id) WHERE r.group_id = $tenant AND r.id > $after
WITH a, r, b ORDER BY r.group_id, r.id LIMIT $limit
MATCH ()-[s:STATES]->() USING INDEX SEEK s:STATES(group_id, edge) WHERE s.group_id = $tenant AND s.edge = r.uuid
WITH r.id AS id, a.id AS source, b.id AS target, r.name AS relation,
    s.position AS position, s.fact AS fact, s.weight AS weight, s.valid_at AS valid_at, s.invalid_at AS invalid_at
ORDER BY id, position
RETURN collect([id, source, target, relation, position, fact, weight, valid_at, invalid_at]) AS rows;

// name: relationship_uuids_of_documents
UNWIND $prefixes AS prefix
MATCH ()-[s:STATES]->() USING INDEX SEEK s:STATES(group_id, position) WHERE s.group_id = $tenant AND s.position STARTS WITH prefix
WITH DISTINCT s.edge AS edge
MATCH ()-[r:RELATES_TO {uuid: edge}]->() USING INDEX SEEK r:RELATES_TO(uuid) WHERE r.group_id = $tenant
WITH r.id AS id, r.uuid AS uuid
ORDER BY id
RETURN collect([id, uuid]) AS rows;

// name: fact_sentences
// Supports without a sentence of their own have start = end = 0.
UNWIND $uuids AS uuid
MATCH ()-[r:RELATES_TO {uuid: uuid}]->() USING INDEX SEEK r:RELATES_TO(uuid) WHERE r.group_id = $tenant
WITH DISTINCT r
MATCH ()-[s:STATES]->() USING INDEX SEEK s:STATES(group_id, edge) WHERE s.group_id = $tenant AND s.edge = r.uuid
WITH r.id AS id, s.position AS position, s.fact AS fact, s.end AS end,
    s.weight AS weight, s.valid_at AS valid_at, s.invalid_at AS invalid_at
ORDER BY id, position
RETURN collect([id, position, fact, end, weight, valid_at, invalid_at]) AS rows;

// name: mentions_page
MATCH ()-[m:MENTIONS]->() USING INDEX SEEK m:MENTIONS(group_id, position) WHERE m.group_id = $tenant AND m.position > $after
WITH m ORDER BY m.group_id, m.position LIMIT $limit
WITH m.position AS position, m.count AS count, m.about AS about
ORDER BY position
RETURN collect([position, count, about]) AS rows;

// name: mentions_of_documents_page
UNWIND $prefixes AS prefix
CALL (prefix) {
    MATCH ()-[m:MENTIONS]->() USING INDEX SEEK m:MENTIONS(group_id, position) WHERE m.group_id = $tenant AND m.position STARTS WITH prefix AND m.position > $after
    RETURN m ORDER BY m.group_id, m.position LIMIT $limit
}
WITH m.position AS position, m.count AS count, m.about AS about
ORDER BY position LIMIT $limit
RETURN collect([position, count, about]) AS rows;

// name: names_page
MATCH ()-[c:CALLS]->(n:EntityName) USING INDEX SEEK c:CALLS(group_id, position) WHERE c.group_id = $tenant AND c.position > $after
WITH c, n ORDER BY c.group_id, c.position LIMIT $limit
MATCH (n)<-[:NAMED]-(e:Entity)
WITH c.position AS position, e.name AS name, e.type AS type, c
ORDER BY position
RETURN collect([position, name, type, c.main, c.type, c.description, coalesce(c.assigned, ''), coalesce(c.mark, '')]) AS rows;

// name: names_of_documents_page
UNWIND $prefixes AS prefix
CALL (prefix) {
    MATCH ()-[c:CALLS]->(n:EntityName) USING INDEX SEEK c:CALLS(group_id, position) WHERE c.group_id = $tenant AND c.position STARTS WITH prefix AND c.position > $after
    RETURN c, n ORDER BY c.group_id, c.position LIMIT $limit
}
WITH c, n ORDER BY c.position LIMIT $limit
MATCH (n)<-[:NAMED]-(e:Entity)
WITH c.position AS position, e.name AS name, e.type AS type, c
ORDER BY position
RETURN collect([position, name, type, c.main, c.type, c.description, coalesce(c.assigned, ''), coalesce(c.mark, '')]) AS rows;

// name: documents_page
MATCH (d:Document) USING INDEX SEEK d:Document(group_id, id) WHERE d.group_id = $tenant AND d.id > $after
WITH d ORDER BY d.group_id, d.id LIMIT $limit
WITH d.id AS id
ORDER BY id
RETURN collect([id]) AS rows;

// name: held_versions
UNWIND $documents AS document
CALL (document) {
    MATCH (v:DocumentVersion {group_id: $tenant, document_id: document.id}) USING INDEX SEEK v:DocumentVersion(group_id, document_id, version) WHERE v.version IS NOT NULL
    RETURN 'written' AS what, v.version AS version, v.names AS names, v.mentions AS mentions, v.sentences AS sentences
  UNION ALL
    MATCH ()-[c:CALLS]->() USING INDEX SEEK c:CALLS(group_id, position) WHERE c.group_id = $tenant AND c.position STARTS WITH document.prefix
    RETURN 'held' AS what, toInteger(split(c.position, '\t')[1]) AS version, count(*) AS names, 0 AS mentions, 0 AS sentences
  UNION ALL
    MATCH ()-[m:MENTIONS]->() USING INDEX SEEK m:MENTIONS(group_id, position) WHERE m.group_id = $tenant AND m.position STARTS WITH document.prefix
    RETURN 'held' AS what, toInteger(split(m.position, '\t')[1]) AS version, 0 AS names, count(*) AS mentions, 0 AS sentences
  UNION ALL
    MATCH ()-[s:STATES]->() USING INDEX SEEK s:STATES(group_id, position) WHERE s.group_id = $tenant AND s.position STARTS WITH document.prefix
    RETURN 'held' AS what, toInteger(split(s.position, '\t')[1]) AS version, 0 AS names, 0 AS mentions, count(*) AS sentences
}
WITH what, document.id AS id, version, names, mentions, sentences
RETURN collect([what, id, version, names, mentions, sentences]) AS rows;

// name: mention_counts
// Versions share the chunks that an edit left alone.
UNWIND $uuids AS uuid
MATCH (e:Entity {uuid: uuid, group_id: $tenant})<-[:MENTIONS]-(c:Chunk) USING INDEX SEEK e:Entity(uuid)
WITH e.id AS id, count(DISTINCT c) AS chunks
RETURN collect([id, chunks]) AS rows;

// name: counts
RETURN
    COUNT { MATCH (e:Entity) USING INDEX SEEK e:Entity(group_id, id) WHERE e.group_id = $tenant AND e.id IS NOT NULL } AS entities,
    COUNT { MATCH ()-[r:RELATES_TO]->() USING INDEX SEEK r:RELATES_TO(group_id, id) WHERE r.group_id = $tenant AND r.id IS NOT NULL } AS relationships,
    COUNT { MATCH ()-[m:MENTIONS]->() USING INDEX SEEK m:MENTIONS(group_id, position) WHERE m.group_id = $tenant AND m.position IS NOT NULL } AS mentions;

// name: revision
MATCH (t:Tenant {group_id: $tenant})
RETURN t.revision AS revision;
