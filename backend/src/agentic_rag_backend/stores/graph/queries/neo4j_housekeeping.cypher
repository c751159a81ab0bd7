// name: list_tenants
MATCH (t:Tenant) WHERE $deployment IS NULL OR t.deployment = $deployment
WITH t
WHERE EXISTS { MATCH (e:Entity) WHERE e.group_id = t.group_id }
    OR EXISTS { MATCH (v:DocumentVersion) USING INDEX SEEK v:DocumentVersion(group_id, document_id, version) WHERE v.group_id = t.group_id AND v.document_id IS NOT NULL AND v.version IS NOT NULL }
    OR EXISTS { MATCH (k:ThemeRecord) USING INDEX SEEK k:ThemeRecord(group_id, generation) WHERE k.group_id = t.group_id AND k.generation IS NOT NULL }
RETURN t.group_id AS tenant ORDER BY tenant;
