"""Tests of the simulation: conservation, cases computed by hand, the same result for the same seed."""
