// Token buckets. Unconfigured, everything is green; yellow is admitted, red is not.
#ifndef SLUICE_V1MODEL_METERS_P4
#define SLUICE_V1MODEL_METERS_P4

const bit<8> REFUSED = 2;              // a colour

// New connections of each service.
control AdmissionMeter(in service_id_t service, out bit<8> refused) {
    @id(METER_ADMISSION)
    meter(SERVICES, MeterType.packets) admission;

    apply {
        bit<2> colour;
        admission.execute_meter((bit<32>)service, colour);
        refused = (bit<8>)colour;
    }
}

// New connections towards each destination, whoever opens them.
control DestinationMeter(in destination_id_t destination, out bit<8> refused) {
    @id(METER_DESTINATION_LIMIT)
    meter(DESTINATIONS, MeterType.packets) destination_limit;

    apply {
        bit<2> colour;
        destination_limit.execute_meter((bit<32>)destination, colour);
        refused = (bit<8>)colour;
    }
}

// Beyond that, of clients that were admitted before.
control ReturningMeter(in destination_id_t destination, out bit<8> refused) {
    @id(METER_RETURNING_LIMIT)
    meter(DESTINATIONS, MeterType.packets) returning_limit;

    apply {
        bit<2> colour;
        returning_limit.execute_meter((bit<32>)destination, colour);
        refused = (bit<8>)colour;
    }
}

// Packets to the controller, for each PuntReason.
control PuntMeter(in PuntReason reason, out bit<1> limited) {
    @id(METER_PUNT_LIMIT)
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
