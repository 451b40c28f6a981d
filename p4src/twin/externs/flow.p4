// Flow: the twin uses Tofino's control.
#include "../../tna/externs/flow.p4"
