// Judge: what becomes of a packet, from what the first stages have found. They are side by side here, and the order of their reasons to
// drop is that of these entries: intake, ports, validate, classify, local, hop limit, as on every target.
//
//   reads  findings, path (as the parser and classify know it), ours, inside, lengths
//   writes path, inward, verdict
#ifndef SLUICE_TNA_JUDGE_P4
#define SLUICE_TNA_JUDGE_P4

// What takes a comparison of two fields: for the judge, and for translation.
control Compare(in headers_t hdr, inout metadata_t meta, inout findings_t found) {
    @hidden
    action foreign() {
        found.foreign = 1;
    }

    @hidden
    action same() {
        found.same = 1;
    }

    @hidden
    action itself() {
        meta.itself = 1;
    }

    // A condition has room for 32 bits that are compared with other ones.
    apply {
        if (hdr.ethernet.dst[47:16] != meta.router_mac[47:16]) {
            foreign();
        } else if (hdr.ethernet.dst[15:0] != meta.router_mac[15:0]) {
            foreign();
        }
        if (hdr.ipv4.src == hdr.ipv4.dst) {
            same();
        }
        if (hdr.ipv4.src == meta.flow.src) {
            itself();
        }
    }
}

control Judge(in headers_t hdr, inout metadata_t meta, in findings_t found, inout verdict_t verdict) {
    @hidden
    action go(Path where, bit<1> inward) {
        meta.path = where;
        meta.inward = inward;
    }

    @hidden
    action expire() {
        meta.path = Path.done;
        verdict.drop = DropReason.ttl_exceeded;
        verdict.punt = PuntReason.ttl;
    }

    @hidden
    action drop_as(DropReason reason) {
        meta.path = Path.done;
        verdict.drop = reason;
    }

    @hidden
    action drop_as_frame() {
        meta.path = Path.done;
        verdict.drop = found.frame;
    }

    @hidden
    table judge {
        key = {
            found.sent                     : ternary @name("sent");
            found.frame                    : ternary @name("frame");
            meta.known                     : ternary @name("known");
            found.foreign                  : ternary @name("foreign");
            hdr.ethernet.dst               : ternary @name("to");
            hdr.arp.isValid()              : ternary @name("arp");
            hdr.ipv4.isValid()             : ternary @name("ipv4");
            meta.lengths.header_missing    : ternary @name("header_missing");
            hdr.ipv4.fragment_offset       : ternary @name("fragment_offset");
            meta.martian                   : ternary @name("martian");
            found.same                     : ternary @name("same");
            meta.lengths.transport_missing : ternary @name("transport_missing");
            found.target                   : ternary @name("target");
            meta.path                      : ternary @name("path");
            meta.ours                      : ternary @name("ours");
            found.hop.drop                 : ternary @name("hop");
            meta.inside                    : ternary @name("inside");
        }
        actions = { go; expire; drop_as; drop_as_frame; }
        const entries = {
            (1, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _) : go(Path.done, 0);
            (_, DropReason.none, 0, _, _, _, _, _, _, _, _, _, _, _, _, _, _) : drop_as(DropReason.port_unknown);
            (_, DropReason.none, _, _, 0xffffffffffff, true, _, _, _, _, _, _, _, _, _, _, _) : go(Path.local, 0);
            (_, DropReason.none, _, 1, _, _, _, _, _, _, _, _, _, _, _, _, _) : drop_as(DropReason.not_for_us);
            (_, DropReason.none, _, _, _, true, _, _, _, _, _, _, _, _, _, _, _) : go(Path.local, 0);
            (_, DropReason.none, _, _, _, _, false, _, _, _, _, _, _, _, _, _, _) : drop_as(DropReason.unsupported);
            (_, DropReason.none, _, _, _, _, _, 0, 0, 0, 0, 0, DropReason.direct_to_server, _, _, _, _) : drop_as(DropReason.direct_to_server);
            (_, DropReason.none, _, _, _, _, _, 0, 0, 0, 0, 0, _, Path.ipv4, 1, _, _) : go(Path.local, 0);
            (_, DropReason.none, _, _, _, _, _, 0, 0, 0, 0, 0, _, Path.from_server, 1, _, _) : go(Path.local, 0);
            (_, DropReason.none, _, _, _, _, _, 0, 0, 0, 0, 0, _, _, _, DropReason.ttl_exceeded, _) : expire();
            (_, DropReason.none, _, _, _, _, _, 0, 0, 0, 0, 0, _, Path.to_service, _, _, _) : go(Path.to_service, 1);
            (_, DropReason.none, _, _, _, _, _, 0, 0, 0, 0, 0, _, Path.from_server, _, _, _) : go(Path.from_server, 0);
            (_, DropReason.none, _, _, _, _, _, 0, 0, 0, 0, 0, _, _, _, _, 0) : go(Path.routed, 1);
            (_, DropReason.none, _, _, _, _, _, 0, 0, 0, 0, 0, _, _, _, _, _) : go(Path.routed, 0);
            (_, DropReason.none, _, _, _, _, _, 0, 0, 0, 0, _, _, _, _, _, _) : drop_as(DropReason.l4_length);
            (_, DropReason.none, _, _, _, _, _, 0, 0, _, _, _, _, _, _, _, _) : drop_as(DropReason.martian);
            (_, DropReason.none, _, _, _, _, _, 0, _, _, _, _, _, _, _, _, _) : drop_as(DropReason.fragment);
            (_, DropReason.none, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _) : drop_as(DropReason.ipv4_length);
        }
        const default_action = drop_as_frame();
    }

    apply {
        judge.apply();
    }
}

#endif
