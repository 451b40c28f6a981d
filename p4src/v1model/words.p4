// Computes the change of a one's complement sum when a 16-bit word is replaced by another word (RFC 1624, eq. 3).
#ifndef SLUICE_V1MODEL_WORDS_P4
#define SLUICE_V1MODEL_WORDS_P4

bit<32> word_change(in bit<16> old, in bit<16> new) {
    return (bit<32>)(~old) + (bit<32>)new;
}

#endif
