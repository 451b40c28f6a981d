// Moves: counts signs that a connection has had two servers: SYNs that go to another server than an earlier SYN of the same
// handshake (moved), and RSTs from a server that does not know the connection (disowned).
//
//   reads  path, event, pinned, moved, service; tcp
//   writes the cells of moved and disowned (one for each service)
//
// A host answers a segment of an unknown connection by a RST without the flag ACK (RFC 9293, section 3.10.7.1); a program that
// aborts its own connection sends a RST with ACK. So a RST without ACK, from a server to which the connection is not pinned,
// shows that the connection has or had another server.
#ifndef SLUICE_V1MODEL_MOVES_P4
#define SLUICE_V1MODEL_MOVES_P4

control Moves(in headers_t hdr, in metadata_t meta) {
    @id(COUNTER_MOVED)
    counter(SERVICES, CounterType.packets) moved;
    @id(COUNTER_DISOWNED)
    counter(SERVICES, CounterType.packets) disowned;

    apply {
        if (meta.moved == 1) {
            moved.count((bit<32>)meta.service);
        } else if (meta.event == Event.reset && meta.pinned == 0 && meta.path == Path.from_server && hdr.tcp.ack == 0) {
            disowned.count((bit<32>)meta.service);
        }
    }
}

#endif
