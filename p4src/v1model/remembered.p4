// Remembered: stores the last server of each client of a content service. A SYN of a stored client goes directly to this server
// (Chow, Wang & Prakash, section 3: pre-allocation; section 5.2: STICKY_IP).
//
//   reads  connection, path, event, generation, remember_time, now, server
//          splice: the splice order
//   writes preferred, remembered
//          the cells of remembered_clients
//
// An agent's splice order writes a client's entry. An entry from an earlier generation of rules does not match its client, but
// may match exactly one other client address by chance. Each handshake of the client with the stored server renews the entry. If
// the server refuses the client's SYN, the entry is deleted.
#ifndef SLUICE_V1MODEL_REMEMBERED_P4
#define SLUICE_V1MODEL_REMEMBERED_P4

typedef bit<(REMEMBERED_CLIENT_BITS)> remembered_slot_t;
typedef bit<63> remembered_t;
#define REMEMBERED_FINGERPRINT 62:47   // the bits of the hash above the slot's index, XORed with the generation
#define REMEMBERED_KIND 46:46          // a Remember, minus 1
#define REMEMBERED_SERVER 45:30
#define REMEMBERED_STAMP 29:0          // time of the last handshake, in ticks

// Looks up, writes, renews or deletes a client's entry. For one service, CRC-32 is a bijection of the client's address, so two
// clients of a service are not mistaken for each other under the same generation of rules.
control Remembered(in headers_t hdr, inout metadata_t meta, out Remember remembered) {
    @id(REGISTER_REMEMBERED_CLIENTS)
    register<remembered_t>(REMEMBERED_CLIENTS) remembered_clients;

    apply {
        remembered = Remember.nothing;
        bit<8> generation = meta.generation;
        if (meta.path == Path.order) {
            generation = hdr.splice.generation;
        }
        bit<32> key;
        hash(key, HashAlgorithm.crc32, 32w0,
             { meta.connection.client, meta.connection.service, meta.connection.service_port }, 64w0x100000000);
        bit<32> slot = (bit<32>)(remembered_slot_t)key;
        bit<(32 - REMEMBERED_CLIENT_BITS)> fingerprint = key[31:REMEMBERED_CLIENT_BITS] ^ (bit<(32 - REMEMBERED_CLIENT_BITS)>)generation;
        remembered_t cell;
        if (meta.path == Path.order) {
            cell = fingerprint ++ (hdr.splice.remember - 1)[0:0] ++ meta.server ++ meta.now[29:0];
            remembered_clients.write(slot, cell);
        } else {
            remembered_clients.read(cell, slot);
            if (meta.path == Path.from_server) {
                // A server's packet shows no generation, so another client's entry for this server in the cell is deleted, too.
                if (cell[REMEMBERED_SERVER] == meta.server) {
                    remembered_clients.write(slot, 0);
                }
            } else if (cell[REMEMBERED_FINGERPRINT] == fingerprint
                && (bit<32>)(meta.now[29:0] - cell[REMEMBERED_STAMP]) < meta.remember_time) {
                if (meta.event == Event.syn) {
                    remembered = (Remember)((bit<8>)cell[REMEMBERED_KIND] + 1);
                    meta.preferred = cell[REMEMBERED_SERVER];
                } else if (cell[REMEMBERED_SERVER] == meta.server) {
                    cell[REMEMBERED_STAMP] = meta.now[29:0];
                    remembered_clients.write(slot, cell);
                }
            }
        }
    }
}

#endif
