-- Another value after every write of knowledge, in the same transaction: equal values mean that nothing was written between.
CREATE TABLE knowledge_revisions (
    tenant TEXT NOT NULL,
    revision TEXT NOT NULL,
    PRIMARY KEY (tenant)
) WITHOUT ROWID;
