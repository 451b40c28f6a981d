// Lengths that headers give in words of four bytes.
#ifndef SLUICE_V1MODEL_LENGTHS_P4
#define SLUICE_V1MODEL_LENGTHS_P4

control Bytes(in bit<4> words, out bit<16> bytes) {
    apply {
        bytes = (bit<16>)words << 2;
    }
}

// A length as a number of 32 bits.
control Widened(in bit<16> bytes, out bit<32> number) {
    apply {
        number = (bit<32>)bytes;
    }
}

#endif
