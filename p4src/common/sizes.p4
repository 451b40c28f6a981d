// Every size of the program, each with its reason. No target include.
#ifndef SLUICE_COMMON_SIZES_P4
#define SLUICE_COMMON_SIZES_P4

const bit<32> SERVICES         = 1024;   // services a switch is asked to carry; also the admission meters
const bit<32> SERVERS          = 1024;   // servers over all services; also the cells of each ledger register
const bit<32> SERVICE_ENDPOINTS = 2048;  // services, and one deny_direct entry for each server
const bit<32> CONNECTION_SLOTS = 131072; // per way. Two ways of 2^17 leave at most 1.2 % of 65,536 live
                                         // connections unpinned (2^15: 23 %, 2^18: 0.2 %)
const bit<32> CANDIDATES       = 16384;  // handshakes at a time whose ports are pinned to a server that takes no new connections
const bit<32> SELECTOR_SIZE    = 65536;  // sum of all weights: at least 16 a server in both selectors
const bit<32> OTHERS           = 2048;   // groups for the second look: one a server of a small pool, one for each larger pool
const bit<32> OTHERS_SIZE      = 262144; // sum of their weights: a small pool's weights sum to 256
const bit<32> PORTS            = 512;    // what a 9-bit port number can name
const bit<32> OWNED_ADDRESSES  = 2048;   // interface addresses and one address for each service
const bit<32> DESTINATIONS     = 1024;   // service addresses and protected hosts with counts and limits of their own
const bit<32> ADMITTED_CLIENTS = 65536;  // 6,000 clients (100 new ones a second, remembered for a minute): 1 in 11 is forgotten early
const bit<32> RATE_FLOWS       = 4096;   // sampled responses at a time: the fastest tenth is a mean of some hundred
const bit<32> SAMPLES          = 1024;   // between two polls: at most this many destinations are kept
const bit<32> ROUTES           = 4096;
const bit<32> NEIGHBOURS       = 4096;   // all servers, gateways and directly attached hosts
const bit<32> REASONS          = 256;    // an 8-bit reason

#endif
