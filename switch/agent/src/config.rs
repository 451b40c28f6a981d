//! The engine's settings: those of its start, and those of the controller.

use std::collections::{BTreeMap, HashMap};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::{Arc, Mutex, PoisonError};

use sluice_ports::counters::Counter;

use crate::cookie::CookieKey;
use crate::decider::Decider;
use crate::wire::Mac;

/// What does not change while the engine lives.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The agent's hardware address.
    pub mac: Mac,
    /// The agent's address.
    pub address: Ipv4Addr,
    /// The router's address.
    pub gateway: Ipv4Addr,
    /// Seconds since 1970 at time zero.
    pub epoch_s: u64,
    /// Bytes of memory for connections.
    pub budget: usize,
}

/// What the controller wants. Replaces all it wanted before.
#[derive(Debug, Clone)]
pub struct Configuration {
    /// The content services.
    pub services: Vec<Arc<Service>>,
    /// Of the rules, modulo 256.
    pub generation: u8,
    /// The key of cookies.
    pub key: CookieKey,
    /// The key before, whose cookies are still out.
    pub former_key: Option<CookieKey>,
}

/// A content service. A connection keeps the one it began with.
#[derive(Debug)]
pub struct Service {
    /// Its name.
    pub name: String,
    /// Its address, as clients know it.
    pub address: SocketAddrV4,
    /// Its port at the agent.
    pub agent_port: u16,
    /// Its groups of servers.
    pub groups: Vec<Group>,
    /// Its rules.
    pub rules: Arc<dyn Decider>,
    /// Whether the data plane is to open a known client's next connection to the server of its last.
    pub guess: bool,
    /// Requests that each rule took.
    pub hits: Vec<Arc<Counter>>,
    /// What has happened besides.
    pub counters: Arc<Counters>,
}

impl Service {
    /// A service that nothing has happened to.
    pub fn new(
        name: String,
        address: SocketAddrV4,
        agent_port: u16,
        groups: Vec<(String, SocketAddrV4)>,
        rules: Arc<dyn Decider>,
    ) -> Service {
        let group = |(name, address)| Group {
            name,
            address,
            servers: Vec::new(),
            opened: Arc::default(),
            failed: Arc::default(),
        };
        let hits = (0..rules.rules()).map(|_| Arc::default()).collect();
        let counters = Arc::default();
        let groups = groups.into_iter().map(group).collect();
        Service { name, address, agent_port, groups, rules, guess: false, hits, counters }
    }

    /// Counts on from the service before it: groups by their names, rules by these.
    pub fn count_on(&mut self, rules: &[String], (before, rules_before): (&Service, &[String])) {
        self.counters = Arc::clone(&before.counters);
        for group in &mut self.groups {
            if let Some(same) = before.groups.iter().find(|same| same.name == group.name) {
                (group.opened, group.failed) = (Arc::clone(&same.opened), Arc::clone(&same.failed));
            }
        }
        let hits_before: HashMap<_, _> = rules_before.iter().zip(&before.hits).collect();
        for (name, hits) in rules.iter().zip(&mut self.hits) {
            if let Some(same) = hits_before.get(name) {
                *hits = Arc::clone(same);
            }
        }
    }
}

/// A group of servers: a service with an internal address.
#[derive(Debug)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Its internal address.
    pub address: SocketAddrV4,
    /// Its servers, by the data plane's numbers.
    pub servers: Vec<u16>,
    /// Connections opened to its servers.
    pub opened: Arc<Counter>,
    /// Connections that its servers refused or did not answer.
    pub failed: Arc<Counter>,
}

/// What has happened at a service. The engine's thread writes, anybody reads.
#[derive(Debug, Default)]
pub struct Counters {
    /// Requests that the default took.
    pub by_default: Counter,
    /// SYNs answered.
    pub handshakes: Counter,
    /// Connections that the data plane took over.
    pub spliced: Counter,
    /// Orders repeated.
    pub orders_repeated: Counter,
    /// Orders that the data plane did not confirm, or refused.
    pub orders_failed: Counter,
    /// Connections reset by client or server while the agent had them.
    pub resets: Counter,
    /// Connections lost: with bytes that the agent had acknowledged, or of an agent that is gone.
    pub lost: Counter,
    /// Segments that belong to nothing, with a wrong cookie for instance.
    pub strays: Counter,
    /// Connections that the data plane had opened to a server of the right group, and to one of another.
    pub guesses_right: Counter,
    /// The others.
    pub guesses_wrong: Counter,
    /// Connections reset, for the wrong server had spoken already.
    pub guesses_reset: Counter,
    refused: Mutex<BTreeMap<&'static str, u64>>,
}

impl Counters {
    /// Counts a refusal.
    pub fn refuse(&self, why: &'static str) {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner).entry(why).or_default() += 1;
    }

    /// Refusals by their reason.
    pub fn refused(&self) -> BTreeMap<&'static str, u64> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
