// Token buckets. Unconfigured, everything is green; yellow is admitted. Red is 3.
#ifndef SLUICE_TNA_METERS_P4
#define SLUICE_TNA_METERS_P4

// New connections of each service.
control AdmissionMeter(in service_id_t service, out bit<1> refused) {
    @id(0x01)
    Meter<service_id_t>(SERVICES, MeterType_t.PACKETS) admission;

    apply {
        bit<8> colour = admission.execute(service);
        refused = 0;
        if (colour == 3) {
            refused = 1;
        }
    }
}

// New connections towards each destination, whoever opens them.
control DestinationMeter(in destination_id_t destination, out bit<1> refused) {
    @id(0x03)
    Meter<destination_id_t>(DESTINATIONS, MeterType_t.PACKETS) destination_limit;

    apply {
        bit<8> colour = destination_limit.execute(destination);
        refused = 0;
        if (colour == 3) {
            refused = 1;
        }
    }
}

// Beyond that, of clients that were admitted before.
control ReturningMeter(in destination_id_t destination, out bit<1> refused) {
    @id(0x04)
    Meter<destination_id_t>(DESTINATIONS, MeterType_t.PACKETS) returning_limit;

    apply {
        bit<8> colour = returning_limit.execute(destination);
        refused = 0;
        if (colour == 3) {
            refused = 1;
        }
    }
}

// Packets to the controller, for each PuntReason.
control PuntMeter(in PuntReason reason, out bit<1> limited) {
    @id(0x02)
    Meter<bit<8>>(REASONS, MeterType_t.PACKETS) punt_limit;

    apply {
        bit<8> colour = punt_limit.execute((bit<8>)reason);
        limited = 0;
        if (colour == 3) {
            limited = 1;
        }
    }
}

#endif
