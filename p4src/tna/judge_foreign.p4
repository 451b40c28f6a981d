// What becomes of a frame to another address than the router's: the rules of judge.yaml as far as that one. Twice, for an address is two
// comparisons.

    @hidden
    table judge_foreign {
        key = {
            found.sent        : ternary @name("sent");
            found.frame       : ternary @name("frame");
            meta.known        : ternary @name("known");
            hdr.ethernet.dst  : ternary @name("to");
            hdr.arp.isValid() : ternary @name("arp");
        }
        actions = { go; drop_as; drop_as_frame; }
        const entries = {
            (1, _, _, _, _)                                 : go(Path.done, 0);
            (_, DropReason.none, 0, _, _)                   : drop_as(DropReason.port_unknown);
            (_, DropReason.none, _, 0xffffffffffff, true)   : go(Path.local, 0);
            (_, DropReason.none, _, _, _)                   : drop_as(DropReason.not_for_us);
        }
        const default_action = drop_as_frame();
    }

    @hidden
    table judge_near {
        key = {
            found.sent        : ternary @name("sent");
            found.frame       : ternary @name("frame");
            meta.known        : ternary @name("known");
            hdr.ethernet.dst  : ternary @name("to");
            hdr.arp.isValid() : ternary @name("arp");
        }
        actions = { go; drop_as; drop_as_frame; }
        const entries = {
            (1, _, _, _, _)                                 : go(Path.done, 0);
            (_, DropReason.none, 0, _, _)                   : drop_as(DropReason.port_unknown);
            (_, DropReason.none, _, 0xffffffffffff, true)   : go(Path.local, 0);
            (_, DropReason.none, _, _, _)                   : drop_as(DropReason.not_for_us);
        }
        const default_action = drop_as_frame();
    }
