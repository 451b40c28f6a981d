// Departure: forwards a packet, and counts it.
//
//   reads  path, flow.dst, agent_address, guessed, drop
//          what checksums, forward, splice, tag, ledger and rates read
//   writes ipv4.dst: for forward, if the packet goes to an agent instead of to its destination
//          what checksums, forward, splice and tag write
//   drops  what forward drops
//   punts  what forward punts
#ifndef SLUICE_V1MODEL_DEPARTURE_P4
#define SLUICE_V1MODEL_DEPARTURE_P4

control Departure(inout headers_t hdr, inout metadata_t meta, inout verdict_t outcome) {
    AdjustChecksums() adjust_checksums;
    @name(".SluiceIngress.forward")
    Forward() forward;
    @name(".SluiceIngress.tag")
    Tag() tag;
    Guessed() guessed;
    @name(".SluiceIngress.ledger")
    Ledger() ledger;
    @name(".SluiceIngress.rates")
    Rates() rates;

    apply {
        if (meta.path == Path.to_service || meta.path == Path.from_server)  adjust_checksums.apply(hdr, meta);

        // In the agent's turn a server's answer is routed to the agent, but keeps the client as its destination.
        if (meta.agent_address != 0)                                        hdr.ipv4.dst = meta.agent_address;
        forward.apply(hdr, outcome);
        if (meta.agent_address != 0)                                        hdr.ipv4.dst = meta.flow.dst;
        if (outcome.drop == DropReason.none)                                tag.apply(hdr, outcome.egress_port);
        // A packet that waits at the controller for its neighbour does not pass the pipeline again, so it is counted here.
        if (outcome.drop == DropReason.none || outcome.drop == DropReason.neighbour_unresolved) {
            if (hdr.guessed.isValid())                                      guessed.apply(hdr);
            ledger.apply(meta);
            if (meta.agent_address == 0 && outcome.drop == DropReason.none) rates.apply(hdr, meta);
        }
    }
}

#endif
