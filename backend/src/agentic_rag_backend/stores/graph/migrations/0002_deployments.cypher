// Several deployments may share a database: each has a name of its own in it, and its tenants carry its id.
CREATE CONSTRAINT unique_deployment IF NOT EXISTS FOR (n:Deployment) REQUIRE n.name IS UNIQUE;
