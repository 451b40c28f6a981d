// Renew stage with content switching: renews pins as renew.p4 does. In addition, when the next request on a connection is for
// another group, the agent resets its connection to the server. The agent's next SYN then renews the pin for a server of the
// other group.
//
//   reads  content, draining, event, pass, claimed, pinned, state, granted, decided, choice
//   writes next_pass
#ifndef SLUICE_TNA2_RENEW_CONTENT_P4
#define SLUICE_TNA2_RENEW_CONTENT_P4

control RenewContent(inout metadata_t meta, in decided_t decided) {
    @hidden
    action again() {
        meta.next_pass = Pass.renew;
    }

    @hidden
    action neither() { }

    @hidden
    table renew {
        key = {
            decided.refused : ternary @name("refused");
            meta.choice     : ternary @name("choice");
            meta.event      : ternary @name("event");
            meta.pass       : ternary @name("pass");
            meta.claimed    : ternary @name("claimed");
            meta.pinned     : ternary @name("pinned");
            meta.state      : ternary @name("state");
            meta.content    : ternary @name("content");
            meta.draining   : ternary @name("draining");
            meta.granted    : ternary @name("granted");
        }
        actions = { again; neither; }
        const entries = {
            (REFUSED, _, _, _, _, _, _, _, _, _)                                                  : neither();
            (_, 0, _, _, _, _, _, _, _, _)                                                        : neither();
            (_, _, Event.syn, Pass.first, 0, 1, PinState.pending, Content.none, 1, _)             : again();
            (_, _, Event.syn, Pass.first, 0, 1, PinState.closed, Content.none, 1, _)              : again();
            (_, _, Event.syn, Pass.first, 0, 1, PinState.closed, Content.agent, _, GRANTED)       : again();
        }
        const default_action = neither();
    }

    apply {
        renew.apply();
    }
}

#endif
