// Findings: what the first stages hand the judge.
#ifndef SLUICE_TNA_FINDINGS_P4
#define SLUICE_TNA_FINDINGS_P4

#include "../common/metadata.p4"

// What each of the first stages has against a packet.
struct findings_t {
    bit<1>     sent;              // from the controller: it goes where it is sent; intake
    DropReason frame;             // parser, intake
    bit<1>     foreign;           // the frame is to another address than the router's; compare
    bit<1>     same;              // source and destination are; compare
    DropReason target;            // classify
    verdict_t  hop;               // hop_limit
#if defined(CONTENT)
    DropReason agent;             // agents
#endif
}

#endif
