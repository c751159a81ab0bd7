-- name: entity_ids_by_name
SELECT normalised, entity_id FROM entity_names
WHERE tenant = :tenant AND normalised IN (SELECT value FROM json_each(:names));

-- name: spellings_of_name
SELECT entity_id, name FROM entity_names WHERE tenant = :tenant AND normalised = :normalised ORDER BY entity_id, name;

-- name: main_uses
SELECT document_id, version, entity_id, name, name, type, description, assigned
FROM entity_supports INDEXED BY entity_supports_by_name
WHERE tenant = :tenant AND entity_id = :entity AND name = :name AND type > '' LIMIT :limit;

-- name: alias_uses
-- A name that only an editor gave has no full name.
SELECT document_id, version, entity_id, name, main, type, description, assigned
FROM entity_supports INDEXED BY entity_supports_by_name
WHERE tenant = :tenant AND entity_id = :entity AND name = :name AND type = '' AND main <> '' LIMIT :limit;

-- name: described_uses
SELECT document_id, version, entity_id, name, name, type, description, assigned
FROM entity_supports INDEXED BY entity_supports_described
WHERE tenant = :tenant AND entity_id = :entity AND name = :name AND type <> '' AND description <> '' LIMIT :limit;

-- name: documents_naming
SELECT DISTINCT document_id FROM entity_supports INDEXED BY entity_supports_by_name
WHERE tenant = :tenant AND entity_id IN (SELECT value FROM json_each(:ids)) ORDER BY document_id;

-- name: entities_by_id
SELECT id, name, type FROM entities
WHERE tenant = :tenant AND id IN (SELECT value FROM json_each(:ids));

-- name: entities_page
SELECT id, name, type FROM entities
WHERE tenant = :tenant AND id > :after ORDER BY id LIMIT :limit;

-- name: names_of_entities
SELECT entity_id, name FROM entity_names
WHERE tenant = :tenant AND entity_id IN (SELECT value FROM json_each(:ids));

-- name: descriptions_of_entities
-- The last row of an entity counts: the longest description, the first in alphabetical order among equals.
SELECT entity_id, description FROM entity_supports INDEXED BY entity_supports_described
WHERE tenant = :tenant AND description <> '' AND entity_id IN (SELECT value FROM json_each(:ids))
ORDER BY entity_id, LENGTH(description), description DESC;

-- name: relationships_by_id
SELECT r.id, r.source_id, r.target_id, r.relation,
    s.document_id, s.version, s.chunk_id, s.fact, s.weight, s.valid_at, s.invalid_at
FROM relationships AS r JOIN relationship_supports AS s ON s.tenant = r.tenant AND s.relationship_id = r.id
WHERE r.tenant = :tenant AND r.id IN (SELECT value FROM json_each(:ids))
ORDER BY r.id, s.document_id, s.version, s.chunk_id, s.start_char;

-- name: relationships_between
SELECT r.id, r.source_id, r.target_id, r.relation,
    s.document_id, s.version, s.chunk_id, s.fact, s.weight, s.valid_at, s.invalid_at
FROM relationships AS r INDEXED BY relationships_by_source
    JOIN relationship_supports AS s ON s.tenant = r.tenant AND s.relationship_id = r.id
WHERE r.tenant = :tenant
    AND r.source_id IN (SELECT value FROM json_each(:ids)) AND r.target_id IN (SELECT value FROM json_each(:ids))
ORDER BY r.id, s.document_id, s.version, s.chunk_id, s.start_char;

-- name: edges_from
-- Read backwards from the end of the index: a hub costs as much as any entity.
SELECT source_id, id, source_id, target_id, relation, weight FROM relationships INDEXED BY relationships_by_source_weight
WHERE tenant = :tenant AND source_id = :entity
    AND (:relations IS NULL OR relation IN (SELECT value FROM json_each(:relations)))
ORDER BY weight DESC, id DESC LIMIT :limit;

-- name: edges_to
SELECT target_id, id, source_id, target_id, relation, weight FROM relationships INDEXED BY relationships_by_target_weight
WHERE tenant = :tenant AND target_id = :entity
    AND (:relations IS NULL OR relation IN (SELECT value FROM json_each(:relations)))
ORDER BY weight DESC, id DESC LIMIT :limit;

-- name: relationships_page
SELECT r.id, r.source_id, r.target_id, r.relation,
    s.document_id, s.version, s.chunk_id, s.fact, s.weight, s.valid_at, s.invalid_at
FROM (
    SELECT tenant, id, source_id, target_id, relation FROM relationships
    WHERE tenant = :tenant AND id > :after ORDER BY id LIMIT :limit
) AS r JOIN relationship_supports AS s ON s.tenant = r.tenant AND s.relationship_id = r.id
ORDER BY r.id, s.document_id, s.version, s.chunk_id, s.start_char;

-- name: relationship_ids_of_documents
SELECT DISTINCT relationship_id FROM relationship_supports INDEXED BY relationship_supports_by_document
WHERE tenant = :tenant AND document_id IN (SELECT value FROM json_each(:documents))
ORDER BY relationship_id;

-- name: fact_sentences
-- Supports without a sentence of their own have start = end.
SELECT relationship_id, document_id, version, chunk_id, fact, start_char, end_char, weight, valid_at, invalid_at
FROM relationship_supports
WHERE tenant = :tenant AND relationship_id IN (SELECT value FROM json_each(:ids)) AND end_char > start_char
ORDER BY relationship_id, document_id, version, chunk_id, start_char;

-- name: mentions_page
SELECT document_id, version, chunk_id, entity_id, count, about FROM mentions
WHERE tenant = :tenant AND (document_id, version, chunk_id, entity_id) > (:document, :version, :chunk, :entity)
ORDER BY document_id, version, chunk_id, entity_id LIMIT :limit;

-- name: mentions_of_document_page
SELECT document_id, version, chunk_id, entity_id, count, about FROM mentions
WHERE tenant = :tenant AND document_id = :document
    AND (version, chunk_id, entity_id) > (:version, :chunk, :entity)
ORDER BY version, chunk_id, entity_id LIMIT :limit;

-- name: names_page
SELECT s.document_id, s.version, s.entity_id, s.name, e.name, e.type, s.main, s.type, s.description, s.assigned, s.mark
FROM entity_supports AS s JOIN entities AS e ON e.tenant = s.tenant AND e.id = s.entity_id
WHERE s.tenant = :tenant AND (s.document_id, s.version, s.entity_id, s.name) > (:document, :version, :entity, :name)
ORDER BY s.document_id, s.version, s.entity_id, s.name LIMIT :limit;

-- name: names_of_document_page
SELECT s.document_id, s.version, s.entity_id, s.name, e.name, e.type, s.main, s.type, s.description, s.assigned, s.mark
FROM entity_supports AS s JOIN entities AS e ON e.tenant = s.tenant AND e.id = s.entity_id
WHERE s.tenant = :tenant AND s.document_id = :document AND (s.version, s.entity_id, s.name) > (:version, :entity, :name)
ORDER BY s.version, s.entity_id, s.name LIMIT :limit;

-- name: mention_batches_page
SELECT document_id, version, chunk_id, group_concat(entity_id, char(0)), group_concat(about, '') FROM mentions
WHERE tenant = :tenant AND (document_id, version, chunk_id) > (:document, :version, :chunk)
GROUP BY document_id, version, chunk_id ORDER BY document_id, version, chunk_id LIMIT :limit;

-- name: mention_batches_of_document
SELECT document_id, version, chunk_id, group_concat(entity_id, char(0)), group_concat(about, '') FROM mentions
WHERE tenant = :tenant AND document_id = :document
GROUP BY version, chunk_id ORDER BY version, chunk_id;

-- name: name_batches_page
SELECT document_id, version, group_concat(entity_id, char(0)), group_concat(name, char(0)) FROM entity_supports
WHERE tenant = :tenant AND (document_id, version) > (:document, :version) AND mark <> 'deleted'
GROUP BY document_id, version ORDER BY document_id, version LIMIT :limit;

-- name: name_batches_of_document
SELECT document_id, version, group_concat(entity_id, char(0)), group_concat(name, char(0)) FROM entity_supports
WHERE tenant = :tenant AND document_id = :document AND mark <> 'deleted'
GROUP BY version ORDER BY version;

-- name: entity_labels_page
SELECT id, name, type FROM entities WHERE tenant = :tenant AND id > :after ORDER BY id LIMIT :limit;

-- name: entity_labels_of_document
SELECT id, name, type FROM entities
WHERE tenant = :tenant AND id IN (SELECT entity_id FROM entity_supports WHERE tenant = :tenant AND document_id = :document);

-- name: mention_counts
-- Versions share the chunks that an edit left alone.
SELECT entity_id, COUNT(DISTINCT chunk_id) FROM mentions
WHERE tenant = :tenant AND entity_id IN (SELECT value FROM json_each(:ids))
GROUP BY entity_id;

-- name: counts
SELECT
    (SELECT COUNT(*) FROM entities WHERE tenant = :tenant),
    (SELECT COUNT(*) FROM relationships WHERE tenant = :tenant),
    (SELECT COUNT(*) FROM mentions WHERE tenant = :tenant);

-- name: revision
SELECT revision FROM knowledge_revisions WHERE tenant = :tenant;
