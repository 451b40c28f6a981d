"""Runs tests that other projects wrote for BMv2. The tests run unchanged, on the embedded switch or on BMv2 itself.

`tutorials` is p4lang/tutorials, `p4-guide` is the PTF tests of jafingerhut/p4-guide, and `onos` is the pipelines of
ONOS. This repository contains only the expected outcomes. The user supplies the other projects' files; the scripts of
`tutorials` and `p4-guide` run in a copy of them.
"""
