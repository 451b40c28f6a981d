"""BMv2's command lines for the embedded switch, so that test runners written for BMv2 need no change.

With this folder on PATH, `simple_switch_grpc` is a link to the embedded switch, so that scripts find the process under
that name. `simple_switch` starts the embedded switch, and accepts the commands of `simple_switch_CLI` at the port that
the command line specifies for Thrift. It executes these commands over P4Runtime, with P4Info derived from the program's
JSON.
"""
