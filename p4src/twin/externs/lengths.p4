// Lengths: Tofino's controls. v1model's program can also remove a header's IPv4 options, and so can the twin.
#ifndef SLUICE_TWIN_LENGTHS_P4
#define SLUICE_TWIN_LENGTHS_P4

#include "../../tna/externs/lengths.p4"

const bool TAKES_OPTIONS_OFF = true;

#endif
