// name: delete_generation
MATCH (k:ThemeRecord {group_id: $tenant, generation: $generation}) USING INDEX SEEK k:ThemeRecord(group_id, generation)
OPTIONAL MATCH (k)-[:DESCRIBES]->(c:Community)
DETACH DELETE k, c;

// name: delete_generations_below
MATCH (k:ThemeRecord) USING INDEX SEEK k:ThemeRecord(group_id, generation) WHERE k.group_id = $tenant AND k.generation < $generation
OPTIONAL MATCH (k)-[:DESCRIBES]->(c:Community)
DETACH DELETE k, c
RETURN count(*) AS gone;

// name: generations
MATCH (k:ThemeRecord) USING INDEX SEEK k:ThemeRecord(group_id, generation) WHERE k.group_id = $tenant AND k.generation IS NOT NULL
RETURN DISTINCT k.generation AS generation ORDER BY generation;

// name: add_communities
// Graphiti's saves drop every property that it does not know: what is ours of a community is on a node of its own.
UNWIND $rows AS row
WITH row, COLLECT { UNWIND row.leading AS uuid MATCH (e:Entity {uuid: uuid, group_id: $tenant}) USING INDEX SEEK e:Entity(uuid) RETURN e.name } AS names
CREATE (k:ThemeRecord {uuid: row.uuid, group_id: $tenant})
SET k.generation = $generation, k.id = row.id, k.level = row.level, k.parent_id = row.parent,
    k.fingerprint = row.fingerprint, k.entity_count = row.entity_count, k.entity_ids = row.entity_ids
CREATE (c:Community:Theme {uuid: row.uuid, group_id: $tenant})
SET c.name = reduce(text = '', name IN names | text + CASE text WHEN '' THEN '' ELSE ', ' END + name), c.summary = '',
    c.created_at = datetime()
CREATE (k)-[:DESCRIBES]->(c);

// name: add_members
// Those that the graph has; the record names the others too.
UNWIND $rows AS row
MATCH (c:Community {uuid: row.community, group_id: $tenant}) USING INDEX SEEK c:Community(uuid)
MATCH (e:Entity {uuid: row.entity, group_id: $tenant}) USING INDEX SEEK e:Entity(uuid)
CREATE (c)-[:HAS_MEMBER {uuid: row.uuid, group_id: $tenant, created_at: datetime()}]->(e);

// name: communities_of_generation
MATCH (k:ThemeRecord {group_id: $tenant, generation: $generation}) USING INDEX SEEK k:ThemeRecord(group_id, generation)
WHERE $level IS NULL OR k.level = $level
RETURN k.id AS id, k.level AS level, k.parent_id AS parent, k.fingerprint AS fingerprint, k.entity_count AS count,
    CASE WHEN $members THEN k.entity_ids ELSE [] END AS members
ORDER BY level, count DESC, id;

// name: communities_by_id
UNWIND $uuids AS uuid
MATCH (k:ThemeRecord {uuid: uuid, group_id: $tenant}) USING INDEX SEEK k:ThemeRecord(uuid)
WHERE k.generation = $generation AND ($level IS NULL OR k.level = $level)
RETURN k.id AS id, k.level AS level, k.parent_id AS parent, k.fingerprint AS fingerprint, k.entity_count AS count,
    CASE WHEN $members THEN k.entity_ids ELSE [] END AS members
ORDER BY level, count DESC, id;
