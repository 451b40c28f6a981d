"""Sharing of a server's TCP resources as in the papers. Pure: without a switch and without a clock.

Matsuo, Hasegawa, Murata & Miyahara (SABT) share send buffers by what each connection can use. Azuma, Okamoto, Hasegawa
& Murata (E-ATBT) add receive buffers, the two sides of a proxy, and the closing of idle persistent connections.
"""
