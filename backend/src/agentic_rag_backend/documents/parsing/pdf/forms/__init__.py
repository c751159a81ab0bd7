"""Values of form fields, and texts of annotations."""
