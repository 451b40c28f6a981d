"""The lab: networks around the sluice switch, real servers, real load, and the demo.

`python -m topo.demo` runs the main job and checks itself, `python -m topo.lab` opens the prompt.
"""
