"""The base of the packet tests: a target, its control, frames, and the test case that checks packets and state."""
