// Answers: the twin uses Tofino's control.
#include "../../tna/externs/answers.p4"
