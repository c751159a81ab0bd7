-- The largest weight of a relationship's supports. An entity's heaviest relationships are read from the end of an index.
ALTER TABLE relationships ADD COLUMN weight REAL NOT NULL DEFAULT 0;

UPDATE relationships SET weight = COALESCE((
    SELECT MAX(s.weight) FROM relationship_supports AS s
    WHERE s.tenant = relationships.tenant AND s.relationship_id = relationships.id
), 0);

CREATE INDEX relationships_by_source_weight ON relationships (tenant, source_id, weight, id, relation);

CREATE INDEX relationships_by_target_weight ON relationships (tenant, target_id, weight, id, relation);

-- relationships_by_target_weight begins with its columns.
DROP INDEX relationships_by_target;
