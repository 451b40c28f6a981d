"""Every figure and table of the papers, and today's alternatives, from one command: `make experiments`."""
