// Empty controls: Tofino 1 has no content switching. Tofino 2's version (tna2/externs/splice_turns.p4) stores which device
// translates a content connection.
#ifndef SLUICE_TNA_SPLICE_TURNS_P4
#define SLUICE_TNA_SPLICE_TURNS_P4

bool may_have_slot(in Content content, in server_id_t agent) {
    return true;
}

control SpliceTurn1(in pin_slot_t slot, in look_t lookup, in compared_t result, inout metadata_t meta) {
    apply { }
}

control SpliceTurn2(in pin_slot_t slot, in look_t lookup, in compared_t result, inout metadata_t meta) {
    apply { }
}

#endif
