// Notes: packs the decisions of a SYN's first pass into a byte for the second pass, and unpacks the byte there. Separate bits
// would all have to be in the container that is resubmitted, together with the fields from which the bits are computed.
//
//   reads  next: of the first pass, by Note
//          noted: of the second pass, by Recall
//   writes notes: by Note
//          decided.refused, decided.answer_reset, next.request, next.refused, next.returning: by Recall
//
// Eight of 16 combinations occur: a refused SYN is not counted as returning, and of a SYN that does not count as a request, the
// second pass needs only whether the SYN is refused.
#ifndef SLUICE_TNA_NOTES_P4
#define SLUICE_TNA_NOTES_P4

control Note(in decided_t next, inout bit<8> notes) {
    @hidden
    action is(bit<8> value) {
        notes = value;
    }

    @hidden
    table note {
        key = {
            next.request      : ternary @name("request");
            next.refused      : ternary @name("refused");
            next.returning    : ternary @name("returning");
            next.answer_reset : ternary @name("answer_reset");
        }
        actions = { is; }
        const entries = {
            (1, REFUSED, _, 0) : is(3);
            (1, REFUSED, _, 1) : is(11);
            (1, _, 1, 0) : is(5);
            (1, _, 1, 1) : is(13);
            (1, _, _, 0) : is(1);
            (1, _, _, 1) : is(9);
            (0, REFUSED, _, _) : is(2);
        }
        const default_action = is(0);
    }

    apply {
        note.apply();
    }
}

// Restores the first pass's decisions in `decided`, which the stages read, and in `next`, which the stage `requests` counts.
control Recall(in bit<8> noted, inout decided_t decided, inout decided_t next) {
    @hidden
    action are(bit<1> request, bit<8> refused, bit<1> returning, bit<1> answer_reset) {
        decided.refused = refused;
        decided.answer_reset = answer_reset;
        next.request = request;
        next.refused = refused;
        next.returning = returning;
    }

    @hidden
    table recall {
        key = { noted : exact @name("notes"); }
        actions = { are; }
        const entries = {
            1  : are(1, 0, 0, 0);
            2  : are(0, REFUSED, 0, 0);
            3  : are(1, REFUSED, 0, 0);
            5  : are(1, 0, 1, 0);
            9  : are(1, 0, 0, 1);
            11 : are(1, REFUSED, 0, 1);
            13 : are(1, 0, 1, 1);
        }
        const default_action = are(0, 0, 0, 0);
    }

    apply {
        recall.apply();
    }
}

#endif
