"""BMv2's command lines on the embedded switch, so that runners written for BMv2 need no change.

With this folder on PATH, `simple_switch_grpc` links to the embedded switch, so that scripts find the process by
that name. `simple_switch` starts the embedded switch and takes the commands of `simple_switch_CLI` at
the port that is given for Thrift. It carries them out over P4Runtime, with P4Info derived from the program's JSON.
"""
