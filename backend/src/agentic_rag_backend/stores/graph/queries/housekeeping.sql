-- name: documents_page
SELECT document_id FROM mentions WHERE tenant = :tenant AND document_id > :after
UNION
SELECT document_id FROM entity_supports WHERE tenant = :tenant AND document_id > :after
UNION
SELECT document_id FROM relationship_supports INDEXED BY relationship_supports_by_document
WHERE tenant = :tenant AND document_id > :after
UNION
SELECT document_id FROM written_versions WHERE tenant = :tenant AND document_id > :after
ORDER BY document_id LIMIT :limit;

-- name: held_versions
SELECT 'written', document_id, version, names, mentions, sentences FROM written_versions
WHERE tenant = :tenant AND document_id IN (SELECT value FROM json_each(:documents))
UNION ALL
SELECT 'held', document_id, version, COUNT(*), 0, 0 FROM entity_supports
WHERE tenant = :tenant AND document_id IN (SELECT value FROM json_each(:documents)) GROUP BY document_id, version
UNION ALL
SELECT 'held', document_id, version, 0, COUNT(*), 0 FROM mentions
WHERE tenant = :tenant AND document_id IN (SELECT value FROM json_each(:documents)) GROUP BY document_id, version
UNION ALL
SELECT 'held', document_id, version, 0, 0, COUNT(*) FROM relationship_supports INDEXED BY relationship_supports_by_document
WHERE tenant = :tenant AND document_id IN (SELECT value FROM json_each(:documents)) GROUP BY document_id, version;

-- name: next_tenant_entities
SELECT MIN(tenant) FROM entities WHERE tenant > :after;

-- name: next_tenant_communities
SELECT MIN(tenant) FROM communities WHERE tenant > :after;

-- name: next_tenant_written_versions
SELECT MIN(tenant) FROM written_versions WHERE tenant > :after;
