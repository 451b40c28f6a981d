"""What the packet tests stand on: a target, its control, frames, and the test case that checks packets and state."""
