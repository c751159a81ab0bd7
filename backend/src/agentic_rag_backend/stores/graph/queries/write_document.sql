-- name: add_entity
-- `label_entities` sets name and type again.
INSERT INTO entities (tenant, id, name, type) VALUES (:tenant, :id, :name, :type)
ON CONFLICT DO NOTHING;

-- name: add_entity_name
INSERT INTO entity_names (tenant, entity_id, name, normalised) VALUES (:tenant, :entity, :name, :normalised)
ON CONFLICT DO NOTHING;

-- name: add_entity_support
INSERT INTO entity_supports (tenant, document_id, version, entity_id, name, main, type, description, assigned, mark)
VALUES (:tenant, :document, :version, :entity, :name, :main, :type, :description, :assigned, :mark)
ON CONFLICT DO UPDATE SET main = excluded.main, type = excluded.type, description = excluded.description,
    assigned = excluded.assigned, mark = excluded.mark
WHERE main <> excluded.main OR type <> excluded.type OR description <> excluded.description
    OR assigned <> excluded.assigned OR mark <> excluded.mark;

-- name: label_entities
-- An entity has the name that an editor chose, or the main name and the type that most documents give it. Names that a document gives as an alias, and types that
-- decide nothing, do not count if there is another.
-- For an entity of many documents, the first 200 in the order of the index decide, so that the cost does not grow with their number.
UPDATE entities SET
    name = COALESCE((
        SELECT MIN(name) FROM entity_supports INDEXED BY entity_supports_labels
        WHERE tenant = entities.tenant AND entity_id = entities.id AND mark = 'label'
    ), (
        SELECT s.name FROM (
            SELECT p.name, EXISTS (
                SELECT 1 FROM entity_supports AS a INDEXED BY entity_supports_by_name
                WHERE a.tenant = p.tenant AND a.entity_id = p.entity_id AND a.name = p.name AND a.type = '' AND a.main <> ''
            ) AS is_alias
            FROM entity_supports AS p
            WHERE p.tenant = entities.tenant AND p.entity_id = entities.id AND p.type <> '' ORDER BY p.name LIMIT 200
        ) AS s GROUP BY s.name ORDER BY MIN(s.is_alias), COUNT(*) DESC, s.name LIMIT 1
    ), (
        SELECT MIN(name) FROM entity_supports WHERE tenant = entities.tenant AND entity_id = entities.id
    ), name),
    type = COALESCE((
        SELECT s.type FROM (
            SELECT type FROM entity_supports
            WHERE tenant = entities.tenant AND entity_id = entities.id AND type <> '' ORDER BY name LIMIT 200
        ) AS s GROUP BY s.type ORDER BY s.type IN ('other', 'concept', 'acronym'), COUNT(*) DESC, s.type LIMIT 1
    ), type)
WHERE tenant = :tenant AND id IN (SELECT value FROM json_each(:ids));

-- name: add_relationship
INSERT INTO relationships (tenant, id, source_id, target_id, relation) VALUES (:tenant, :id, :source, :target, :relation)
ON CONFLICT DO NOTHING;

-- name: add_mention
INSERT INTO mentions (tenant, document_id, version, chunk_id, entity_id, count, about)
VALUES (:tenant, :document, :version, :chunk, :entity, :count, :about)
ON CONFLICT DO UPDATE SET count = excluded.count, about = excluded.about
WHERE count <> excluded.count OR about <> excluded.about;

-- name: add_relationship_support
INSERT INTO relationship_supports
    (tenant, relationship_id, document_id, version, chunk_id, start_char, end_char, fact, weight, valid_at, invalid_at)
VALUES (:tenant, :relationship, :document, :version, :chunk, :start, :end, :fact, :weight, :valid_at, :invalid_at)
ON CONFLICT DO UPDATE SET
    end_char = excluded.end_char, fact = excluded.fact, weight = excluded.weight,
    valid_at = excluded.valid_at, invalid_at = excluded.invalid_at
WHERE end_char <> excluded.end_char OR fact <> excluded.fact OR weight <> excluded.weight
    OR valid_at IS NOT excluded.valid_at OR invalid_at IS NOT excluded.invalid_at;

-- name: weigh_relationships
-- The weight is stored, so that an index orders an entity's relationships by it. Versions of a document count once.
UPDATE relationships SET weight = s.weight
FROM (
    SELECT r.relationship_id, ROUND(SUM(r.weight), 3) AS weight
    FROM (
        SELECT relationship_id, MAX(weight) AS weight FROM relationship_supports
        WHERE tenant = :tenant AND relationship_id IN (SELECT value FROM json_each(:ids))
        GROUP BY relationship_id, document_id
    ) AS r GROUP BY r.relationship_id
) AS s
WHERE relationships.tenant = :tenant AND relationships.id = s.relationship_id AND relationships.weight <> s.weight;

-- name: record_version
INSERT INTO written_versions (tenant, document_id, version, names, mentions, sentences)
VALUES (:tenant, :document, :version,
    (SELECT COUNT(*) FROM entity_supports WHERE tenant = :tenant AND document_id = :document AND version = :version),
    (SELECT COUNT(*) FROM mentions WHERE tenant = :tenant AND document_id = :document AND version = :version),
    (SELECT COUNT(*) FROM relationship_supports INDEXED BY relationship_supports_by_document
        WHERE tenant = :tenant AND document_id = :document AND version = :version))
ON CONFLICT DO UPDATE SET names = excluded.names, mentions = excluded.mentions, sentences = excluded.sentences
WHERE names <> excluded.names OR mentions <> excluded.mentions OR sentences <> excluded.sentences;

-- name: renew_revision
INSERT INTO knowledge_revisions (tenant, revision) VALUES (:tenant, hex(randomblob(16)))
ON CONFLICT DO UPDATE SET revision = excluded.revision;
