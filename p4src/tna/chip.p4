// Definitions that differ between Tofino 1 and Tofino 2 (tna2/chip.p4): the architecture's include file, and the sizes of port
// metadata and resubmitted metadata.
#ifndef SLUICE_TNA_CHIP_P4
#define SLUICE_TNA_CHIP_P4

#include <tna.p4>

// A port's metadata: the value that the control plane assigns to the port ($PORT_METADATA).
typedef bit<64> port_metadata_t;

// Unused bits of the 64 bits of metadata of a resubmitted packet.
typedef bit<8> resubmit_rest_t;

// Bits that the parser skips between the resubmitted metadata and the frame.
const bit<32> RESUBMIT_GAP = 0;

#endif
