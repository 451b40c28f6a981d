// Limits: samples, counts and limits packets from outside.
//
//   reads  path, inside; what sampling, admission and destinations read
//   writes inward
//          what admission and destinations write
//          the meters and registers of the stages applied
#ifndef SLUICE_V1MODEL_LIMITS_P4
#define SLUICE_V1MODEL_LIMITS_P4

control Limits(inout metadata_t meta, inout decided_t decided) {
    @name(".SluiceIngress.sampling")
    Sampling() sampling;
    @name(".SluiceIngress.admission")
    Admission() admission;
    @name(".SluiceIngress.destinations")
    Destinations() destinations;

    apply {
        if (meta.path == Path.to_service || (meta.path == Path.routed && meta.inside == 0)) {
            meta.inward = 1;
            sampling.apply(meta);
            if (meta.path == Path.to_service)                               admission.apply(meta, decided);
            destinations.apply(meta, decided);
        }
    }
}

#endif
