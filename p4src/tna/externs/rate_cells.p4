// Registers of the response rates. A stateful unit has one output, so two registers store the fingerprint and time of a slot's
// response and the step of the last packet. A stateful unit cannot shift; its math unit multiplies a cell by one constant
// fraction. So the window's bytes are multiplied by 3/4 after one to seven steps; later only the packet's own bytes count.
#ifndef SLUICE_TNA_RATE_CELLS_P4
#define SLUICE_TNA_RATE_CELLS_P4

// The outputs of two stateful units, which determine the operation on the window's bytes.
struct rate_left_t {
    compared_t owner;         // from rate_flow: whether the slot belongs to this response, and whether the slot is free
    compared_t steps;         // from rate_last: whether the last packet was in this step, and whether eight steps have passed
                              // since that packet
}

// Computes a response's slot and fingerprint: one CRC-32 over an order of fields that no other hash uses (the protocol is always
// TCP). The low bits are the slot. All 32 bits are the fingerprint, because the inputs of stateful units are whole bytes. The
// sample of responses is selected by the fingerprint's high bits, so that every slot is used whatever the sampled share is.
control RateHash(in metadata_t meta, out rate_key_t flow_key) {
    Hash<rate_key_t>(HashAlgorithm_t.CRC32) hash_key;

    apply {
        flow_key = hash_key.get({ meta.connection.service, meta.connection.service_port, meta.connection.client_port,
                             meta.connection.client });
    }
}

// The response that occupies a slot, and the time of its last packet. A slot is free if this time is more than 32 steps
// (RATE_SLOT_TICKS, a constant of the register) before `now`. A second register stores the step of the last packet.
struct rate_flow_t {
    bit<32> fingerprint;
    bit<32> last;
}

control RateFlow(in rate_key_t flow_key, in rate_time_t now, in rate_time_t step_mask, in rate_time_t eight_steps, out rate_left_t update) {
    rate_time_t now_whole;
    rate_time_t eight_ago;

    @id(REGISTER_RATE_FLOW)
    Register<rate_flow_t, rate_slot_t>(RATE_FLOWS, { 0, 0 }) rate_flow;
    RegisterAction<rate_flow_t, rate_slot_t, compared_t>(rate_flow) take = {
        void apply(inout rate_flow_t cell, out compared_t compared) {
            compared = this.predicate(cell.fingerprint == flow_key, (int<32>)(now - cell.last) > RATE_SLOT_TICKS);
            if (cell.fingerprint == flow_key || (int<32>)(now - cell.last) > RATE_SLOT_TICKS) {
                cell.fingerprint = flow_key;
                cell.last = now;
            }
        }
    };

    @id(REGISTER_RATE_LAST)
    Register<bit<32>, rate_slot_t>(RATE_FLOWS, 0) rate_last;
    RegisterAction<bit<32>, rate_slot_t, compared_t>(rate_last) pass = {
        void apply(inout bit<32> cell, out compared_t compared) {
            compared = this.predicate(cell == now_whole, (int<32>)(cell - eight_ago) <= 0);
            cell = now_whole;
        }
    };

    @hidden
    action do_take() {
        update.owner = take.execute((rate_slot_t)flow_key);
        now_whole = now & step_mask;
        eight_ago = now - eight_steps;
    }

    @hidden
    action do_pass() {
        update.steps = pass.execute((rate_slot_t)flow_key);
    }

    apply {
        do_take();
        if (update.owner == ONLY_FIRST || update.owner == ONLY_SECOND || update.owner == BOTH) {
            do_pass();
        }
    }
}

// The bytes in a response's window. The unit adds the math unit's output only to a word of the cell, not to an input. So the size
// of the first packet of a step is stored in the word `first`, and is added at the first packet of a later step.
struct rate_bytes_t {
    bit<32> bytes;
    bit<32> first;
}

control RateBytes(in rate_key_t flow_key, in rate_left_t update, in bit<16> size) {
    @id(REGISTER_RATE_BYTES)
    Register<rate_bytes_t, rate_slot_t>(RATE_FLOWS, { 0, 0 }) rate_bytes;
    MathUnit<bit<32>>(MathOp_t.MUL, 3, 4) three_quarters;

    RegisterAction<rate_bytes_t, rate_slot_t, bit<32>>(rate_bytes) start = {
        void apply(inout rate_bytes_t cell) {
            cell.bytes = (bit<32>)size;
            cell.first = 0;
        }
    };
    RegisterAction<rate_bytes_t, rate_slot_t, bit<32>>(rate_bytes) keep = {
        void apply(inout rate_bytes_t cell) {
            cell.bytes = cell.bytes |+| (bit<32>)size;
        }
    };
    RegisterAction<rate_bytes_t, rate_slot_t, bit<32>>(rate_bytes) fade = {
        void apply(inout rate_bytes_t cell) {
            cell.bytes = three_quarters.execute(cell.bytes) + cell.first;
            cell.first = (bit<32>)size;
        }
    };

    @hidden
    action do_start() {
        start.execute((rate_slot_t)flow_key);
    }

    @hidden
    action do_keep() {
        keep.execute((rate_slot_t)flow_key);
    }

    @hidden
    action do_fade() {
        fade.execute((rate_slot_t)flow_key);
    }

    @hidden
    action leave() { }

    @hidden
    table operation {
        key = {
            update.owner : ternary @name("owner");
            update.steps : ternary @name("steps");
        }
        actions = { do_start; do_keep; do_fade; leave; }
        const entries = {
            (ONLY_FIRST, ONLY_FIRST)  : do_keep();
            (ONLY_FIRST, ONLY_SECOND) : do_start();
            (ONLY_FIRST, _)           : do_fade();
            (ONLY_SECOND, _)          : do_start();
            (BOTH, _)                 : do_start();
        }
        const default_action = leave();
    }

    apply {
        operation.apply();
    }
}

#endif
