"""A server's TCP resources, shared as the papers have it: pure, without a switch and without a clock.

Matsuo, Hasegawa, Murata & Miyahara (SABT) share send buffers by what each connection can use. Azuma, Okamoto, Hasegawa
& Murata (E-ATBT) add receive buffers, the two sides of a proxy, and the closing of idle persistent connections.
"""
