"""A pure model of the data plane: it takes packets and a time, and returns decisions and register cells.

Simulation, replay and packet tests share it. The packet tests `model` and `rates` compare it with the compiled program.
"""
