// Egress: sets or removes the VLAN tags of the packets that ingress forwarded, and counts these packets.
#ifndef SLUICE_TNA_EGRESS_P4
#define SLUICE_TNA_EGRESS_P4

control SluiceEgress(inout headers_t hdr, inout egress_metadata_t all, in egress_intrinsic_metadata_t intrinsic,
                     in egress_intrinsic_metadata_from_parser_t from_parser,
                     inout egress_intrinsic_metadata_for_deparser_t for_deparser,
                     inout egress_intrinsic_metadata_for_output_port_t for_port) {
    // A controller finds the tables and registers of these stages under the same names on every target.
    @name(".SluiceIngress.tag")
    Tag() tag;
    @name(".SluiceIngress.ledger")
    Ledger() ledger;
    @name(".SluiceIngress.rates")
    Rates() rates;

    @hidden
    action widen_port() {
        @in_hash { all.egress_port = 7w0 ++ intrinsic.egress_port; }
    }

    apply {
        widen_port();
        tag.apply(hdr, all.egress_port);
        ledger.apply(all.sluice);
        rates.apply(hdr, all.sluice);
    }
}

#endif
