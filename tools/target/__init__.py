"""A switch with files in place of interfaces, as tools start it: the process, its P4Runtime session, its captures."""

import os

# gRPC tells of every process that is started while calls are under way.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
