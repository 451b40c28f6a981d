"""Tests of the lab and of its programs."""
