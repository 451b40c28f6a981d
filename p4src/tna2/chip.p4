// Definitions that differ between Tofino 2 and Tofino 1 (tna/chip.p4): the architecture's include file, and the sizes of port
// metadata and resubmitted metadata.
#ifndef SLUICE_TNA2_CHIP_P4
#define SLUICE_TNA2_CHIP_P4

#include <t2na.p4>

// A port's metadata: the value that the control plane assigns to the port ($PORT_METADATA). It has 128 bits and is followed by 64
// zero bits before the frame.
typedef bit<128> port_metadata_t;

// Unused bits of the 128 bits of metadata of a resubmitted packet.
typedef bit<72> resubmit_rest_t;

// Bits that the parser skips between the resubmitted metadata and the frame.
const bit<32> RESUBMIT_GAP = 64;

#endif
