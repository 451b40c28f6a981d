// Sampling: which destinations the packets towards inside have, for the search of a hot spot.
//
//   reads  path, inside, flow, second_pass
//   writes the ring of sampled destinations
//   keys   sampling: none; the share is a parameter of its default action
//
// In front of translate and of every limit: what is sampled is what clients asked for, not what they got.
#ifndef SLUICE_STAGES_SAMPLING_P4
#define SLUICE_STAGES_SAMPLING_P4

control Sampling(in headers_t hdr, in metadata_t meta) {
    Draw() draw;
    SampleRing() ring;

    bit<32> share;
    bit<16> drawn;
    bit<32> below;

    // In 65,536ths; 0: off.
    @id(0x01000019)
    action set_sampling(bit<32> packets) {
        share = packets;
    }

    @id(0x0200000e)
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
        if (meta.second_pass == 0 && (meta.path == Path.to_service || meta.inside == 0)) {
            sampling.apply();
            if (share != 0) {
                draw.apply(drawn);
                weigh();
                if (below != 0) {
                    ring.apply(hdr.ipv4.dst);
                }
            }
        }
    }
}

#endif
