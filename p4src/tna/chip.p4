// What differs from Tofino 2 (tna2/chip.p4): the include file of the architecture, and the sizes of a port's and of resubmitted
// metadata.
#ifndef SLUICE_TNA_CHIP_P4
#define SLUICE_TNA_CHIP_P4

#include <tna.p4>

// The value that the control plane assigns to a port ($PORT_METADATA).
typedef bit<64> port_metadata_t;

// Unused bits of the 64 bits that a resubmitted packet carries.
typedef bit<8> resubmit_rest_t;

// Bits between the resubmitted metadata and the frame.
const bit<32> RESUBMIT_GAP = 0;

#endif
