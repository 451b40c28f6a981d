"""The common part of the packet tests: target, frames, table entries, and the base class that checks all effects."""
