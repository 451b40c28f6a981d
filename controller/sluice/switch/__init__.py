"""Programs a switch over P4Runtime: one module for each stage of the P4 program, and the session that they share."""

import os

# Without this setting, gRPC's C core logs connection attempts to standard error. The core reads the variable when it is
# loaded.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
