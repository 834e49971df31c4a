"""Any agent that speaks the Agent Client Protocol (ACP) over its standard streams."""
