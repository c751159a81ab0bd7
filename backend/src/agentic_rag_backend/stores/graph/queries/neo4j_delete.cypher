// name: knowledge_of_versions
// Locks the tenant too; nobody has what a tenant that never wrote holds.
MATCH (t:Tenant {group_id: $tenant})
SET t.writes = t.writes + 1, t.revision = randomUUID()
WITH t
RETURN
    COLLECT { MATCH ()-[m:MENTIONS]->(e:Entity) USING INDEX SEEK m:MENTIONS(group_id, position) WHERE m.group_id = $tenant AND m.position >= $from AND m.position < $to
        RETURN DISTINCT e.uuid } AS mentioned,
    COLLECT { MATCH ()-[c:CALLS]->(:EntityName)<-[:NAMED]-(e:Entity) USING INDEX SEEK c:CALLS(group_id, position)
        WHERE c.group_id = $tenant AND c.position >= $from AND c.position < $to RETURN DISTINCT e.uuid } AS named,
    COLLECT { MATCH ()-[s:STATES]->() USING INDEX SEEK s:STATES(group_id, position) WHERE s.group_id = $tenant AND s.position >= $from AND s.position < $to
        RETURN DISTINCT s.edge } AS edges,
    COLLECT { MATCH (v:DocumentVersion {group_id: $tenant, document_id: $document})-[:HOLDS]->(c:Episodic) USING INDEX SEEK v:DocumentVersion(group_id, document_id, version)
        WHERE v.version > $above AND v.version <= $version RETURN DISTINCT c.uuid } AS chunks;

// name: delete_mentions
MATCH ()-[m:MENTIONS]->() USING INDEX SEEK m:MENTIONS(group_id, position) WHERE m.group_id = $tenant AND m.position >= $from AND m.position < $to
DELETE m
RETURN count(*) AS gone;

// name: delete_statements
MATCH ()-[s:STATES]->() USING INDEX SEEK s:STATES(group_id, position) WHERE s.group_id = $tenant AND s.position >= $from AND s.position < $to
DELETE s
RETURN count(*) AS gone;

// name: delete_versions
// With them go what they call the entities and which chunks they hold.
MATCH (v:DocumentVersion {group_id: $tenant, document_id: $document}) USING INDEX SEEK v:DocumentVersion(group_id, document_id, version)
WHERE v.version > $above AND v.version <= $version
DETACH DELETE v;

// name: delete_unsupported_relationships
UNWIND $uuids AS edge
MATCH (a:Entity)-[r:RELATES_TO {uuid: edge}]->(b:Entity) USING INDEX SEEK r:RELATES_TO(uuid)
WHERE r.group_id = $tenant
    AND NOT EXISTS { MATCH ()-[s:STATES]->() USING INDEX SEEK s:STATES(group_id, edge) WHERE s.group_id = $tenant AND s.edge = edge }
WITH r, r.id AS id, a.uuid AS source, b.uuid AS target
DELETE r
RETURN id, source, target;

// name: delete_unsupported_entities
// Mentions and relationships of another Graphiti client have no position and no id, and support nothing.
UNWIND $uuids AS uuid
MATCH (e:Entity {uuid: uuid, group_id: $tenant}) USING INDEX SEEK e:Entity(uuid)
WHERE NOT EXISTS { (e)<-[m:MENTIONS]-() WHERE m.position IS NOT NULL }
    AND NOT EXISTS { (e)-[r:RELATES_TO]-() WHERE r.id IS NOT NULL }
    AND NOT EXISTS { (e)-[:NAMED]->(:EntityName)<-[:CALLS]-() }
WITH e, e.id AS id, COLLECT { MATCH (e)-[:NAMED]->(n:EntityName) RETURN n } AS names
FOREACH (n IN names | DETACH DELETE n)
DETACH DELETE e
RETURN id;

// name: delete_unsupported_names
UNWIND $uuids AS uuid
MATCH (e:Entity {uuid: uuid, group_id: $tenant})-[:NAMED]->(n:EntityName) USING INDEX SEEK e:Entity(uuid)
WHERE n.name <> e.name AND NOT EXISTS { (n)<-[:CALLS]-() }
DETACH DELETE n;

// name: delete_unversioned_document
MATCH (d:Document {uuid: $document_uuid, group_id: $tenant}) USING INDEX SEEK d:Document(uuid)
WHERE NOT EXISTS { (d)-[:HAS_VERSION]->(:DocumentVersion) }
DETACH DELETE d;

// The predicates that always hold let the indexes serve, which end in those properties.
// name: delete_tenant_statements
MATCH ()-[s:STATES]->() USING INDEX SEEK s:STATES(group_id, position) WHERE s.group_id = $tenant AND s.position IS NOT NULL
WITH s LIMIT $limit DELETE s RETURN count(*) AS gone;

// name: delete_tenant_mentions
MATCH ()-[m:MENTIONS]->() USING INDEX SEEK m:MENTIONS(group_id, position) WHERE m.group_id = $tenant AND m.position IS NOT NULL
WITH m LIMIT $limit DELETE m RETURN count(*) AS gone;

// name: delete_tenant_relationships
MATCH ()-[r:RELATES_TO]->() USING INDEX SEEK r:RELATES_TO(group_id, id) WHERE r.group_id = $tenant AND r.id IS NOT NULL
WITH r LIMIT $limit DELETE r RETURN count(*) AS gone;

// name: delete_tenant_names
MATCH (n:EntityName) USING INDEX SEEK n:EntityName(group_id, normalised) WHERE n.group_id = $tenant AND n.normalised IS NOT NULL
WITH n LIMIT $limit DETACH DELETE n RETURN count(*) AS gone;

// name: delete_tenant_theme_records
MATCH (k:ThemeRecord) USING INDEX SEEK k:ThemeRecord(group_id, generation) WHERE k.group_id = $tenant AND k.generation IS NOT NULL
WITH k LIMIT $limit DETACH DELETE k RETURN count(*) AS gone;

// name: delete_tenant_communities
MATCH (c:Community) WHERE c.group_id = $tenant
WITH c LIMIT $limit DETACH DELETE c RETURN count(*) AS gone;

// name: delete_tenant_entities
MATCH (e:Entity) WHERE e.group_id = $tenant
WITH e LIMIT $limit DETACH DELETE e RETURN count(*) AS gone;

// name: delete_tenant_chunks
MATCH (c:Episodic) WHERE c.group_id = $tenant
WITH c LIMIT $limit DETACH DELETE c RETURN count(*) AS gone;

// name: delete_tenant_sagas
// Of other Graphiti clients, through their episodes: there is no index of sagas.
MATCH (c:Episodic) WHERE c.group_id = $tenant
MATCH (c)<-[:HAS_EPISODE]-(s:Saga) WHERE s.group_id = $tenant
WITH DISTINCT s LIMIT $limit DETACH DELETE s RETURN count(*) AS gone;

// name: delete_tenant_versions
MATCH (v:DocumentVersion) USING INDEX SEEK v:DocumentVersion(group_id, document_id, version) WHERE v.group_id = $tenant AND v.document_id IS NOT NULL AND v.version IS NOT NULL
WITH v LIMIT $limit DETACH DELETE v RETURN count(*) AS gone;

// name: delete_tenant_documents
MATCH (d:Document) USING INDEX SEEK d:Document(group_id, id) WHERE d.group_id = $tenant AND d.id IS NOT NULL
WITH d LIMIT $limit DETACH DELETE d RETURN count(*) AS gone;

// name: delete_tenant_lock
MATCH (t:Tenant) WHERE t.group_id = $tenant
DELETE t;
