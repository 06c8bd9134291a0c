"""Show a run as a table, JSON, JUnit or Markdown, and the catalogue as a page."""
