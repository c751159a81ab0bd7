// The heaviest edges of a hub are read from the end of an index. The weight follows from the statements, as the fact does.
MATCH ()-[r:RELATES_TO]->() WHERE r.id IS NOT NULL AND r.weight IS NULL
CALL (r) {
    OPTIONAL MATCH ()-[s:STATES]->() USING INDEX SEEK s:STATES(group_id, edge) WHERE s.group_id = r.group_id AND s.edge = r.uuid
    WITH r, max(s.weight) AS weight
    SET r.weight = coalesce(weight, 0.0)
} IN TRANSACTIONS OF 10000 ROWS;
CREATE INDEX relationship_by_source_weight IF NOT EXISTS FOR ()-[r:RELATES_TO]-() ON (r.group_id, r.source_node_uuid, r.weight, r.id);
CREATE INDEX relationship_by_target_weight IF NOT EXISTS FOR ()-[r:RELATES_TO]-() ON (r.group_id, r.target_node_uuid, r.weight, r.id);
