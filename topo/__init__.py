"""The lab: networks around the sluice switch, real servers, real load, and the demo.

`python -m topo.demo` runs the demo and checks its results; `python -m topo.lab` opens an interactive prompt.
"""
