"""Figures and tables of Ohta & Andou and Chen & Heidemann, and today's alternatives: `make experiments`."""
