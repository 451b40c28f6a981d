"""Runs packet tests in STF, the format of the p4c repository, through a switch's own interfaces.

`python -m tools.stf FOLDER` runs every `X.stf` of the folder with its program: `X.json` and `X.p4info.txtpb`, or `X.p4`
if p4c is on PATH. Each test starts its own switch. Entries are written over P4Runtime; packets go
through capture files, with the switch's option `--use-files`.
"""
