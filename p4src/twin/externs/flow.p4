// Flow: Tofino's control.
#include "../../tna/externs/flow.p4"
