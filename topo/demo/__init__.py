"""The demo (`python -m topo.demo`): three Apache servers, one loaded; equal split against R, and kernel DNAT."""
