"""BMv2's command lines on the embedded switch, so that runners written for BMv2 need no change.

With this folder on PATH, `simple_switch_grpc` is the embedded switch itself: a link, so that others find the process by
that name. `simple_switch` starts the embedded switch and takes the commands of `simple_switch_CLI` at
the port that is given for Thrift. They are carried out over P4Runtime, by P4Info made of the program's JSON.
"""
