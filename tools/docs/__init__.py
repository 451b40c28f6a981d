"""Parsers with which the tests read the documentation: Markdown, and the commands in it."""
