// Token buckets. Unconfigured, everything is green; yellow is admitted, RED is not.
#ifndef SLUICE_TNA_METERS_P4
#define SLUICE_TNA_METERS_P4

// New connections of each service.
control AdmissionMeter(in service_id_t service, out bit<8> refused) {
    @id(METER_ADMISSION)
    Meter<service_id_t>(SERVICES, MeterType_t.PACKETS) admission;

    apply {
        refused = admission.execute(service);
    }
}

// New connections towards each destination, whoever opens them.
control DestinationMeter(in destination_id_t destination, out bit<8> refused) {
    @id(METER_DESTINATION_LIMIT)
    Meter<destination_id_t>(DESTINATIONS, MeterType_t.PACKETS) destination_limit;

    apply {
        refused = destination_limit.execute(destination);
    }
}

// Beyond that, of clients that were admitted before.
control ReturningMeter(in destination_id_t destination, out bit<8> refused) {
    @id(METER_RETURNING_LIMIT)
    Meter<destination_id_t>(DESTINATIONS, MeterType_t.PACKETS) returning_limit;

    apply {
        refused = returning_limit.execute(destination);
    }
}

// Packets to the controller, for each PuntReason. (The colour as it is: a field of two values made of it would cost a stage.)
control PuntMeter(in PuntReason reason, out bit<8> colour) {
    @id(METER_PUNT_LIMIT)
    Meter<bit<8>>(REASONS, MeterType_t.PACKETS) punt_limit;

    apply {
        colour = punt_limit.execute((bit<8>)reason);
    }
}

#endif
