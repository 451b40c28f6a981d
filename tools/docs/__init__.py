"""How the tests look at the docs: Markdown, and the commands in it."""
