"""A pure model of the data plane: its input is packets and times, its output decisions and register cells.

Simulation, replay and packet tests share this model. The packet tests `model` and `rates` compare it with the compiled
program.
"""
