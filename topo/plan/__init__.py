"""Definitions that lab and simulation share: networks, loads, and the evaluation of results."""
