"""The tools that make the documentation: reference pages, the check of links, man pages, pictures."""
