// Random numbers, and the ring of sampled destinations.
#ifndef SLUICE_V1MODEL_SAMPLES_P4
#define SLUICE_V1MODEL_SAMPLES_P4

control Draw(out bit<16> drawn) {
    apply {
        random(drawn, 16w0, 16w0xffff);
    }
}

// `sample_next` counts what was ever sampled; its low bits are the place of the next one.
control SampleRing(in ipv4_t destination) {
    @id(0x1600002a)
    register<bit<32>>(1) sample_next;
    @id(0x1600002b)
    register<ipv4_t>(SAMPLES) sample_ring;

    apply {
        bit<32> place;
        sample_next.read(place, 0);
        sample_next.write(0, place + 1);
        sample_ring.write(place & (SAMPLES - 1), destination);
    }
}

#endif
