//! Tests of the agent with simulated clients, servers, switch and controller.

mod budget;
mod control;
mod ending;
mod fuzz;
mod guarding;
mod guessed_transfers;
mod guesses;
mod hostile;
mod later_requests;
mod mail;
mod mail_guarding;
mod mail_hostile;
mod mail_transfers;
mod metrics;
mod moments;
mod opening;
mod pauses;
mod pools;
mod requests;
mod signals;
mod splices;
mod support;
mod transfers;
mod windows;
