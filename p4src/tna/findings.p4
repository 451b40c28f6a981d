// Findings: the results of the first stages, which the control Judge combines into the packet's path or drop reason.
#ifndef SLUICE_TNA_FINDINGS_P4
#define SLUICE_TNA_FINDINGS_P4

#include "../common/metadata.p4"

// The results of the first stages for a packet: possible drop reasons, and comparisons. After a semicolon: the field's writer.
struct findings_t {
    bit<1>     sent;              // the packet comes from the controller, which requests an egress port; set by intake
    DropReason frame;             // reason to drop the frame; set by parser, intake
    bit<1>     foreign;           // the frame's destination is not the router's MAC address; set by compare
    bit<1>     same;              // source and destination address are equal; set by compare
    DropReason target;            // reason to drop the packet because of its destination; set by classify
    verdict_t  hop;               // reasons to drop and punt the packet because of its TTL; set by hop_limit
#if defined(CONTENT)
    DropReason agent;             // reason to drop an agent's packet; set by agents
#endif
}

#endif
