// What differs from Tofino 1 (tna/chip.p4): the include file of the architecture, and the sizes of a port's and of resubmitted
// metadata.
#ifndef SLUICE_TNA2_CHIP_P4
#define SLUICE_TNA2_CHIP_P4

#include <t2na.p4>

// The value that the control plane assigns to a port ($PORT_METADATA): 128 of the 192 bits before the frame, followed by zeros.
typedef bit<128> port_metadata_t;

// Unused bits of the 128 bits that a resubmitted packet carries.
typedef bit<72> resubmit_rest_t;

// Bits between the resubmitted metadata and the frame.
const bit<32> RESUBMIT_GAP = 64;

#endif
