// Computes a connection's index in registers that have one cell for each slot of both ways.
#ifndef SLUICE_V1MODEL_FLOW_INDEX_P4
#define SLUICE_V1MODEL_FLOW_INDEX_P4

bit<32> flow_index(in bit<1> way, in pin_slot_t slot_1, in pin_slot_t slot_2) {
    bit<32> index = (bit<32>)slot_1;
    if (way == 1) {
        index = CONNECTION_SLOTS + (bit<32>)slot_2;
    }
    return index;
}

#endif
