// Lengths as Tofino opens them; what it cannot do besides, v1model's twin can.
#ifndef SLUICE_TWIN_LENGTHS_P4
#define SLUICE_TWIN_LENGTHS_P4

#include "../../tna/externs/lengths.p4"

const bool TAKES_OPTIONS_OFF = true;

#endif
