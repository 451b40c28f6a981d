"""Runs what others wrote for BMv2 on the embedded switch, unmodified, from a folder that the user has of it.

`tutorials` is p4lang/tutorials, `p4-guide` the PTF tests of jafingerhut/p4-guide, `onos` the pipelines of ONOS. Nothing
of them is part of this repository: their files run from a temporary copy, and only what they have to do is here.
"""
