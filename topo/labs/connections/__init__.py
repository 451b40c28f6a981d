"""Very many connections, made segment by segment: their clients, their servers, and who sees which server each reaches.

Nobody of them is a kernel: a process has a socket for frames at each end, and handles thousands at a time.
"""
