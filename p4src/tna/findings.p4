// Findings: the results of the first stages, which the judge combines.
#ifndef SLUICE_TNA_FINDINGS_P4
#define SLUICE_TNA_FINDINGS_P4

#include "../common/metadata.p4"

// The results of the first stages for a packet: possible drop reasons, and comparisons.
struct findings_t {
    bit<1>     sent;              // the controller sends the packet to a port; intake
    DropReason frame;             // drop reason of the frame; parser, intake
    bit<1>     foreign;           // the frame's destination is not the router's MAC address; compare
    bit<1>     same;              // source and destination address are equal; compare
    DropReason target;            // drop reason of the destination; classify
    verdict_t  hop;               // drop and punt reasons of the TTL; hop_limit
#if defined(CONTENT)
    DropReason agent;             // drop reason of an agent's packet; agents
#endif
}

#endif
