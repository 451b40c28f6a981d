"""The configuration: its fields, the reader of the file, and the checks."""
