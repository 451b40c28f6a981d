// Balance: draws the server for a new connection, and the server for packets whose connection is not in the connection table.
//
//   reads  service, shares, flow, event, pass, preferred, attempt
//   writes choice, choice_weight: drawn by the weights that follow from the metric R, for a SYN only
//          other, other_weight, more (v1model): drawn from the other servers, if the service has a second look
//          loads.other: other, or choice if no other server was drawn
//          stable_choice: drawn by capacity, independently of the weights
//
// The server is drawn by a hash of the connection: a repeated packet draws the same server until the weights change. (On Tofino a
// second pass that renews a pin, a connection's entry, draws by another hash.) If the service's `shares` is not 0, v1model
// draws choice and other evenly instead: by the next two points of the service's Weyl sequence.
#ifndef SLUICE_STAGES_BALANCE_P4
#define SLUICE_STAGES_BALANCE_P4

#include <externs/choice.p4>

control Balance(inout metadata_t meta) {
    WeightedChoice() by_ratio;
    OtherChoice() other;
    StableChoice() by_capacity;

    apply {
        others_id_t others = 0;
        bit<16> point = 0;            // point of the unit interval for the next draw, in units of 1/65,536
        bool is_syn = meta.event == Event.syn;
        by_ratio.apply(meta, is_syn, others, point);
        if (meta.preferred != 0) {
            meta.choice = meta.preferred;
        } else if (others != 0 && meta.pass == Pass.first) {
            other.apply(meta, others, point);
        }
        if (meta.other == 0) {
            meta.loads.other = meta.choice;
        } else {
            meta.loads.other = meta.other;
        }
        by_capacity.apply(meta.service, meta.flow, meta.stable_choice);
    }
}

#endif
