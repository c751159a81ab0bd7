"""The tenant directory on SQL, and the export and import of a whole tenant."""
