// Counted: decides whether a request is counted in this pass. A SYN whose connection is pinned is counted in its first pass, and
// not again in another pass. Any other SYN is counted in its second pass.
//
//   reads  next.request, pass, decided.undecided, pinned
//   writes counted
#ifndef SLUICE_TNA2_COUNTED_P4
#define SLUICE_TNA2_COUNTED_P4

control Counted(in metadata_t meta, in decided_t decided, in decided_t next, inout bit<1> counted) {
    @hidden
    action count() {
        counted = 1;
    }

    @hidden
    action neither() { }

    @hidden
    table is_counted {
        key = {
            next.request      : ternary @name("request");
            meta.pass         : ternary @name("pass");
            decided.undecided : ternary @name("undecided");
            meta.pinned       : ternary @name("pinned");
        }
        actions = { count; neither; }
        const entries = {
            (0, _, _, _)              : neither();
            (_, Pass.renew, _, _)     : neither();
            (_, Pass.candidate, _, _) : neither();
            (_, _, 0, _)              : count();
            (_, _, _, 1)              : count();
        }
        const default_action = neither();
    }

    apply {
        is_counted.apply();
    }
}

#endif
