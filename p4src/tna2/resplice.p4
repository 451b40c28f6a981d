// Resplice: translates the server's sequence numbers in a spliced packet of either direction, and the server's windows. The
// deparser computes the checksum.
//
//   reads  path, content, has_slot, turn, tcp
//          value: delta, from the splice's cell
//   writes tcp.sequence, tcp.acknowledgement, tcp.window
#ifndef SLUICE_TNA2_RESPLICE_P4
#define SLUICE_TNA2_RESPLICE_P4

#include "windows.p4"

control Resplice(inout headers_t hdr, in metadata_t meta, in bit<32> value) {
    Windows() windows;

    @hidden
    action answer() {
        hdr.tcp.sequence = hdr.tcp.sequence + value;
    }

    // Replaces the acknowledgement number that the client uses by the server's number.
    @hidden
    action request() {
        hdr.tcp.acknowledgement = hdr.tcp.acknowledgement - value;
    }

    @hidden
    action neither() { }

    @hidden
    @no_gateway_conversion
    table numbers {
        key = {
            meta.path         : ternary @name("path");
            meta.content      : ternary @name("content");
            meta.has_slot     : ternary @name("held");
            meta.turn         : ternary @name("turn");
            hdr.tcp.isValid() : ternary @name("tcp");
            hdr.tcp.ack       : ternary @name("ack");
        }
        actions = { answer; request; neither; }
        const entries = {
            (Path.from_server, Content.server, 1, 0x8000 &&& 0x8000, true, _) : answer();
            (Path.to_service, Content.client, 1, 0x8000 &&& 0x8000, true, 1)  : request();
        }
        const default_action = neither();
    }

    apply {
        numbers.apply();
        if (meta.has_slot == 1 && meta.content == Content.server && hdr.tcp.isValid() && hdr.tcp.syn == 0) {
            windows.apply(hdr, meta.turn);
        }
    }
}

#endif
