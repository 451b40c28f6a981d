// Sampling: samples the destinations of packets to services, and of routed packets from outside, so that the controller finds a
// hot spot.
//
//   reads  inward, flow, pass
//   writes the ring of sampled destinations
//   keys   sampling: none; the share is a parameter of its default action
//
// The sampled destination is that of the packet as received, before limits and translation: it shows what clients requested.
#ifndef SLUICE_STAGES_SAMPLING_P4
#define SLUICE_STAGES_SAMPLING_P4

#include <externs/samples.p4>

control Sampling(in metadata_t meta) {
    Draw() draw;
    SampleRing() ring;

    bit<32> share;
    bit<16> drawn;
    bit<32> below;

    // `packets`: the number of packets of 65,536 that are sampled; 0: none.
    @id(ACTION_SET_SAMPLING)
    action set_sampling(bit<32> packets) {
        share = packets;
    }

    @id(TABLE_SAMPLING)
    table sampling {
        actions = { set_sampling; }
        default_action = set_sampling(0);
        size = 1;
    }

    @hidden
    action weigh() {
        below = share |-| (bit<32>)drawn;
    }

    apply {
        share = 0;
        if (meta.inward == 1 && meta.pass == Pass.first) {
            sampling.apply();
        }
        draw.apply(share, drawn);
        weigh();
        ring.apply(below, meta.flow.dst);
    }
}

#endif
