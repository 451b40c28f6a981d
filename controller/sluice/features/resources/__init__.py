"""The feature of servers' TCP resources: buffers shared among transfers, idle connections closed."""
