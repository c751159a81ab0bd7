-- name: touched_entities
SELECT entity_id FROM mentions WHERE tenant = :tenant AND document_id = :document AND version <= :version AND version > :above
UNION
SELECT entity_id FROM entity_supports WHERE tenant = :tenant AND document_id = :document AND version <= :version AND version > :above;

-- name: touched_relationships
-- The planner would rather walk the tenant's whole primary key, which is sorted by relationship.
SELECT DISTINCT relationship_id FROM relationship_supports INDEXED BY relationship_supports_by_document
WHERE tenant = :tenant AND document_id = :document AND version <= :version AND version > :above;

-- name: delete_mentions
DELETE FROM mentions WHERE tenant = :tenant AND document_id = :document AND version <= :version AND version > :above;

-- name: delete_entity_supports
DELETE FROM entity_supports WHERE tenant = :tenant AND document_id = :document AND version <= :version AND version > :above;

-- name: delete_relationship_supports
DELETE FROM relationship_supports WHERE tenant = :tenant AND document_id = :document AND version <= :version AND version > :above;

-- name: delete_written_versions
DELETE FROM written_versions WHERE tenant = :tenant AND document_id = :document AND version <= :version AND version > :above;

-- name: delete_unsupported_relationships
DELETE FROM relationships
WHERE tenant = :tenant AND id IN (SELECT value FROM json_each(:ids)) AND NOT EXISTS (
    SELECT 1 FROM relationship_supports AS s WHERE s.tenant = relationships.tenant AND s.relationship_id = relationships.id
)
RETURNING id, source_id, target_id;

-- name: delete_unsupported_entities
DELETE FROM entities
WHERE tenant = :tenant AND id IN (SELECT value FROM json_each(:ids))
    AND NOT EXISTS (SELECT 1 FROM mentions AS m WHERE m.tenant = entities.tenant AND m.entity_id = entities.id)
    AND NOT EXISTS (SELECT 1 FROM entity_supports AS s WHERE s.tenant = entities.tenant AND s.entity_id = entities.id)
    AND NOT EXISTS (SELECT 1 FROM relationships AS r WHERE r.tenant = entities.tenant AND r.source_id = entities.id)
    AND NOT EXISTS (SELECT 1 FROM relationships AS r WHERE r.tenant = entities.tenant AND r.target_id = entities.id)
RETURNING id;

-- name: delete_unsupported_names
DELETE FROM entity_names
WHERE tenant = :tenant AND entity_id IN (SELECT value FROM json_each(:ids))
    AND NOT EXISTS (
        SELECT 1 FROM entity_supports AS s
        WHERE s.tenant = entity_names.tenant AND s.entity_id = entity_names.entity_id AND s.name = entity_names.name
    )
    AND name <> (SELECT e.name FROM entities AS e WHERE e.tenant = entity_names.tenant AND e.id = entity_names.entity_id);

-- name: delete_tenant_community_members
DELETE FROM community_members WHERE tenant = :tenant;

-- name: delete_tenant_communities
DELETE FROM communities WHERE tenant = :tenant;

-- name: delete_tenant_relationship_supports
DELETE FROM relationship_supports WHERE tenant = :tenant;

-- name: delete_tenant_relationships
DELETE FROM relationships WHERE tenant = :tenant;

-- name: delete_tenant_mentions
DELETE FROM mentions WHERE tenant = :tenant;

-- name: delete_tenant_entity_supports
DELETE FROM entity_supports WHERE tenant = :tenant;

-- name: delete_tenant_entity_names
DELETE FROM entity_names WHERE tenant = :tenant;

-- name: delete_tenant_entities
DELETE FROM entities WHERE tenant = :tenant;

-- name: delete_tenant_written_versions
DELETE FROM written_versions WHERE tenant = :tenant;

-- name: delete_tenant_revision
DELETE FROM knowledge_revisions WHERE tenant = :tenant;

-- name: change_revision
UPDATE knowledge_revisions SET revision = hex(randomblob(16)) WHERE tenant = :tenant;
