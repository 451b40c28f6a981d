// Tag: sets or removes the VLAN tag of a forwarded packet.
//
//   reads  egress_port, vlan
//   writes ethernet.type, vlan
//   keys   egress_vlan: egress port -> whether the tag is kept, set or removed
#ifndef SLUICE_STAGES_TAG_P4
#define SLUICE_STAGES_TAG_P4

control Tag(inout headers_t hdr, in port_t egress_port) {
    vlan_id_t vlan = 0;

    @id(ACTION_KEEP)
    action keep() { }

    @id(ACTION_SET_VLAN)
    action set_vlan(vlan_id_t id) {
        vlan = id;
    }

    @id(ACTION_STRIP)
    action strip() {
        hdr.ethernet.type = ETHERTYPE_IPV4;
        hdr.vlan.setInvalid();
    }

    @id(TABLE_EGRESS_VLAN)
    table egress_vlan {
        key = { egress_port : exact @name("port"); }
        actions = { keep; set_vlan; strip; }
        const default_action = keep;
        size = PORTS;
    }

    @hidden
    action push() {
        hdr.vlan.setValid();
        hdr.vlan.priority = 0;
        hdr.vlan.drop_eligible = 0;
        hdr.vlan.id = vlan;
        hdr.vlan.type = ETHERTYPE_IPV4;
        hdr.ethernet.type = ETHERTYPE_VLAN;
    }

    @hidden
    action rewrite() {
        hdr.vlan.id = vlan;
    }

    @hidden
    table write_tag {
        key = { hdr.vlan.isValid() : exact @name("tagged"); }
        actions = { push; rewrite; }
        const default_action = push();
        const entries = {
            true : rewrite();
        }
    }

    apply {
        egress_vlan.apply();
        if (vlan != 0) {
            write_tag.apply();
        }
    }
}

#endif
