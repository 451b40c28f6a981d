// Departure: forwards a packet, and counts it.
//
//   reads  path, guessed, drop, neighbour
//          what checksums, forward, splice, tag, ledger and rates read
//   writes what checksums, forward, splice and tag write
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

        // A packet to an agent is not part of a response to the client, so rates does not count it.
        bool is_to_agent = outcome.neighbour != 0;
        forward.apply(hdr, outcome);
        if (outcome.drop == DropReason.none)                                tag.apply(hdr, outcome.egress_port);
        // A packet for which the controller must resolve the next hop is counted here, because it does not pass the pipeline
        // again.
        if (outcome.drop == DropReason.none || outcome.drop == DropReason.neighbour_unresolved) {
            if (hdr.guessed.isValid())                                      guessed.apply(hdr);
            ledger.apply(meta);
            if (!is_to_agent && outcome.drop == DropReason.none)            rates.apply(hdr, meta);
        }
    }
}

#endif
