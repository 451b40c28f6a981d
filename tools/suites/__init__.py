"""Runs tests that other projects wrote for BMv2 on the embedded switch, without changes, from the user's copy of them.

`tutorials` is p4lang/tutorials, `p4-guide` is the PTF tests of jafingerhut/p4-guide, and `onos` is the pipelines of
ONOS. This repository contains none of their files, which run from a temporary copy; it contains only the expected
outcomes.
"""
