"""The MCP server: sessions, gates and tasks as tools of an agent. Transport only; the engine decides."""
