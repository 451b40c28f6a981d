// The two ways of the connection table: how they share the work.
#ifndef SLUICE_V1MODEL_WAYS_P4
#define SLUICE_V1MODEL_WAYS_P4

// Finds a packet's connection in one of two ways or claims a slot for it, keeps or takes its pin, steps its state. A request goes
// to the server that its connection is pinned to; without a pin, to the stable choice, and a SYN that passes once more to its choice.
//
// A SYN looks at way 2 before it claims way 1: its connection may live there, though way 1 has become vacant. That touches way 2, so
// that a SYN which finds way 1 taken and way 2 vacant claims that one in a second pass. An answer reads the server first: only that
// server's packets change the key. A SYN that takes its own connection's slot anew, before the handshake has ended, moves it.
control Pins(inout metadata_t meta, in place_t place, inout decided_t decided) {
    @name(".SluiceIngress.connections.key_1.pin_key_1")
    @id(REGISTER_PIN_KEY_1)
    register<pin_key_t>(CONNECTION_SLOTS) pin_key_1;
    @name(".SluiceIngress.connections.key_2.pin_key_2")
    @id(REGISTER_PIN_KEY_2)
    register<pin_key_t>(CONNECTION_SLOTS) pin_key_2;
    @name(".SluiceIngress.connections.server_1.pin_server_1")
    @id(REGISTER_PIN_SERVER_1)
    register<server_id_t>(CONNECTION_SLOTS) pin_server_1;
    @name(".SluiceIngress.connections.server_2.pin_server_2")
    @id(REGISTER_PIN_SERVER_2)
    register<server_id_t>(CONNECTION_SLOTS) pin_server_2;

    pin_key_t before;
    pin_key_t key;
    server_id_t pin;
    found_t found;

    // Takes the server that the slot is claimed for; a connection that lost it before its end is counted.
    @hidden
    action claim_1() {
        pin_server_1.read(meta.evicted, (bit<32>)place.slot_1);
        pin_server_1.write((bit<32>)place.slot_1, meta.choice);
    }
    @hidden
    action claim_2() {
        pin_server_2.read(meta.evicted, (bit<32>)place.slot_2);
        pin_server_2.write((bit<32>)place.slot_2, meta.choice);
    }

    apply {
        pin = 0;
        found.hit = 0;
        found.vacant = 0;
        found.before = PENDING;
        found.after = PENDING;
        bit<1> claimed = 0;

        if (meta.path == Path.from_server) {
            if (meta.event != Event.syn) {        // with a SYN a server opens no connection of the service's
                bit<1> own = 0;
                pin_server_1.read(pin, (bit<32>)place.slot_1);
                if (pin == meta.server) {
                    own = 1;
                }
                pin_key_1.read(before, (bit<32>)place.slot_1);
                key = before;
                step_answer(own, meta.pass, meta.event, place.fingerprint, meta.now, key, found);
                if (key != before) {
                    pin_key_1.write((bit<32>)place.slot_1, key);
                }
                if (found.hit == 0) {
                    meta.way = 1;
                    own = 0;
                    pin_server_2.read(pin, (bit<32>)place.slot_2);
                    if (pin == meta.server) {
                        own = 1;
                    }
                    pin_key_2.read(before, (bit<32>)place.slot_2);
                    key = before;
                    step_answer(own, meta.pass, meta.event, place.fingerprint, meta.now, key, found);
                    if (key != before) {
                        pin_key_2.write((bit<32>)place.slot_2, key);
                    }
                }
            }
        } else if (meta.event == Event.syn) {
            bool vacant_2 = false;
            before = 0;
            if (meta.vacant != 1) {
                pin_key_2.read(before, (bit<32>)place.slot_2);
                key = before;
                step_syn(meta.vacant[1:1], meta.content, place.fingerprint, meta.now, place.step.times, key, found);
                if (key != before) {
                    pin_key_2.write((bit<32>)place.slot_2, key);
                }
                if (found.hit == 1) {
                    meta.way = 1;
                    pin_server_2.read(pin, (bit<32>)place.slot_2);
                } else if (found.vacant == 1) {
                    if (meta.vacant == 2) {
                        meta.way = 1;
                        claim_2();
                        claimed = 1;
                    } else {
                        vacant_2 = true;
#if defined(CONTENT)
                        if (meta.attempt != 0 && before[KEY_FINGERPRINT] == place.fingerprint) {
                            pin_server_2.read(meta.refused_by, (bit<32>)place.slot_2);
                        }
#endif
                    }
                }
            }
            if (found.hit == 0 && meta.vacant != 2) {
                pin_key_1.read(before, (bit<32>)place.slot_1);
                key = before;
                step_syn(place.step.claims, meta.content, place.fingerprint, meta.now, place.step.times, key, found);
                if (key != before) {
                    pin_key_1.write((bit<32>)place.slot_1, key);
                }
                if (found.hit == 1) {
                    pin_server_1.read(pin, (bit<32>)place.slot_1);
                } else if (found.vacant == 1 && place.step.claims == 1) {
                    claim_1();
                    claimed = 1;
                } else if (found.vacant == 1) {
                    meta.vacant = 1;
#if defined(CONTENT)
                    if (meta.attempt != 0 && before[KEY_FINGERPRINT] == place.fingerprint) {
                        pin_server_1.read(meta.refused_by, (bit<32>)place.slot_1);
                    }
#endif
                } else if (vacant_2) {
                    meta.vacant = 2;
                }
            }
            if (claimed == 1) {
                pin = meta.choice;
                meta.claimed = 1;
                if (found.before >= SERVER_CLOSING) {
                    meta.evicted = 0;         // it had ended
                } else if (before[KEY_FINGERPRINT] == place.fingerprint && meta.evicted != 0 && meta.evicted != meta.choice
                           && (found.before <= ANSWERED || found.before == REOPENING)) {
                    meta.moved = 1;           // its handshake had not
                }
            }
            if (meta.vacant == 0) {
                decided.undecided = 0;        // a second pass would find no slot either
            }
        } else {
            pin_key_1.read(before, (bit<32>)place.slot_1);
            key = before;
            if (meta.pass == Pass.move) {
                step_move(place.fingerprint, meta.now, key, found);
            } else {
                step_request(meta.event, place.fingerprint, meta.now, key, found);
            }
            if (key != before) {
                pin_key_1.write((bit<32>)place.slot_1, key);
            }
            if (found.hit == 1) {
                pin_server_1.read(pin, (bit<32>)place.slot_1);
                if (meta.pass == Pass.move) {
                    pin = meta.preferred;
                    pin_server_1.write((bit<32>)place.slot_1, pin);
                }
            } else {
                meta.way = 1;
                pin_key_2.read(before, (bit<32>)place.slot_2);
                key = before;
                if (meta.pass == Pass.move) {
                    step_move(place.fingerprint, meta.now, key, found);
                } else {
                    step_request(meta.event, place.fingerprint, meta.now, key, found);
                }
                if (key != before) {
                    pin_key_2.write((bit<32>)place.slot_2, key);
                }
                if (found.hit == 1) {
                    pin_server_2.read(pin, (bit<32>)place.slot_2);
                    if (meta.pass == Pass.move) {
                        pin = meta.preferred;
                        pin_server_2.write((bit<32>)place.slot_2, pin);
                    }
                }
            }
        }

        if (found.hit == 1 || claimed == 1) {
            meta.held = 1;
            meta.state = (PinState)(bit<8>)found.before;
            meta.next_state = (PinState)(bit<8>)found.after;
            if (meta.path != Path.from_server) {
                meta.server = pin;
            }
            if (pin == meta.server) {
                meta.pinned = 1;
            }
        } else if (meta.path == Path.to_service) {
            if (meta.event == Event.syn && decided.undecided == 1) {
                meta.server = meta.choice;
            } else {
                meta.server = meta.stable_choice;
            }
        }
    }
}

#endif
