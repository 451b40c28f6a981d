// Metadata that stages pass to later stages. Each field's comment states the field's meaning, and after a semicolon the stage
// that sets the field. This file includes no file of a target (v1model, Tofino).
#ifndef SLUICE_COMMON_METADATA_P4
#define SLUICE_COMMON_METADATA_P4

#include "types.p4"
#include "ids.p4"
#include "constants.p4"

// A packet's path through the pipeline: it determines which stages process the packet. Stages such as classify change the path.
enum bit<8> Path {
    done       = 0,  // the packet's verdict is final: dropped, answered, punted or sent
    arp        = 1,
    ipv4       = 2,  // an IPv4 packet that classify has not yet processed
    to_service = 3,  // from a client to a service: TCP, UDP, or an ICMP error about an answer
    from_server = 4, // from a server to a client: TCP, UDP, or an ICMP error about a request
    routed     = 5,  // any other IPv4 packet that the switch must forward
    local      = 6,  // a packet addressed to the router itself
    order      = 7   // an agent's splice order
}

// Sender of a packet of a content connection (Chow, Wang & Prakash, sections 2 and 3). docs/reference/content.md
enum bit<8> Content {
    none   = 0,      // a packet of a service without content switching, or of no service
    client = 1,      // a client's packet to a content service
    agent  = 2,      // an agent's packet to a group of servers, in the client's name; or the agent's splice order
    server = 3       // an answer from a server of a group
}

// The kind of a packet by its TCP flags and payload, which determines how the packet changes its connection's state.
enum bit<8> Event {
    none    = 0,     // UDP, or an ICMP error: the packet changes no connection
    syn     = 1,
    syn_ack = 2,
    ack     = 3,     // a bare ACK: a segment without payload
    payload = 4,
    fin     = 5,
    reset   = 6
}

// The purpose of a packet's pass through ingress. Each pass except the first is requested by the previous pass, which sets
// `next_pass`.
enum bit<8> Pass {
    first     = 0,   // the first pass; as a `next_pass`: no further pass
    claim     = 1,   // a SYN occupies a slot for the server `preferred`, in the way (hash table) that its first pass found vacant
    candidate = 2,   // the packet goes to `preferred` (a candidate server or another agent), and the pin stays unchanged
    move      = 3,   // the ACK that ends a handshake with a candidate moves the pin to the server `preferred` (v1model)
    renew     = 4,   // a SYN claims the slot of its own connection again, for a newly drawn server (Tofino)
    limit     = 5,   // the destination's limits, looked up in the first pass, are applied to a routed SYN (Tofino)
    guess     = 6,   // a SYN, whose options this pass parses, claims a slot for its client's last server (v1model)
    facts     = 7,   // this pass parses the options of a content server's SYN-ACK (v1model)
    close     = 8    // this pass turns a server's answer, or a client's ACK on a closed connection, into the FIN that the switch
                     // sends in the server's name (v1model)
}

// The counter of the ledger (the counts of SYNs to each server and of the server's answers) that a packet increments.
enum bit<8> LedgerEntry {
    none          = 0,
    syn           = 1,
    syn_ack       = 2,
    syn_ack_again = 3,
    completed     = 4,
    reset         = 5
}

// The packet's 5-tuple. For an ICMP error that goes to the sender of the packet inside it, the 5-tuple of that inner packet with
// source and destination exchanged, so that `dst` is the error's destination. For an ARP packet, `dst` is the requested address.
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

// The length of an IPv4 packet's body, and the numbers of bytes that the packet lacks (0: nothing is missing).
struct lengths_t {
    bit<16> body;                 // number of bytes after the IPv4 header, by the IPv4 total length
    bit<16> header_missing;       // bytes by which the IPv4 total length is below the length of the IPv4 header
    bit<16> frame_missing;        // bytes by which the frame ends before the IPv4 total length
    bit<16> transport_missing;    // bytes by which `body` is below the length that the transport header states or needs; 0xffff
                                  // if the length in the transport header is impossible
}

// The loads (numbers of open connections) of the first two servers drawn for a new connection, `choice` and `other`.
struct loads_t {
    bit<1>      read_only;        // the packet only reads loads in this pass, and changes none; set by second_look
    server_id_t other;            // the server compared with choice; set by balance
    bit<32>     load;             // open connections of choice (Tofino: without stale connections); set by second_look
    bit<32>     other_load;
    bit<8>      other_refuses;    // 1: the last answer of the server `other` to a SYN was a RST; set by second_look
    bit<32>     stale;            // connections counted in `load` whose end the switch did not see; set by stale
    bit<32>     other_stale;
}

// Time-outs of a slot of the connection table, in ticks, for each state of the slot's connection; set by the table timers.
struct times_t {
    ticks_t idle;
    ticks_t pending;
    ticks_t answered;
    ticks_t half_closed;
    ticks_t linger;
}

#if defined(MORE_LOOKS)
// Servers whose loads the stage second_look compares with those of `choice` and `other`: an idle server, a third and a fourth
// server; 0: no server. The fields whose comments name no stage are set by balance.
struct more_looks_t {
    server_id_t idle;             // a server that has no open connection; 0: no such server; set by second_look
    bit<1>      seeks;            // the idle server is preferred to every other server; set by second_look
    server_id_t third;
    weight_t    third_weight;
    bit<32>     third_load;       // set by second_look
    bit<8>      third_refuses;    // 1: the third server's last answer to a SYN was a RST; set by second_look
    server_id_t fourth;
    weight_t    fourth_weight;
    bit<32>     fourth_load;      // set by second_look
    bit<8>      fourth_refuses;   // 1: the fourth server's last answer to a SYN was a RST; set by second_look
}
#endif

// What happens to the packet: the control Verdict of the target drops, punts or sends the packet accordingly.
struct verdict_t {
    DropReason drop;
    PuntReason punt;
    port_t     egress_port;
    neighbour_id_t neighbour;     // the next hop, reported to the controller if its MAC address is unknown; 0: the next hop is
                                  // the packet's destination, or is not known yet; set by splice for an answer to an agent, else by
                                  // forward
}

// Decisions about a SYN that goes to a service, or arrives from outside and is routed. The switch makes these decisions before it
// looks up the SYN's connection, on some targets in a separate pass.
struct decided_t {
    bit<1>           request;     // the packet is such a SYN, and must be counted; set by destinations
    destination_id_t destination; // the number under which the SYN is counted and limited; set by destinations
    bit<8>           refused;     // equals the target's REFUSED if the SYN exceeds a rate, so that it may not claim a slot, but
                                  // still passes if its connection is pinned; set by admission, destinations
    bit<1>           returning;   // the SYN exceeds the destination's rate, and its client was admitted before; unless `refused`
                                  // is set, the SYN passes for this reason; set by destinations
    bit<1>           answer_reset; // the switch answers the SYN by a RST if the SYN is refused; set by destinations
    bit<1>           looks;       // the SYN looks up its connection in this pass, but claims no slot; set by the target
    bit<1>           undecided;   // the SYN needs another pass if its connection has no pin; set by the target, connections
    bit<8>           way;         // the way (1 or 2) of the connection table in which the previous pass found a vacant slot to
                                  // claim; set by Tofino's parser, since Tofino claims a slot only in a second pass
}

// The translation of a content connection: the server's sequence number + delta is the number that the client receives.
struct splice_t {
    Turn        turn;
    server_id_t agent;            // the agent; it has the id of a server of the content service
    bit<5>      shift;            // left shift of the server's windows in bits, signed; negative: right shift
    bit<4>      client_shift;     // left shift of the client's windows in bits
    bit<32>     value;            // Turn.spliced: delta; Turn.guessed: options of the handshake
                                  // (v1model/splice_cells.p4)
    bit<32>     client;           // Turn.guessed: the client's initial sequence number
}

// The TCP options that a content connection may use, and that the caps on windows need.
struct options_t {
    bit<16> mss;                  // MSS of a SYN or SYN-ACK; 536 if the segment has no MSS option (RFC 9293, section 3.7.1)
    bit<5>  scale;                // window scale + 1; 0: the segment has no window scale option
    bit<1>  sack;                 // the segment has the option SACK permitted
    bit<1>  authenticated;        // the segment is signed (option MD5 or AO), so the switch must not change the segment
}

// How the switch manages a server's TCP resources: windows and idle connections. All fields zero: no management.
struct resources_t {
    bit<1>  measured;             // the switch measures a sample of the server's transfers
    bit<8>  sampling;             // one of 2^sampling of the server's connections is in the measured sample
    bit<1>  closed;               // the switch may close the server's idle connections
    bit<32> send_cap;             // largest window in bytes that a client may advertise to the server, on connections without an
                                  // individual cap; 0: no cap
    bit<32> receive_cap;          // largest window in bytes that the server may advertise to a client, on connections without an
                                  // individual cap. If send_cap and receive_cap are 0, connections have no individual caps either
}

struct metadata_t {
    @field_list(1)
    port_t       ingress_port;    // the packet's ingress port in its first pass; set by the target's intake
    bit<16>      ipv4_room;       // bytes of the frame from the IPv4 header to the end; set by the parser (v1model)
    @field_list(1)
    ticks_t      now;             // ticks from the switch's start to the first pass, plus TICK_BASE; set by the target's intake
    rate_time_t  clock;           // present time in units of RATE_TICK_US, for the response rates; set by the target's intake
    bit<1>       icmp_error;      // the packet is an ICMP error whose inner TCP or UDP packet is parsed; set by the parser
    bit<1>       ours;            // an address of the router or of a service is the packet's destination (of an ARP packet: the
                                  // requested address); set by local
    bit<1>       martian;         // source or destination is in 0.0.0.0/8, 127.0.0.0/8 or 224.0.0.0/3; set by parser or intake

    mac_t        router_mac;      // the router's MAC address at the ingress port; set by ports
    bit<1>       inside;          // servers or protected hosts are behind the ingress port; set by ports
    bit<1>       known;           // the ingress port is configured; set by ports
    Path         path;            // the packet's path through the pipeline; set by several stages
    flow_t       flow;            // the packet's 5-tuple; set by flow
    bit<1>       inward;          // the packet goes to a service, or arrives from outside and is routed; set by the target's
                                  // limits or judge
    Event        event;           // what the packet does to its connection; set by events
    lengths_t    lengths;         // length after the IPv4 header, and missing bytes; set by measure
    bit<16>      payload;         // number of bytes after the TCP header; set by measure

    service_id_t service;         // the service that the packet goes to or comes from; set by classify
    weight_t     shares;          // a multiple of the sum of the service's weights, if servers are drawn by a Weyl sequence; 0:
                                  // servers are drawn by hashes; set by classify
    connection_t connection;      // the packet's connection; set by classify
    server_id_t  server;          // the server that sent the packet; set by classify. For a packet to a service: the server to
                                  // which the packet goes; set by connections
    ipv4_t       endpoint;        // address that replaces an answer's source (the service's address, set by classify) or a
                                  // request's destination (the server's address, set by translate)
    l4_port_t    endpoint_port;   // port that replaces an answer's source port or a request's destination port; set by the stages
                                  // that set `endpoint`

    server_id_t  choice;          // the first server drawn, by weight; set by balance
    weight_t     choice_weight;   // weight of choice; set by balance
    server_id_t  other;           // the second server drawn, for the second look; 0: none; set by balance
    weight_t     other_weight;    // weight of other; set by balance
    @field_list(1)
    server_id_t  preferred;       // for the next pass: the server with the least load, set by second_look; the candidate server,
                                  // set by candidates; a content client's last server, set by remembered; or another agent, set
                                  // by content_path
    server_id_t  stable_choice;   // the server drawn by capacity; set by balance

    bit<1>       has_slot;        // the connection table has a slot of this connection; set by connections
    bit<1>       pinned;          // the connection's slot contains the server `server`; set by connections
    bit<1>       claimed;         // this packet has claimed the connection's slot; set by connections
    bit<1>       moved;           // a SYN that is repeated in the handshake goes to another server than before; set by
                                  // connections, candidates (v1model)
    PinState     state;           // the pin's state before this packet; set by connections
    PinState     next_state;      // the pin's state after this packet; set by connections (v1model)
    server_id_t  evicted;         // server of the unfinished connection whose slot this connection claimed; set by connections
    @field_list(1)
    bit<8>       vacant;          // the way (1 or 2) in which a SYN may claim a slot in its second pass; set by connections

    bit<1>       itself;          // the packet is an ICMP error that a server sends about its own packet; set by judge (Tofino)
    bit<1>       draining;        // the server to which the packet goes takes no new connections; set by translate
    bit<1>       answered_again;  // this SYN-ACK repeats a candidate's SYN-ACK; set by candidates
    loads_t      loads;
#if defined(MORE_LOOKS)
    more_looks_t more;
#endif
    @field_list(1)
    Pass         pass;            // the purpose of this pass; set by the target from the previous pass's next_pass
    Pass         next_pass;       // the purpose of the following pass; set by every stage that requests a further pass

    ipv4_t       replaced;        // the address that `endpoint` replaced, for the checksums; set by translate
    l4_port_t    replaced_port;   // the port that `endpoint_port` replaced, for the checksums; set by translate
    bit<1>       reset;           // the switch has turned the packet into a segment to the packet's sender: a RST for a refused
                                  // SYN, or a segment of a closed connection (v1model); set by refusal, closing

    Content      content;         // the kind of the packet's sender, for content switching; set by classify
    bit<8>       generation;      // generation number of the content service's rules, or UNREAD; set by classify
    ticks_t      remember_time;   // ticks for which the content service remembers clients; set by classify
    options_t    options;         // options of a SYN or SYN-ACK; of a content connection: only in the passes guess and facts; set
                                  // by the parser
    bit<16>      rebuilt;         // length in bytes of TCP header and payload, if the segment's options were replaced; otherwise
                                  // 0; set by options
    server_id_t  agent;           // the agent of the packet's content service that is behind the ingress port; set by agents
    bit<2>       attempt;         // in an agent's SYN: number of servers that refused the connection; set by front (v1model)
    server_id_t  refused_by;      // the last server that refused the connection; set by connections (v1model)
    bit<1>       way;             // the way of the connection table that contains the slot: 0 is way 1, 1 is way 2; set by
                                  // connections
    bit<32>      respliced;       // change of the TCP checksum's sum by rewritten numbers and windows; set by splice, caps

    resources_t  resources;       // how the server's TCP resources are managed; set by resources
#if defined(TOFINO) && defined(CONTENT)
    turn_t       turn;            // state of a content connection, set by connections; or the state that a splice order requests,
                                  // set by orders
    granted_t    granted;         // answer of the splice-turn register to an agent's splice order; set by connections
#endif
}

#endif
