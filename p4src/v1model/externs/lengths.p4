// Lengths that headers give in words of four bytes.
#ifndef SLUICE_V1MODEL_LENGTHS_P4
#define SLUICE_V1MODEL_LENGTHS_P4

control Bytes(in bit<4> words, out bit<16> bytes) {
    apply {
        bytes = (bit<16>)words << 2;
    }
}

#endif
