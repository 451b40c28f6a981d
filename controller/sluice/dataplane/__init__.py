"""A model of the data plane: packets and a time in, decisions and register cells out. Pure.

Simulation, replay and packet tests share it. The packet tests `model` and `rates` hold it against the compiled program.
"""
