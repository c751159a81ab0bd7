// name: lock_tenant
// One writer of a tenant at a time: the others wait for this node.
MERGE (t:Tenant {group_id: $tenant})
ON CREATE SET t.deployment = $deployment
SET t.writes = coalesce(t.writes, 0) + 1;

// name: lock_knowledge
// As `lock_tenant`, for what changes knowledge.
MERGE (t:Tenant {group_id: $tenant})
ON CREATE SET t.deployment = $deployment
SET t.writes = coalesce(t.writes, 0) + 1, t.revision = randomUUID();

// name: add_version
MERGE (d:Document {uuid: $document_uuid, group_id: $tenant})
ON CREATE SET d.id = $document, d.created_at = datetime()
SET d.name = $title
MERGE (v:DocumentVersion {uuid: $version_uuid, group_id: $tenant})
ON CREATE SET v.document_id = $document, v.version = $version, v.created_at = datetime()
MERGE (d)-[:HAS_VERSION]->(v)
WITH d, v
UNWIND $chunks AS row
// By Graphiti's own label and key, so that an episode it saved before is the same node.
MERGE (c:Episodic {uuid: row.uuid, group_id: $tenant})
ON CREATE SET c.name = $title, c.source = 'text', c.source_description = $document, c.content = '', c.entity_edges = [],
    c.created_at = datetime(), c.valid_at = datetime()
SET c:Chunk
MERGE (d)-[:HAS_CHUNK]->(c)
MERGE (v)-[:HOLDS]->(c);

// name: add_entities
// `labels_of_entities` and `label_entities` set name and type again.
UNWIND $rows AS row
MERGE (e:Entity {uuid: row.uuid, group_id: $tenant})
ON CREATE SET e:$(row.labels), e.id = row.id, e.name = row.name, e.type = row.type, e.labels = row.labels, e.summary = '',
    e.description = '', e.created_at = datetime()
RETURN count(*) AS written;

// name: add_names
MATCH (v:DocumentVersion {uuid: $version_uuid, group_id: $tenant}) USING INDEX SEEK v:DocumentVersion(uuid)
UNWIND $rows AS row
MATCH (e:Entity {uuid: row.entity, group_id: $tenant}) USING INDEX SEEK e:Entity(uuid)
MERGE (n:EntityName {uuid: row.uuid, group_id: $tenant})
ON CREATE SET n.name = row.name, n.normalised = row.normalised
MERGE (e)-[:NAMED]->(n)
MERGE (v)-[c:CALLS]->(n)
ON CREATE SET c.group_id = $tenant, c.position = row.position
SET c.description = row.description, c.type = row.type, c.main = row.main, c.assigned = row.assigned, c.mark = row.mark
RETURN count(*) AS written;

// name: add_mentions
UNWIND $rows AS row
MATCH (c:Episodic {uuid: row.chunk, group_id: $tenant}) USING INDEX SEEK c:Episodic(uuid)
MATCH (e:Entity {uuid: row.entity, group_id: $tenant}) USING INDEX SEEK e:Entity(uuid)
MERGE (c)-[m:MENTIONS {uuid: row.uuid, group_id: $tenant}]->(e)
ON CREATE SET m.position = row.position, m.created_at = datetime()
SET m.count = row.count, m.about = row.about
RETURN count(*) AS written;

// name: add_relationships
UNWIND $rows AS row
MATCH (a:Entity {uuid: row.source, group_id: $tenant}) USING INDEX SEEK a:Entity(uuid)
MATCH (b:Entity {uuid: row.target, group_id: $tenant}) USING INDEX SEEK b:Entity(uuid)
MERGE (a)-[r:RELATES_TO {uuid: row.uuid, group_id: $tenant}]->(b)
ON CREATE SET r.id = row.id, r.name = row.name, r.fact = '', r.episodes = [], r.created_at = datetime(),
    r.source_node_uuid = row.source, r.target_node_uuid = row.target
RETURN count(*) AS written;

// name: add_statements
UNWIND $rows AS row
MATCH (a:Entity)-[r:RELATES_TO {uuid: row.edge}]->() USING INDEX SEEK r:RELATES_TO(uuid) WHERE r.group_id = $tenant
MATCH (c:Episodic {uuid: row.chunk, group_id: $tenant}) USING INDEX SEEK c:Episodic(uuid)
MERGE (c)-[s:STATES {uuid: row.uuid, group_id: $tenant}]->(a)
ON CREATE SET s.edge = row.edge, s.position = row.position
SET s.end = row.end, s.fact = row.fact, s.weight = row.weight, s.valid_at = row.valid_at, s.invalid_at = row.invalid_at
RETURN count(*) AS written;

// name: refresh_relationships
// What Graphiti reads on the edge follows from what states it: the first sentence in alphabetical order, the widest validity, the chunks.
UNWIND $uuids AS edge
MATCH ()-[r:RELATES_TO {uuid: edge}]->() USING INDEX SEEK r:RELATES_TO(uuid) WHERE r.group_id = $tenant
CALL (r) {
    MATCH (c:Episodic)-[s:STATES]->() USING INDEX SEEK s:STATES(group_id, edge) WHERE s.group_id = $tenant AND s.edge = r.uuid
    WITH c, s ORDER BY s.position
    WITH min(s.fact) AS fact, min(s.valid_at) AS valid_at, max(s.invalid_at) AS end,
        collect({begin: s.valid_at, end: s.invalid_at}) AS periods, collect(DISTINCT c.uuid) AS episodes
    // As `end_of`: it ends unless something without an end states it from then on, or at a time that is not known.
    RETURN fact, valid_at, episodes,
        CASE WHEN none(period IN periods WHERE period.end IS NULL AND (period.begin IS NULL OR period.begin >= end)) THEN end END AS invalid_at
}
CALL (r) {
    // The position begins with the document and a tab.
    MATCH ()-[s:STATES]->() USING INDEX SEEK s:STATES(group_id, edge) WHERE s.group_id = $tenant AND s.edge = r.uuid
    WITH split(s.position, '\t')[0] AS document, max(s.weight) AS weight
    RETURN round(sum(weight), 3) AS weight
}
SET r.fact = coalesce(fact, ''), r.valid_at = datetime(valid_at), r.invalid_at = datetime(invalid_at), r.episodes = episodes,
    r.weight = weight;

// name: refresh_chunks
// A chunk goes with the last version that holds it.
UNWIND $uuids AS uuid
MATCH (c:Episodic {uuid: uuid, group_id: $tenant}) USING INDEX SEEK c:Episodic(uuid)
CALL (c) {
    WITH c WHERE EXISTS { (c)<-[:HOLDS]-(:DocumentVersion) }
    SET c.entity_edges = COLLECT { MATCH (c)-[s:STATES]->() RETURN DISTINCT s.edge AS edge ORDER BY edge }
}
CALL (c) {
    WITH c WHERE NOT EXISTS { (c)<-[:HOLDS]-(:DocumentVersion) }
    DETACH DELETE c
};

// name: labels_of_entities
// Names and types with the number of their uses, from which `label_entities` of `neo4j_writes` chooses: this database does not sort
// text by code point. Of many documents, 200 decide, as on SQLite.
UNWIND $uuids AS uuid
MATCH (e:Entity {uuid: uuid, group_id: $tenant}) USING INDEX SEEK e:Entity(uuid)
CALL (e) {
    MATCH (e)-[:NAMED]->(n:EntityName)<-[c:CALLS]-() WHERE c.type <> '' OR c.mark = 'label'
    WITH n, c ORDER BY coalesce(c.mark, '') DESC, n.name, c.position LIMIT 200
    RETURN collect([n.name, c.type, EXISTS { (n)<-[a:CALLS]-() WHERE a.type = '' AND a.main <> '' }, coalesce(c.mark, '')]) AS uses
}
RETURN e.uuid AS uuid, e.name AS name, e.type AS type, e.labels AS labels, uses,
    COLLECT { MATCH (e)-[:NAMED]->(n:EntityName) WHERE EXISTS { (n)<-[:CALLS]-() } RETURN n.name } AS used;

// name: label_entities
UNWIND $rows AS row
MATCH (e:Entity {uuid: row.uuid, group_id: $tenant}) USING INDEX SEEK e:Entity(uuid)
REMOVE e:$(row.removed)
SET e:$(row.labels), e.labels = row.labels, e.name = row.name, e.type = row.type;

// name: refresh_entities
// Of several descriptions the longest, and the first in alphabetical order among equals. `summary` is Graphiti's field: its clients write their own there.
UNWIND $uuids AS uuid
MATCH (e:Entity {uuid: uuid, group_id: $tenant}) USING INDEX SEEK e:Entity(uuid)
CALL (e) {
    OPTIONAL MATCH (e)-[:NAMED]->(:EntityName)<-[c:CALLS]-() WHERE c.description <> ''
    WITH c ORDER BY size(c.description) DESC, c.description LIMIT 1
    RETURN coalesce(c.description, '') AS summary
}
WITH e, summary WHERE e.summary <> summary OR coalesce(e.description, '') <> summary
SET e.summary = summary, e.description = summary;

// name: record_version
MATCH (v:DocumentVersion {uuid: $version_uuid, group_id: $tenant}) USING INDEX SEEK v:DocumentVersion(uuid)
SET v.names = COUNT { (v)-[:CALLS]->() },
    v.mentions = COUNT { MATCH ()-[m:MENTIONS]->() USING INDEX SEEK m:MENTIONS(group_id, position) WHERE m.group_id = $tenant AND m.position STARTS WITH $prefix },
    v.sentences = COUNT { MATCH ()-[s:STATES]->() USING INDEX SEEK s:STATES(group_id, position) WHERE s.group_id = $tenant AND s.position STARTS WITH $prefix };
