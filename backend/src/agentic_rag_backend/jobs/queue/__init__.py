"""The durable queue, and the table, notifications and claims that it works with."""
