// What Tofino 2 has otherwise than Tofino 1 (tna/chip.p4): the architecture's file, and the size of a port's metadata.
#ifndef SLUICE_TNA2_CHIP_P4
#define SLUICE_TNA2_CHIP_P4

#include <t2na.p4>

// What the control plane gives a port ($PORT_METADATA): 128 of the 192 bits in front of the frame. Zeros are behind it.
typedef bit<128> port_metadata_t;

// What is left of the 128 bits that a resubmitted packet takes along.
typedef bit<72> resubmit_rest_t;

// Bits between those and the frame.
const bit<32> RESUBMIT_GAP = 64;

#endif
