"""The durable queue on DBOS, and the tables, notifications and claims that it works with."""
