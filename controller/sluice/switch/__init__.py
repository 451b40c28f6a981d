"""What the switch is made to do: one module per stage of the P4 program, and the session they share."""

import os

# gRPC's C core writes connection chatter to standard error unless told not to; it reads this when it is loaded.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
