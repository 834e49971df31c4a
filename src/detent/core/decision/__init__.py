"""What a person signs, and whose signature counts."""
