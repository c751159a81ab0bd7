-- The entity that a name would mean without edits (empty: the same), and what an editor did with the name or its entity.
ALTER TABLE entity_supports ADD COLUMN assigned TEXT NOT NULL DEFAULT '';

ALTER TABLE entity_supports ADD COLUMN mark TEXT NOT NULL DEFAULT '';

CREATE INDEX entity_supports_labels ON entity_supports (tenant, entity_id, name) WHERE mark = 'label';
