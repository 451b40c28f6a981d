// Metadata that stages pass to later stages. Each field has a comment: its meaning; the stage that writes it. This file includes
// nothing of a target.
#ifndef SLUICE_COMMON_METADATA_P4
#define SLUICE_COMMON_METADATA_P4

#include "types.p4"
#include "ids.p4"
#include "constants.p4"

// Which way a packet takes through the pipeline. A stage runs for some paths only; stages such as classify change the path.
enum bit<8> Path {
    done       = 0,  // the packet's verdict is final: dropped, answered, punted or sent
    arp        = 1,
    ipv4       = 2,  // IPv4, before classify
    to_service = 3,  // from a client to a service: TCP, UDP, or an ICMP error about an answer
    from_server = 4, // a server's answer, or an ICMP error about a request
    routed     = 5,  // any other packet to be forwarded
    local      = 6,  // a packet to the router itself
    order      = 7   // an agent's splice order
}

// Which part of a content connection a packet belongs to (Chow, Wang & Prakash, sections 2 and 3). docs/reference/content.md
enum bit<8> Content {
    none   = 0,      // a packet of a plain service, or of no service
    client = 1,      // a client's packet to a content service
    agent  = 2,      // an agent's packet to a group, in its client's name; or the agent's splice order
    server = 3       // an answer of a server of a group
}

// What a packet does to its connection.
enum bit<8> Event {
    none    = 0,     // UDP, or an ICMP error: reads the connection's state, changes nothing
    syn     = 1,
    syn_ack = 2,
    ack     = 3,     // a segment without payload
    payload = 4,
    fin     = 5,
    reset   = 6
}

// The purpose of a packet's pass through ingress. Every pass but the first was ordered by the pass before, through its
// `next_pass`.
enum bit<8> Pass {
    first     = 0,   // the first pass; as a `next_pass`: no further pass
    claim     = 1,   // a SYN claims the way that was found vacant, for the server `preferred`
    candidate = 2,   // a SYN goes to the server `preferred`; the pin stays as it is (v1model)
    move      = 3,   // the ACK that ends a handshake with a candidate moves the pin to the server `preferred` (v1model)
    renew     = 4,   // a SYN takes its own connection's slot again, for a newly drawn server (Tofino)
    limit     = 5,   // a routed SYN passes the limits of the destination that its first pass has found (Tofino)
    guess     = 6,   // a SYN whose options are parsed claims a slot for its client's last server (v1model)
    facts     = 7,   // a SYN-ACK of a content server whose options are parsed (v1model)
    close     = 8    // a server's answer, or a client's ACK on a closed connection, becomes the FIN that the switch sends in the
                     // server's name (v1model)
}

// Which count of the ledger a packet raises.
enum bit<8> LedgerEntry {
    none          = 0,
    syn           = 1,
    syn_ack       = 2,
    syn_ack_again = 3,
    completed     = 4,
    reset         = 5
}

// The packet's 5-tuple. For an ICMP error to the sender of the packet inside it, the reversed 5-tuple of that packet. So `dst` is
// always the packet's destination address; for an ARP, the address that the ARP requests.
struct flow_t {
    ipv4_t    src;
    ipv4_t    dst;
    bit<8>    protocol;
    l4_port_t src_port;
    l4_port_t dst_port;
}

// A connection's 5-tuple, equal for the packets of both directions.
struct connection_t {
    ipv4_t    client;
    ipv4_t    service;
    l4_port_t client_port;
    l4_port_t service_port;
    bit<8>    protocol;
}

// Bytes by which a packet is shorter than the lengths in its headers; 0: the packet is complete.
struct lengths_t {
    bit<16> body;                 // bytes after the IPv4 header
    bit<16> header_missing;
    bit<16> frame_missing;
    bit<16> transport_missing;    // 0xffff where the transport header's length is impossible
}

// The load of the first two servers drawn for a new connection, `choice` and `other`.
struct loads_t {
    bit<1>      look;             // this pass reads loads instead of changing them; second_look
    server_id_t other;            // the server compared with choice; balance
    bit<32>     load;             // open connections of choice and of other (on Tofino without the stale ones); second_look
    bit<32>     other_load;
    bit<8>      other_refuses;    // 1: the other's last answer to a SYN was a RST; second_look
    bit<32>     stale;            // connections counted in the two loads that ended unseen; stale
    bit<32>     other_stale;
}

// Ticks for which a slot of the connection table is kept after the last packet that counted, by the connection's state; timers.
struct times_t {
    ticks_t idle;
    ticks_t pending;
    ticks_t answered;
    ticks_t half_closed;
    ticks_t linger;
}

#if defined(MORE_LOOKS)
// Further servers of a second look: an idle server, a third and a fourth; 0 for a server: none. Balance writes the fields without
// another writer.
struct more_looks_t {
    server_id_t idle;             // a server without an open connection; 0: none is known; second_look
    bit<1>      seeks;            // the idle server is taken before any other; second_look
    server_id_t third;
    weight_t    third_weight;
    bit<32>     third_load;       // second_look
    bit<8>      third_refuses;    // as other_refuses; second_look
    server_id_t fourth;
    weight_t    fourth_weight;
    bit<32>     fourth_load;      // second_look
    bit<8>      fourth_refuses;   // as other_refuses; second_look
}
#endif

// The packet's outcome, which the target's verdict carries out once.
struct verdict_t {
    DropReason drop;
    PuntReason punt;
    port_t     egress_port;
    ipv4_t     next_hop;          // reported to the controller if it is unresolved; forward
}

// Decisions about a SYN towards inside that precede the look-up of its connection. A target may make them in a pass of their own.
struct decided_t {
    bit<1>           request;     // the packet is such a SYN, and is to be counted; destinations
    destination_id_t destination; // the number under which the SYN is counted and limited; destinations
    bit<8>           refused;     // equals the target's REFUSED if the SYN exceeds a rate: it may keep a pin, and never claims
                                  // one; admission, destinations
    bit<1>           returning;   // the SYN exceeds the destination's rate; unless it is refused, it passes because its client
                                  // was admitted before; destinations
    bit<1>           answer_reset; // if the SYN is refused, it is answered by a RST; destinations
    bit<1>           looks;       // the SYN claims no slot in this pass; the target
    bit<1>           undecided;   // the SYN needs another pass if it has no pin; the target, connections
    bit<8>           way;         // the way of the connection table to claim, 1 or 2, which the pass before found vacant; the
                                  // target's parser, where a way is claimed only in a second pass (Tofino)
}

// The translation of a content connection: the server's sequence number + delta is the number that the client receives.
struct splice_t {
    Turn        turn;
    server_id_t agent;            // the agent, as the id of a server of the content service
    bit<5>      shift;            // shift of the server's windows, signed: positive is up
    bit<4>      client_shift;     // shift of the client's windows, up
    bit<32>     value;            // delta; in the agent's turn the agent's address; for a guessed connection the options of its
                                  // handshake (splice_cells.p4)
    bit<32>     client;           // for a guessed connection the client's initial sequence number
}

// The TCP options that content connections may have and that caps need.
struct options_t {
    bit<16> mss;                  // MSS of a SYN or SYN-ACK; 536 where the segment has no such option (RFC 9293, section 3.7.1)
    bit<5>  scale;                // window scale + 1; 0: windows are not scaled
    bit<1>  sack;                 // SACK is permitted
    bit<1>  authenticated;        // the segment is signed (MD5 or AO), so that the switch must not change it
}

// How a server's TCP resources are managed. All zero: they are not managed.
struct resources_t {
    bit<1>  measured;             // the sampled transfers of the server's connections are measured
    bit<8>  sampling;             // one of 2^sampling connections is sampled
    bit<1>  closed;               // the server's idle connections may be closed
    bit<32> send_cap;             // largest window in bytes that a client may advertise to the server, for connections without a
                                  // cap of their own; 0: no cap
    bit<32> receive_cap;          // largest window in bytes that the server may advertise to a client, likewise; if both caps are
                                  // 0, connections have no caps of their own either
}

struct metadata_t {
    @field_list(1)
    port_t       ingress_port;    // the packet's ingress port; the target's intake, in the first pass
    bit<16>      ipv4_room;       // bytes of the frame from the IPv4 header on; the target's intake
    @field_list(1)
    ticks_t      now;             // ticks since the switch started, plus TICK_BASE; the target's intake, in the first pass
    rate_time_t  clock;           // time in units of RATE_TICK_US, for the response rates; the target's intake
    bit<1>       icmp_error;      // the packet is an ICMP error, and the TCP or UDP packet inside is parsed; parser
    bit<1>       ours;            // the packet's destination, or the address that an ARP requests, is one of the router's or of a
                                  // service; local
    bit<1>       martian;         // one of the IPv4 addresses is 0.0.0.0/8, 127.0.0.0/8 or 224.0.0.0/3; the target's parser or intake

    mac_t        router_mac;      // the router's MAC address at the ingress port; ports
    bit<1>       inside;          // servers or protected hosts are behind the ingress port; ports
    bit<1>       known;           // the ingress port is configured; ports
    Path         path;            // the packet's way through the pipeline; every stage that decides it
    flow_t       flow;            // the packet's 5-tuple; flow
    bit<1>       inward;          // the packet goes to a service, or is routed from outside to inside; the target's limits or
                                  // judge
    Event        event;           // what the packet does to its connection; events
    lengths_t    lengths;         // bytes missing of the packet; measure
    bit<16>      payload;         // bytes after the TCP header; measure

    service_id_t service;         // the service that the packet goes to or comes from; classify
    weight_t     shares;          // a multiple of the sum of the service's weights: servers are drawn evenly; 0: servers are
                                  // drawn by hashes; classify
    connection_t connection;      // the packet's connection; classify
    server_id_t  server;          // the server that the packet comes from; classify. Or the server that it goes to; connections
    ipv4_t       endpoint;        // address and port that replace the packet's. Of an answer:
    l4_port_t    endpoint_port;   // those of its service; classify. Of a request: those of its server; translate

    server_id_t  choice;          // the server drawn by weight; balance
    weight_t     choice_weight;   // weight of choice; balance
    server_id_t  other;           // the second server drawn, for the second look, or 0; balance
    weight_t     other_weight;    // weight of other; balance
    @field_list(1)
    server_id_t  preferred;       // for the next pass: the server with the least load; second_look. Or the candidate; candidates
    server_id_t  stable_choice;   // the server drawn by capacity; balance

    bit<1>       held;            // a slot holds this connection; connections
    bit<1>       pinned;          // a slot holds this connection with this server; connections
    bit<1>       claimed;         // this packet has claimed the slot; connections
    bit<1>       moved;           // a SYN that is repeated during its handshake goes to another server; connections, candidates
                                  // (v1model)
    PinState     state;           // the pin's state before this packet; connections
    PinState     next_state;      // the pin's state after this packet; connections (v1model)
    server_id_t  evicted;         // the server of a connection that had not ended when its slot was claimed; connections
    @field_list(1)
    bit<8>       vacant;          // the way that a SYN may claim in its second pass, 1 or 2; connections

    bit<1>       itself;          // an ICMP error that a server sends about its own packet; the target's judge (Tofino)
    bit<1>       draining;        // the server that the packet goes to takes no new connections; translate
    bit<1>       answered_again;  // this SYN-ACK repeats a candidate's SYN-ACK; candidates
    loads_t      loads;
#if defined(MORE_LOOKS)
    more_looks_t more;
#endif
    @field_list(1)
    Pass         pass;            // the purpose of this pass; the target
    Pass         next_pass;       // the purpose of the following pass; connections, candidates (v1model), renew and main (Tofino)

    ipv4_t       replaced;        // the address and
    l4_port_t    replaced_port;   // port that endpoint replaced, for the checksums; translate
    bit<1>       reset;           // the packet has become the RST that answers a refused SYN; refusal

    Content      content;         // the packet's part in content switching; classify
    bit<8>       generation;      // of the content service's rules, or UNREAD; classify
    ticks_t      remember_time;   // ticks for which the content service remembers clients; classify
    options_t    options;         // options of a SYN or SYN-ACK; for content connections only in a pass of their own; the parser
    bit<16>      rebuilt;         // bytes of the segment from the TCP header on, if its options were replaced; options
    server_id_t  agent;           // the agent of the packet's content service behind the ingress port; agents
    bit<2>       attempt;         // of an agent's SYN: how many servers have refused its connection; front (v1model)
    server_id_t  refused_by;      // the last server that refused the connection; connections (v1model)
    ipv4_t       agent_address;   // the agent's address; agents. Or the agent to which a packet is sent instead of to its
                                  // destination; splice
    bit<1>       way;             // the way of the connection table that holds the slot: 0 for way 1, 1 for way 2; connections
    bit<32>      respliced;       // change of the checksum's sum by words that were rewritten; splice, caps

    resources_t  resources;       // how the server's TCP resources are managed; resources
#if defined(TOFINO) && defined(CONTENT)
    turn_t       turn;            // state of a content connection; connections. Or the state that a splice order requests; main
    granted_t    granted;         // the register's answer to an agent's splice order; connections
#endif
}

#endif
