"""The concept pages: Markdown files that `detent help TOPIC` shows and the documentation includes."""
