// The list of the program's stages, in the order in which a packet passes the stages. A file in <> has a version for each target:
// tools/p4.py puts the target's folder on the include path. Each target's main.p4 includes this list, and applies the stages.
#ifndef SLUICE_STAGES_P4
#define SLUICE_STAGES_P4

#include "common/types.p4"
#include "common/sizes.p4"
#include "common/ids.p4"
#include "common/constants.p4"
#include "common/headers.p4"
#include "common/metadata.p4"

#include "stages/ports.p4"
#include "stages/measure.p4"
#include "stages/validate.p4"
#include "stages/events.p4"
#include <externs/flow.p4>
#include "stages/classify.p4"
#include "stages/local.p4"
#include <externs/answers.p4>
#include "stages/hop_limit.p4"
#include "stages/sampling.p4"
#include "stages/admission.p4"
#include "stages/destinations.p4"
#include "stages/balance.p4"
#include "stages/places.p4"
#include "stages/connections.p4"
#include "stages/requests.p4"
#include "stages/refusal.p4"
#include "stages/translate.p4"
#include "stages/second_look.p4"
#include "stages/forward.p4"
#include "stages/tag.p4"
#include "stages/ledger.p4"
#include "stages/rates.p4"

#endif
