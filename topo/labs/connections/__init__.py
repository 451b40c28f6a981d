"""A lab of up to a million connections: their clients, their servers, and an observer that records which server each
connection reaches.

No kernel's TCP takes part. Clients and servers are processes with raw sockets that create each segment and handle
thousands of segments at a time.
"""
