// Lengths: the twin uses Tofino's controls. Unlike Tofino, the twin removes IPv4 options from a header, like the v1model program.
#ifndef SLUICE_TWIN_LENGTHS_P4
#define SLUICE_TWIN_LENGTHS_P4

#include "../../tna/externs/lengths.p4"

const bool TAKES_OPTIONS_OFF = true;

#endif
