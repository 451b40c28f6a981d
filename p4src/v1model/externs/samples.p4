// Draws random numbers, and writes sampled destinations into a ring. Both controls do nothing if their first input is 0.
#ifndef SLUICE_V1MODEL_SAMPLES_P4
#define SLUICE_V1MODEL_SAMPLES_P4

control Draw(in bit<32> share, out bit<16> drawn) {
    apply {
        drawn = 0;
        if (share != 0) {
            random(drawn, 16w0, 16w0xffff);
        }
    }
}

// Writes a destination into the ring. `sample_next` counts all samples; its low bits are the next sample's index in the ring.
control SampleRing(in bit<32> sampled, in ipv4_t destination) {
    @id(REGISTER_SAMPLE_NEXT)
    register<bit<32>>(1) sample_next;
    @id(REGISTER_SAMPLE_RING)
    register<ipv4_t>(SAMPLES) sample_ring;

    apply {
        if (sampled != 0) {
            bit<32> place;
            sample_next.read(place, 0);
            sample_next.write(0, place + 1);
            sample_ring.write((bit<32>)(sample_place_t)place, destination);
        }
    }
}

#endif
