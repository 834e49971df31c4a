"""Tasks of other tools: reading them into drafts, drafts into documents, and documents out again as a checklist."""
