"""The tenant directory, and the export and import of a whole tenant."""
