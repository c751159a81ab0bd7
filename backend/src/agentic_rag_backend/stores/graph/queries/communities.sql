-- name: delete_generation
DELETE FROM communities WHERE tenant = :tenant AND generation = :generation;

-- name: delete_generations_below
DELETE FROM communities WHERE tenant = :tenant AND generation < :generation;

-- name: generations
SELECT DISTINCT generation FROM communities WHERE tenant = :tenant ORDER BY generation;

-- name: add_community
INSERT INTO communities (tenant, generation, id, level, parent_id, fingerprint, entity_count)
VALUES (:tenant, :generation, :id, :level, :parent, :fingerprint, :entity_count);

-- name: add_community_member
INSERT INTO community_members (tenant, generation, community_id, position, entity_id)
VALUES (:tenant, :generation, :community, :position, :entity);

-- name: communities_of_generation
SELECT id, level, parent_id, fingerprint, entity_count FROM communities
WHERE tenant = :tenant AND generation = :generation AND (:level IS NULL OR level = :level)
ORDER BY level, entity_count DESC, id;

-- name: communities_by_id
SELECT id, level, parent_id, fingerprint, entity_count FROM communities
WHERE tenant = :tenant AND generation = :generation AND (:level IS NULL OR level = :level)
    AND id IN (SELECT value FROM json_each(:ids))
ORDER BY level, entity_count DESC, id;

-- name: members_of_communities
SELECT community_id, entity_id FROM community_members
WHERE tenant = :tenant AND generation = :generation AND community_id IN (SELECT value FROM json_each(:ids))
ORDER BY community_id, position;
