"""Tests of the experiments' harness and of what they compute."""
