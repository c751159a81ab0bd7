-- Every key begins with the tenant, and so do foreign keys: no row can point into another tenant.
CREATE TABLE entities (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    type TEXT NOT NULL,
    PRIMARY KEY (tenant, id)
) WITHOUT ROWID;

-- The distinct names of an entity, its present one included; what questions are linked by.
CREATE TABLE entity_names (
    tenant TEXT NOT NULL,
    entity_id TEXT NOT NULL,
    name TEXT NOT NULL,
    normalised TEXT NOT NULL,
    PRIMARY KEY (tenant, entity_id, name),
    FOREIGN KEY (tenant, entity_id) REFERENCES entities (tenant, id) ON DELETE CASCADE
) WITHOUT ROWID;

CREATE INDEX entity_names_by_normalised ON entity_names (tenant, normalised, entity_id);

-- Which document calls the entity so: a name goes with the last document that used it.
CREATE TABLE entity_supports (
    tenant TEXT NOT NULL,
    document_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    entity_id TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    PRIMARY KEY (tenant, document_id, version, entity_id, name),
    FOREIGN KEY (tenant, entity_id) REFERENCES entities (tenant, id)
) WITHOUT ROWID;

CREATE INDEX entity_supports_by_name ON entity_supports (tenant, entity_id, name);

CREATE INDEX entity_supports_described ON entity_supports (tenant, entity_id, document_id, version) WHERE description <> '';

CREATE TABLE mentions (
    tenant TEXT NOT NULL,
    document_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    chunk_id TEXT NOT NULL,
    entity_id TEXT NOT NULL,
    count INTEGER NOT NULL,
    about INTEGER NOT NULL,
    PRIMARY KEY (tenant, document_id, version, chunk_id, entity_id),
    FOREIGN KEY (tenant, entity_id) REFERENCES entities (tenant, id)
) WITHOUT ROWID;

CREATE INDEX mentions_by_entity ON mentions (tenant, entity_id, chunk_id);

CREATE TABLE relationships (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    source_id TEXT NOT NULL,
    target_id TEXT NOT NULL,
    relation TEXT NOT NULL,
    PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, source_id) REFERENCES entities (tenant, id),
    FOREIGN KEY (tenant, target_id) REFERENCES entities (tenant, id)
) WITHOUT ROWID;

CREATE INDEX relationships_by_source ON relationships (tenant, source_id, target_id);

CREATE INDEX relationships_by_target ON relationships (tenant, target_id);

-- A relationship's fact, weight and validity are derived from these rows, so that none outlives what said it.
CREATE TABLE relationship_supports (
    tenant TEXT NOT NULL,
    relationship_id TEXT NOT NULL,
    document_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    chunk_id TEXT NOT NULL,
    start_char INTEGER NOT NULL,
    end_char INTEGER NOT NULL,
    fact TEXT NOT NULL,
    weight REAL NOT NULL,
    valid_at TEXT,
    invalid_at TEXT,
    PRIMARY KEY (tenant, relationship_id, document_id, version, chunk_id, start_char),
    FOREIGN KEY (tenant, relationship_id) REFERENCES relationships (tenant, id)
) WITHOUT ROWID;

CREATE INDEX relationship_supports_by_document ON relationship_supports (tenant, document_id, version);

-- What `write_document` left of a version, in rows: whatever has fewer or more was damaged.
CREATE TABLE written_versions (
    tenant TEXT NOT NULL,
    document_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    names INTEGER NOT NULL,
    mentions INTEGER NOT NULL,
    sentences INTEGER NOT NULL,
    PRIMARY KEY (tenant, document_id, version)
) WITHOUT ROWID;

CREATE TABLE communities (
    tenant TEXT NOT NULL,
    generation INTEGER NOT NULL,
    id TEXT NOT NULL,
    level INTEGER NOT NULL,
    parent_id TEXT,
    fingerprint TEXT NOT NULL,
    entity_count INTEGER NOT NULL,
    PRIMARY KEY (tenant, generation, id)
) WITHOUT ROWID;

CREATE TABLE community_members (
    tenant TEXT NOT NULL,
    generation INTEGER NOT NULL,
    community_id TEXT NOT NULL,
    position INTEGER NOT NULL,
    entity_id TEXT NOT NULL,
    PRIMARY KEY (tenant, generation, community_id, position),
    FOREIGN KEY (tenant, generation, community_id) REFERENCES communities (tenant, generation, id) ON DELETE CASCADE
) WITHOUT ROWID;
