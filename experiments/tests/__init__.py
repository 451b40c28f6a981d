"""Tests of the harness that runs the experiments, and of the figures that the experiments compute."""
