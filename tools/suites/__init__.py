"""Runs tests that other projects wrote for BMv2, unmodified, on the embedded switch, from the user's copy of them.

`tutorials` is p4lang/tutorials, `p4-guide` the PTF tests of jafingerhut/p4-guide, `onos` the pipelines of ONOS. Nothing
of them is in this repository: their files run from a temporary copy; only the expected outcomes are here.
"""
