// What Tofino 1 has otherwise than Tofino 2 (tna2/chip.p4): the architecture's file, and the size of a port's metadata.
#ifndef SLUICE_TNA_CHIP_P4
#define SLUICE_TNA_CHIP_P4

#include <tna.p4>

// What the control plane gives a port ($PORT_METADATA).
typedef bit<64> port_metadata_t;

// What is left of the 64 bits that a resubmitted packet takes along.
typedef bit<8> resubmit_rest_t;

// Bits between those and the frame.
const bit<32> RESUBMIT_GAP = 0;

#endif
