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

        // While the agent translates, a server's answer is routed to the agent, with the client as destination address.
        if (meta.agent_address != 0)                                        hdr.ipv4.dst = meta.agent_address;
        forward.apply(hdr, outcome);
        if (meta.agent_address != 0) {
            hdr.ipv4.dst = meta.flow.dst;
            // If the agent's address has no neighbour id, the agent was removed, and the packet is not punted: the controller
            // would try to resolve the packet's destination, the client, instead of the agent.
            if (outcome.neighbour == 0)                                     outcome.punt = PuntReason.none;
        }
        if (outcome.drop == DropReason.none)                                tag.apply(hdr, outcome.egress_port);
        // A packet for which the controller must resolve the next hop is counted here, because it does not pass the pipeline
        // again.
        if (outcome.drop == DropReason.none || outcome.drop == DropReason.neighbour_unresolved) {
            if (hdr.guessed.isValid())                                      guessed.apply(hdr);
            ledger.apply(meta);
            if (meta.agent_address == 0 && outcome.drop == DropReason.none) rates.apply(hdr, meta);
        }
    }
}

#endif
