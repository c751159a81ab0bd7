// The type that a document gives the entity stands with the document's main name for it. An alias has no type, and the name of
// which it is an alias.
MATCH (e:Entity)-[:NAMED]->(n:EntityName)<-[c:CALLS]-() WHERE c.type IS NULL
CALL (e, n, c) {
    SET c.type = CASE WHEN n.name = e.name THEN e.type ELSE '' END, c.main = CASE WHEN n.name = e.name THEN '' ELSE e.name END
} IN TRANSACTIONS OF 10000 ROWS;
