// Rates: measures the rate (bytes per time) at which servers send responses to clients, for a sample of all responses.
//
//   reads  path, inside, event, payload, clock, ipv4.total_length
//          connection: of a server's answer
//          flow: of a routed packet
//   writes the cells of rate_flow and rate_bytes
//   keys   rate_settings: none; step and share are parameters of its default action
//
// A response is a connection's data from inside, without SYN, SYN-ACK and bare ACKs (Chen & Heidemann, section 6.1). The size of
// a packet is the length of the IPv4 packet. The estimator is the time sliding window of Clark and Fang, which sets for each
// packet
//
//     bytes in the window <- (bytes in the window + size) * window / (window + time since the last packet)
//
// Time is counted here in steps, seven to a window; the length of a step is a power of two. Within a step, the size of each
// packet is added. The first packet of a later step multiplies the sum of the bytes in the window and its own size by 7/(7 +
// steps), rounded to a fraction that shifts and additions can compute; `steps` is the number of steps since the last packet:
//
//     steps   1      2, 3    4 .. 7   8 .. 15   16 .. 31   more
//     factor  7/8    3/4     9/16     3/8       1/4        0: only the packet's own bytes count; the slot is free
//
// (After one step the packet's own size is added undiminished: usually the packet is the first of many in its step.) The
// controller divides the bytes by the time that the window spans, 7 step + (last mod step), where (last mod step) is the elapsed
// part of the last packet's step.
#ifndef SLUICE_STAGES_RATES_P4
#define SLUICE_STAGES_RATES_P4

#include <externs/rate_cells.p4>

control Rates(in headers_t hdr, in metadata_t meta) {
    RateHash() rate_hash;
    RateFlow() flow;
    RateBytes() bytes;

    rate_time_t step;
    rate_key_t mask;
    rate_key_t flow_key;
    rate_key_t in_sample;
    rate_time_t step_mask;
    rate_time_t eight_steps;
    rate_left_t update;

    // `step_time`: length of a step in units of RATE_TICK_US, a power of two below TICK_BASE / 32; 0: no response is measured. A
    // response is measured if its fingerprint is zero in all bits of `flow_mask`.
    @id(ACTION_SET_RATES)
    action set_rates(rate_time_t step_time, rate_fingerprint_t flow_mask) {
        step = step_time;
        mask = flow_mask ++ (rate_slot_t)0;
    }

    @id(TABLE_RATE_SETTINGS)
    table rate_settings {
        actions = { set_rates; }
        default_action = set_rates(0, 0);
        size = 1;
    }

    @hidden
    action sample() {
        in_sample = flow_key & mask;
        step_mask = -step;
        eight_steps = step << 3;
    }

    apply {
        if (meta.payload != 0 && (meta.event == Event.payload || meta.event == Event.fin)) {
            if (meta.path == Path.from_server || (meta.path == Path.routed && meta.inside == 1)) {
                rate_settings.apply();
                if (step != 0) {
                    rate_hash.apply(meta, flow_key);
                    sample();
                    if (in_sample == 0) {
                        flow.apply(flow_key, meta.clock, step_mask, eight_steps, update);
                        bytes.apply(flow_key, update, hdr.ipv4.total_length);
                    }
                }
            }
        }
    }
}

#endif
