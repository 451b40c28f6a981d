// The memory of admitted clients, one read-modify-write of at most two comparisons.
#ifndef SLUICE_V1MODEL_CLIENTS_P4
#define SLUICE_V1MODEL_CLIENTS_P4

// A client of a destination: fingerprint above, stamp of its last admitted SYN below.
typedef bit<48> admitted_client_t;

// A client that is not refused takes its cell, whoever had it: the newest are remembered. Otherwise: is it known, and not from
// before `oldest`? Then its stamp is renewed. One CRC-32 gives cell and fingerprint. For one destination it is a bijection of
// the client's address, so that no two clients of a destination are taken for each other.
control AdmittedClients(in ipv4_t client, in ipv4_t destination, in bit<1> asked, in bit<8> refused, in ticks_t oldest, in ticks_t now,
                        out bit<1> known) {
    @id(0x16000020)
    register<admitted_client_t>(ADMITTED_CLIENTS) admitted_clients;

    apply {
        known = 0;
        if (asked == 1) {
            bit<32> key;
            hash(key, HashAlgorithm.crc32, 32w0, { client, destination }, 64w0x100000000);
            admitted_client_t cell;
            admitted_clients.read(cell, (bit<32>)key[15:0]);
            if (refused == REFUSED && cell[47:32] == key[31:16] && !later(oldest, cell[31:0])) {
                known = 1;
            }
            if (refused != REFUSED || known == 1) {
                cell = key[31:16] ++ now;
            }
            admitted_clients.write((bit<32>)key[15:0], cell);
        }
    }
}

#endif
