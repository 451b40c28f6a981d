"""The configuration: its fields, how a file is read, and the checks."""
