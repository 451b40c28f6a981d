// Balance: the server that a new connection would get, and the one for packets without a pin.
//
//   reads  service, connection, second_pass
//   writes choice: drawn by the weights that R decides; only a SYN asks for it
//          stable_choice: drawn by capacity; no change of weights ever touches it
//
// Both draws are hashes of the connection: the same packet draws the same server until the weights change. The second pass of a
// SYN whose server is ejected draws by another hash, or the share of probes that an ejected server keeps would never leave it.
#ifndef SLUICE_STAGES_BALANCE_P4
#define SLUICE_STAGES_BALANCE_P4

control Balance(inout metadata_t meta) {
    WeightedChoice() by_ratio;
    StableChoice() by_capacity;

    apply {
        if (meta.event == Event.syn) {
            by_ratio.apply(meta.service, meta.connection, meta.second_pass, meta.choice);
        }
        by_capacity.apply(meta.service, meta.connection, meta.stable_choice);
    }
}

#endif
