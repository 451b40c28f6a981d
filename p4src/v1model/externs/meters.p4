// Token buckets. Unconfigured, everything is green; yellow is admitted.
#ifndef SLUICE_V1MODEL_METERS_P4
#define SLUICE_V1MODEL_METERS_P4

// New connections of each service.
control AdmissionMeter(in service_id_t service, out bit<1> refused) {
    @id(0x14000001)
    meter(SERVICES, MeterType.packets) admission;

    apply {
        bit<2> colour;
        admission.execute_meter((bit<32>)service, colour);
        refused = 0;
        if (colour == 2) {
            refused = 1;
        }
    }
}

// New connections towards each destination, whoever opens them.
control DestinationMeter(in destination_id_t destination, out bit<1> refused) {
    @id(0x14000003)
    meter(DESTINATIONS, MeterType.packets) destination_limit;

    apply {
        bit<2> colour;
        destination_limit.execute_meter((bit<32>)destination, colour);
        refused = 0;
        if (colour == 2) {
            refused = 1;
        }
    }
}

// Beyond that, of clients that were admitted before.
control ReturningMeter(in destination_id_t destination, out bit<1> refused) {
    @id(0x14000004)
    meter(DESTINATIONS, MeterType.packets) returning_limit;

    apply {
        bit<2> colour;
        returning_limit.execute_meter((bit<32>)destination, colour);
        refused = 0;
        if (colour == 2) {
            refused = 1;
        }
    }
}

// Packets to the controller, for each PuntReason.
control PuntMeter(in PuntReason reason, out bit<1> limited) {
    @id(0x14000002)
    meter(REASONS, MeterType.packets) punt_limit;

    apply {
        bit<2> colour;
        punt_limit.execute_meter((bit<32>)(bit<8>)reason, colour);
        limited = 0;
        if (colour == 2) {
            limited = 1;
        }
    }
}

#endif
