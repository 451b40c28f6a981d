"""The configuration: its fields, how a file becomes one, and what is wrong with it."""
