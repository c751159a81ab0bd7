-- The weight counts every document that states the relationship, and each document once.
UPDATE relationships SET weight = stated.weight
FROM (
    SELECT tenant, relationship_id, ROUND(SUM(weight), 3) AS weight FROM (
        SELECT tenant, relationship_id, MAX(weight) AS weight FROM relationship_supports GROUP BY tenant, relationship_id, document_id
    ) GROUP BY tenant, relationship_id
) AS stated
WHERE relationships.tenant = stated.tenant AND relationships.id = stated.relationship_id AND relationships.weight <> stated.weight;
