"""Reproduces figures and tables of the papers, and compares sluice with current load balancers: `make experiments`."""
