// What the stages tell each other. One line a field: meaning; who writes it. No target include.
#ifndef SLUICE_COMMON_METADATA_P4
#define SLUICE_COMMON_METADATA_P4

#include "types.p4"
#include "ids.p4"
#include "constants.p4"

// Where a packet is going. A stage runs for some paths; the one that decides changes the path.
enum bit<8> Path {
    done       = 0,  // verdict reached: dropped, answered, punted or sent
    arp        = 1,
    ipv4       = 2,  // not classified yet
    to_service = 3,  // client to a service: TCP, UDP, or an ICMP error about an answer
    from_server = 4, // a server's answer, or an ICMP error about a request
    routed     = 5,  // everything else
    local      = 6,  // to the router itself
    order      = 7   // an agent's splice order
}

// Which part of a content connection a packet belongs to (Chow, Wang & Prakash, sections 2 and 3). docs/reference/content.md
enum bit<8> Content {
    none   = 0,      // of a plain service, or of none
    client = 1,      // a client's, to a content service
    agent  = 2,      // an agent's in its client's name, to a group; or its splice order
    server = 3       // an answer of a group's server
}

// What a packet of a connection does to it.
enum bit<8> Event {
    none    = 0,     // UDP, or an ICMP error: looks, changes nothing
    syn     = 1,
    syn_ack = 2,
    ack     = 3,     // no payload
    payload = 4,
    fin     = 5,
    reset   = 6
}

// What a packet passes through ingress for. Every pass but the first is asked for by the one before, as its `next_pass`.
enum bit<8> Pass {
    first     = 0,   // as a `next_pass`: no other
    claim     = 1,   // a SYN claims the way that was found vacant, for the server preferred
    candidate = 2,   // a SYN goes to the server preferred; the pin stays as it is (v1model)
    move      = 3,   // the ACK of a candidate's answer moves the pin to the server preferred (v1model)
    renew     = 4,   // a SYN takes its own connection's slot again, for a server drawn anew (Tofino)
    limit     = 5,   // a routed SYN meets the limits that its first pass has found (Tofino)
    guess     = 6,   // a SYN with its options read claims a slot for its client's last server (v1model)
    facts     = 7,   // the SYN-ACK of a content server, with its options read (v1model)
    close     = 8    // a server's answer, or a client's ACK of a closed connection, is the FIN that the switch sends in the server's place (v1model)
}

// What the ledger writes down.
enum bit<8> LedgerEntry {
    none          = 0,
    syn           = 1,
    syn_ack       = 2,
    syn_ack_again = 3,
    completed     = 4,
    reset         = 5
}

// The packet's tuple; of an ICMP error to whoever sent the packet inside, the reversed tuple of that. So dst is always the
// address that the packet is to; of an ARP, the one that it asks for.
struct flow_t {
    ipv4_t    src;
    ipv4_t    dst;
    bit<8>    protocol;
    l4_port_t src_port;
    l4_port_t dst_port;
}

// A connection as both directions see it.
struct connection_t {
    ipv4_t    client;
    ipv4_t    service;
    l4_port_t client_port;
    l4_port_t service_port;
    bit<8>    protocol;
}

// What a packet has not got of the lengths that its headers give; 0: everything is there.
struct lengths_t {
    bit<16> body;                 // bytes behind the IPv4 header
    bit<16> header_missing;
    bit<16> frame_missing;
    bit<16> transport_missing;    // all of it where the transport header gives no possible length
}

// What is looked at of a new connection's two servers.
struct loads_t {
    bit<1>      look;             // whether at all; second_look
    server_id_t other;            // than choice: balance
    bit<32>     load;             // connections of both (Tofino: less the stale ones); second_look
    bit<32>     other_load;
    bit<8>      other_refuses;    // 1: the other's last answer to a SYN was a RST; second_look
    bit<32>     stale;            // of them, those that ended unseen; stale
    bit<32>     other_stale;
}

// How long a slot of the connection table is kept behind the last packet that counted, in ticks; timers.
struct times_t {
    ticks_t idle;
    ticks_t pending;
    ticks_t answered;
    ticks_t half_closed;
    ticks_t linger;
}

#if defined(MORE_LOOKS)
// Two more servers to look at, or 0, and an idle one. All but loads and the idle one: balance.
struct more_looks_t {
    server_id_t idle;             // has no connection open; 0: none is known; second_look
    bit<1>      seeks;            // it is taken before any other; second_look
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

// What happens to the packet. Applied once, by the target's verdict.
struct verdict_t {
    DropReason drop;
    PuntReason punt;
    port_t     egress_port;
    ipv4_t     next_hop;          // forward: reported to the controller when unresolved
}

// What is known of a SYN towards inside before its connection is looked for. A target may have a pass of its own for it.
struct decided_t {
    bit<1>           request;     // it is one, and to be counted; destinations
    destination_id_t destination; // that it is counted and limited under; destinations
    bit<8>           refused;     // REFUSED of the target: above a rate, may keep a pin, never claims one; admission, destinations
    bit<1>           returning;   // above the rate; if it is not refused, then because its client was admitted before; destinations
    bit<1>           answer_reset; // refused, it is to be answered; destinations
    bit<1>           looks;       // claims nothing in this pass; the target
    bit<1>           undecided;   // without a pin it passes once more; the target, connections
    bit<8>           way;         // of the connection table, that it is to claim, 1 or 2: found vacant in the pass before; the
                                  // target's parser, where a way is claimed in a second pass only (Tofino)
}

// How a content connection is translated: the server's sequence number + delta is the client's.
struct splice_t {
    Turn        turn;
    server_id_t agent;            // a server of the content service's
    bit<5>      shift;            // what the server's windows are shifted by, as a signed number: up above 0
    bit<4>      client_shift;     // what the client's windows are shifted up by
    bit<32>     value;            // delta; in the agent's turn, the agent's address; of a guessed connection, what its handshake has said
    bit<32>     client;           // of a guessed connection, the client's initial sequence number
}

// TCP options that a content connection may have, and that caps need.
struct options_t {
    bit<16> mss;                  // of a SYN or SYN-ACK, 536 where it says none (RFC 9293, section 3.7.1)
    bit<5>  scale;                // of the windows, plus 1; 0: not scaled
    bit<1>  sack;                 // SACK is permitted
    bit<1>  authenticated;        // by MD5 or AO: nothing of its segments may change
}

// How a server's TCP resources are managed. All zero: not at all.
struct resources_t {
    bit<1>  measured;             // its connections' transfers are measured, as far as they are sampled
    bit<8>  sampling;             // of 2^sampling connections one is
    bit<1>  closed;               // its idle connections may be closed
    bit<32> send_cap;             // bytes that a client may advertise to it, of connections without a cap of their own; 0: no cap
    bit<32> receive_cap;          // the same of what it advertises to a client; both 0: no cap of a connection's own either
}

struct metadata_t {
    @field_list(1)
    port_t       ingress_port;    // the target's intake, in the first pass
    bit<16>      ipv4_room;       // bytes of the frame from the IPv4 header on; the target's intake
    @field_list(1)
    ticks_t      now;             // ticks since the switch started, plus TICK_BASE; the target's intake, in the first pass
    rate_time_t  clock;           // finer, for the response rates; the target's intake
    bit<1>       icmp_error;      // the packet inside is TCP or UDP and parsed; parser
    bit<1>       ours;            // an address of the router's is asked for, or sent to; local
    bit<1>       martian;         // one of the IPv4 addresses is 0.0.0.0/8, 127.0.0.0/8 or 224.0.0.0/3; the target's parser or intake

    mac_t        router_mac;      // of the ingress port; ports
    bit<1>       inside;          // servers or protected hosts are behind the ingress port; ports
    bit<1>       known;           // the ingress port is; ports
    Path         path;            // every stage that decides
    flow_t       flow;            // classify
    bit<1>       inward;          // towards inside: to a service, or routed from outside; the target's main or judge
    Event        event;           // events
    lengths_t    lengths;         // measure
    bit<16>      payload;         // bytes behind the TCP header; measure

    service_id_t service;         // classify
    weight_t     shares;          // its weights sum to a divisor of this, and servers are drawn evenly; 0: by hashes; classify
    connection_t connection;      // classify
    server_id_t  server;          // that this packet comes from; classify. Or goes to; connections
    ipv4_t       endpoint;        // address and port to put in place of the packet's: from a server
    l4_port_t    endpoint_port;   // its service's; classify. To a service, its server's; translate

    server_id_t  choice;          // by R's weights; balance
    weight_t     choice_weight;   // of that; balance
    server_id_t  other;           // drawn beside it, for the second look, or 0; balance
    weight_t     other_weight;    // of that; balance
    @field_list(1)
    server_id_t  preferred;       // for the next pass: the one with less to do; second_look. Or the candidate; candidates
    server_id_t  stable_choice;   // by capacity; balance

    bit<1>       held;            // a slot holds this connection; connections
    bit<1>       pinned;          // and this server for it; connections
    bit<1>       claimed;         // the slot was taken by this very packet; connections
    bit<1>       moved;           // a SYN, said again before its handshake ended, goes to another server; connections, candidates (v1model)
    PinState     state;           // of the pin before this packet; connections
    PinState     next_state;      // and behind it; connections (v1model)
    server_id_t  evicted;         // of a connection that had not ended when its slot was claimed; connections
    @field_list(1)
    bit<8>       vacant;          // the way that a SYN may claim in its second pass, 1 or 2; connections

    bit<1>       itself;          // an ICMP error of the server that it is about; the target's judge (Tofino)
    bit<1>       draining;        // the server that the packet goes to takes no new connections; translate
    bit<1>       answered_again;  // this SYN-ACK repeats a candidate's; candidates
    loads_t      loads;
#if defined(MORE_LOOKS)
    more_looks_t more;
#endif
    @field_list(1)
    Pass         pass;            // what this pass is for; the target
    Pass         next_pass;       // and the one that follows; connections, candidates (v1model), renew and main (Tofino)

    ipv4_t       replaced;        // address and port that endpoint took the place of; translate,
    l4_port_t    replaced_port;   // for the checksums
    bit<1>       reset;           // the packet has become the reset of a refused SYN; refusal

    Content      content;         // classify
    bit<8>       generation;      // of the content service's rules, or UNREAD; classify
    ticks_t      remember_time;   // how long it remembers clients; classify
    options_t    options;         // of a SYN or SYN-ACK, of content in a pass of its own; the parser
    bit<16>      rebuilt;         // bytes of the segment whose options those took the place of; options
    server_id_t  agent;           // behind the ingress port, of the packet's content service; agents
    bit<2>       attempt;         // of an agent's SYN: how many servers have refused its connection; front (v1model)
    server_id_t  refused_by;      // the last of them; connections (v1model)
    ipv4_t       agent_address;   // agents; of a packet that goes to its connection's agent in spite of its destination: splice
    bit<1>       way;             // of the connection table that holds the slot, less 1; connections
    bit<32>      respliced;       // words that changed, for the checksums; splice, caps

    resources_t  resources;       // of the server; resources
#if defined(TOFINO) && defined(CONTENT)
    turn_t       turn;            // of a content connection; connections. Of an order, that it asks for; main
    granted_t    granted;         // what its cell says to an agent that asks for it; connections
#endif
}

#endif
