-- The type that a document gives the entity stands with the document's main name for it. An alias has no type, and the name of
-- which it is an alias. An entity's name and type follow from these rows, whatever document was written first.
ALTER TABLE entity_supports ADD COLUMN type TEXT NOT NULL DEFAULT '';

UPDATE entity_supports SET type = COALESCE((
    SELECT e.type FROM entities AS e
    WHERE e.tenant = entity_supports.tenant AND e.id = entity_supports.entity_id AND e.name = entity_supports.name
), '');

ALTER TABLE entity_supports ADD COLUMN main TEXT NOT NULL DEFAULT '';

UPDATE entity_supports SET main = COALESCE((
    SELECT e.name FROM entities AS e WHERE e.tenant = entity_supports.tenant AND e.id = entity_supports.entity_id
), '') WHERE type = '';

DROP INDEX entity_supports_by_name;

CREATE INDEX entity_supports_by_name ON entity_supports (tenant, entity_id, name, type);
