// Counters for operators; no algorithm depends on these counters.
#ifndef SLUICE_V1MODEL_COUNTERS_P4
#define SLUICE_V1MODEL_COUNTERS_P4

// Counters with one cell for each service.
control ConnectionCounters(in metadata_t meta, in decided_t decided) {
    @id(COUNTER_OFFERED)
    counter(SERVICES, CounterType.packets) offered;       // SYNs
    @id(COUNTER_REFUSED)
    counter(SERVICES, CounterType.packets) refused;       // SYNs that admission refused
    @id(COUNTER_CLAIMED)
    counter(SERVICES, CounterType.packets) claimed;       // connections that got a slot
    @id(COUNTER_UNPINNED_NEW)
    counter(SERVICES, CounterType.packets) unpinned_new;  // SYNs that found both ways of the connection table taken
    @id(COUNTER_UNPINNED_MID)
    counter(SERVICES, CounterType.packets) unpinned_mid;  // other packets without a pin

    apply {
        bit<32> service = (bit<32>)meta.service;
        if (meta.event == Event.syn) {
            if (meta.pass == Pass.first) {
                offered.count(service);
            }
            if (meta.claimed == 1) {
                claimed.count(service);
            } else if (meta.pinned == 0) {
                if (decided.refused == REFUSED) {
                    refused.count(service);
                } else if (meta.next_pass == Pass.first) {
                    unpinned_new.count(service);
                }
            }
        } else if (meta.pinned == 0) {
            unpinned_mid.count(service);
        }
    }
}

// Counters of the whole switch. Each packet is counted in `verdicts`; a packet that a stage has a reason to punt is also counted
// in `punts` or `punts_limited`.
control VerdictCounters(in verdict_t verdict, in PuntReason punt_reason) {
    @id(COUNTER_VERDICTS)
    counter(REASONS, CounterType.packets_and_bytes) verdicts;
    @id(COUNTER_PUNTS)
    counter(REASONS, CounterType.packets) punts;
    @id(COUNTER_PUNTS_LIMITED)
    counter(REASONS, CounterType.packets) punts_limited;

    apply {
        verdicts.count((bit<32>)(bit<8>)verdict.drop);
        if (verdict.punt != PuntReason.none) {
            punts.count((bit<32>)(bit<8>)verdict.punt);
        } else if (punt_reason != PuntReason.none) {
            punts_limited.count((bit<32>)(bit<8>)punt_reason);
        }
    }
}

#endif
