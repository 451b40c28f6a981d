// Counters for operators; no algorithm depends on these counters.
#ifndef SLUICE_TNA_COUNTERS_P4
#define SLUICE_TNA_COUNTERS_P4

// Counters with one cell for each service.
control ConnectionCounters(in metadata_t meta, in decided_t decided) {
    @id(COUNTER_OFFERED)
    Counter<bit<32>, service_id_t>(SERVICES, CounterType_t.PACKETS) offered;       // SYNs
    @id(COUNTER_REFUSED)
    Counter<bit<32>, service_id_t>(SERVICES, CounterType_t.PACKETS) refused;       // SYNs that admission refused
    @id(COUNTER_CLAIMED)
    Counter<bit<32>, service_id_t>(SERVICES, CounterType_t.PACKETS) claimed;       // connections that got a slot
    @id(COUNTER_UNPINNED_NEW)
    Counter<bit<32>, service_id_t>(SERVICES, CounterType_t.PACKETS) unpinned_new;  // SYNs that found both ways of the connection
                                                                                   // table taken
    @id(COUNTER_UNPINNED_MID)
    Counter<bit<32>, service_id_t>(SERVICES, CounterType_t.PACKETS) unpinned_mid;  // other packets without a pin

    apply {
        if (meta.event == Event.syn) {
            if (meta.pass == Pass.first) {
                offered.count(meta.service);
            }
            if (meta.claimed == 1) {
                claimed.count(meta.service);
            } else if (meta.pinned == 0) {
                if (decided.refused == REFUSED) {
                    refused.count(meta.service);
                } else if (meta.next_pass == Pass.first) {
                    unpinned_new.count(meta.service);
                }
            }
        } else if (meta.pinned == 0) {
            unpinned_mid.count(meta.service);
        }
    }
}

// Counters of the whole switch. Each packet is counted in `verdicts`; a packet that a stage has a reason to punt is also counted
// in `punts` or `punts_limited`.
control VerdictCounters(in verdict_t verdict, in bit<8> colour) {
    @id(COUNTER_VERDICTS)
    Counter<bit<64>, bit<8>>(REASONS, CounterType_t.PACKETS_AND_BYTES) verdicts;
    @id(COUNTER_PUNTS)
    Counter<bit<32>, bit<8>>(REASONS, CounterType_t.PACKETS) punts;
    @id(COUNTER_PUNTS_LIMITED)
    Counter<bit<32>, bit<8>>(REASONS, CounterType_t.PACKETS) punts_limited;

    apply {
        if (colour == RED && verdict.punt == PuntReason.arp) {        // an ARP reply has no other use than the punt
            verdicts.count((bit<8>)DropReason.punt_limited);
        } else {
            verdicts.count((bit<8>)verdict.drop);
        }
        if (verdict.punt != PuntReason.none) {
            if (colour == RED) {
                punts_limited.count((bit<8>)verdict.punt);
            } else {
                punts.count((bit<8>)verdict.punt);
            }
        }
    }
}

#endif
