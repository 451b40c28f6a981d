// Lengths that headers give in words of four bytes. By the hash units: the two lengths stand in different halves of a byte, and what is
// computed with them would have to stand in the same bits.
#ifndef SLUICE_TNA_LENGTHS_P4
#define SLUICE_TNA_LENGTHS_P4

control Bytes(in bit<4> words, out bit<16> bytes) {
    @hidden
    action multiply() {
        @in_hash { bytes = 10w0 ++ words ++ 2w0; }
    }

    apply {
        multiply();
    }
}

// A length as a number of 32 bits. By the hash units as well: what it is added to could not lie in containers of 32 bits otherwise.
control Widened(in bit<16> bytes, out bit<32> number) {
    @hidden
    action widen() {
        @in_hash { number = 16w0 ++ bytes; }
    }

    apply {
        widen();
    }
}

#endif
