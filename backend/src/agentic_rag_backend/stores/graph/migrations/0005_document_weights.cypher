// The weight counts every document that states the relationship, and each document once. A position begins with the document and a tab.
MATCH ()-[r:RELATES_TO]->() WHERE r.id IS NOT NULL
CALL (r) {
    CALL (r) {
        MATCH ()-[s:STATES]->() USING INDEX SEEK s:STATES(group_id, edge) WHERE s.group_id = r.group_id AND s.edge = r.uuid
        WITH split(s.position, '\t')[0] AS document, max(s.weight) AS weight
        RETURN round(sum(weight), 3) AS weight
    }
    SET r.weight = weight
} IN TRANSACTIONS OF 10000 ROWS;
