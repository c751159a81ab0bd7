// Each statement is a transaction of its own and repeatable: an interrupted run goes on where it stopped.
// Graphiti's plain indexes on uuid stand in the way of the constraints. Created after them, they are skipped.
DROP INDEX entity_uuid IF EXISTS;
DROP INDEX episode_uuid IF EXISTS;
DROP INDEX community_uuid IF EXISTS;
DROP INDEX relation_uuid IF EXISTS;
DROP INDEX mention_uuid IF EXISTS;
DROP INDEX has_member_uuid IF EXISTS;
CREATE CONSTRAINT unique_entity IF NOT EXISTS FOR (n:Entity) REQUIRE n.uuid IS UNIQUE;
CREATE CONSTRAINT unique_episode IF NOT EXISTS FOR (n:Episodic) REQUIRE n.uuid IS UNIQUE;
CREATE CONSTRAINT unique_community IF NOT EXISTS FOR (n:Community) REQUIRE n.uuid IS UNIQUE;
CREATE CONSTRAINT unique_relationship IF NOT EXISTS FOR ()-[r:RELATES_TO]-() REQUIRE r.uuid IS UNIQUE;
CREATE CONSTRAINT unique_mention IF NOT EXISTS FOR ()-[r:MENTIONS]-() REQUIRE r.uuid IS UNIQUE;
CREATE CONSTRAINT unique_membership IF NOT EXISTS FOR ()-[r:HAS_MEMBER]-() REQUIRE r.uuid IS UNIQUE;
// What is ours alone.
CREATE CONSTRAINT unique_tenant IF NOT EXISTS FOR (n:Tenant) REQUIRE n.group_id IS UNIQUE;
CREATE CONSTRAINT unique_document IF NOT EXISTS FOR (n:Document) REQUIRE n.uuid IS UNIQUE;
CREATE CONSTRAINT unique_version IF NOT EXISTS FOR (n:DocumentVersion) REQUIRE n.uuid IS UNIQUE;
CREATE CONSTRAINT unique_name IF NOT EXISTS FOR (n:EntityName) REQUIRE n.uuid IS UNIQUE;
CREATE CONSTRAINT unique_theme IF NOT EXISTS FOR (n:ThemeRecord) REQUIRE n.uuid IS UNIQUE;
CREATE CONSTRAINT unique_statement IF NOT EXISTS FOR ()-[r:STATES]-() REQUIRE r.uuid IS UNIQUE;
// What is looked up, the tenant first.
CREATE INDEX entity_by_id IF NOT EXISTS FOR (n:Entity) ON (n.group_id, n.id);
CREATE INDEX entity_by_name IF NOT EXISTS FOR (n:Entity) ON (n.group_id, n.name);
CREATE INDEX episode_group_id IF NOT EXISTS FOR (n:Episodic) ON (n.group_id);
CREATE INDEX entity_group_id IF NOT EXISTS FOR (n:Entity) ON (n.group_id);
CREATE INDEX community_group_id IF NOT EXISTS FOR (n:Community) ON (n.group_id);
CREATE INDEX name_by_normalised IF NOT EXISTS FOR (n:EntityName) ON (n.group_id, n.normalised);
CREATE INDEX document_by_id IF NOT EXISTS FOR (n:Document) ON (n.group_id, n.id);
CREATE INDEX version_by_document IF NOT EXISTS FOR (n:DocumentVersion) ON (n.group_id, n.document_id, n.version);
CREATE INDEX theme_by_generation IF NOT EXISTS FOR (n:ThemeRecord) ON (n.group_id, n.generation);
CREATE INDEX relationship_by_id IF NOT EXISTS FOR ()-[r:RELATES_TO]-() ON (r.group_id, r.id);
CREATE INDEX mention_by_position IF NOT EXISTS FOR ()-[r:MENTIONS]-() ON (r.group_id, r.position);
CREATE INDEX call_by_position IF NOT EXISTS FOR ()-[r:CALLS]-() ON (r.group_id, r.position);
CREATE INDEX statement_by_position IF NOT EXISTS FOR ()-[r:STATES]-() ON (r.group_id, r.position);
CREATE INDEX statement_by_edge IF NOT EXISTS FOR ()-[r:STATES]-() ON (r.group_id, r.edge);
