// Draws random numbers, and writes sampled destinations into a ring.
#ifndef SLUICE_TNA_SAMPLES_P4
#define SLUICE_TNA_SAMPLES_P4

control Draw(in bit<32> share, out bit<16> drawn) {
    Random<bit<16>>() random;

    apply {
        drawn = random.get();
    }
}

// Writes a destination into the ring. `sample_next` counts all samples; its low bits are the next sample's index in the ring.
control SampleRing(in bit<32> sampled, in ipv4_t destination) {
    bit<32> place;

    @id(REGISTER_SAMPLE_NEXT)
    Register<bit<32>, bit<1>>(1, 0) sample_next;
    RegisterAction<bit<32>, bit<1>, bit<32>>(sample_next) next = {
        void apply(inout bit<32> cell, out bit<32> result) {
            result = cell;
            cell = cell + 1;
        }
    };
    @id(REGISTER_SAMPLE_RING)
    Register<ipv4_t, sample_place_t>(SAMPLES, 0) sample_ring;
    RegisterAction<ipv4_t, sample_place_t, ipv4_t>(sample_ring) write = {
        void apply(inout ipv4_t cell) {
            cell = destination;
        }
    };

    apply {
        if (sampled != 0) {
            place = next.execute(0);
        }
        if (sampled != 0) {
            write.execute((sample_place_t)place);
        }
    }
}

#endif
