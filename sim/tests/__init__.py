"""Tests of the simulation: packets and requests are conserved, results equal those computed by hand, equal seeds give
equal results."""
