//! The controller's gRPC interface: the controller configures the agent and reads its reports over it.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sluice_rules::RuleSet;
use tokio::sync::Notify;
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status as Refused};

use crate::config::{Configuration, Service};
use crate::pool::{self, Learned};
use crate::proto;
use crate::rules::Rules;

/// The state that the engine's thread and the control server share.
#[derive(Default)]
pub struct SharedState {
    /// A configuration that the engine has not applied yet.
    pub next: Mutex<Option<Configuration>>,
    /// The configuration in force.
    pub current: Mutex<Option<Arc<InForce>>>,
    /// The properties of the groups' servers that other agents have learned, and that the engine has not applied yet.
    pub others: Mutex<Option<Vec<pool::GroupReport>>>,
    /// The properties of the groups' servers that this agent has learned.
    pub learned: Mutex<Vec<pool::GroupReport>>,
    /// The engine's load.
    pub load: Mutex<Load>,
    /// Notified when the controller requests that the agent drain.
    pub drain: Notify,
}

/// The parts of the configuration in force that reports need.
pub struct InForce {
    /// The generation of the rules.
    pub generation: u32,
    /// The services, each with its rules.
    pub services: Vec<(Arc<Service>, Arc<RuleSet>)>,
}

/// The engine's load at one moment.
#[derive(Debug, Default, Clone, Copy)]
pub struct Load {
    /// The number of connections.
    pub connections: usize,
    /// The number of incomplete requests.
    pub waiting: usize,
    /// The memory of connections and of handshakes that wait for an ACK, in bytes.
    pub memory: usize,
    /// Whether the agent is draining.
    pub is_draining: bool,
}

/// Locks a mutex, even if another thread has panicked while it held the lock.
pub fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The gRPC service of the agent.
pub struct Control<W> {
    shared: Arc<SharedState>,
    started: Instant,
    /// Wakes the engine's thread, so that it applies the shared state.
    wake: W,
}

impl<W: Fn()> Control<W> {
    /// Creates the service; `shared` is the state that it shares with the engine.
    pub fn new(shared: Arc<SharedState>, wake: W) -> Self {
        Self { shared, started: Instant::now(), wake }
    }
}

type Problems = Vec<proto::Problem>;

fn problem(service: &str, path: &str, message: impl Into<String>, remedy: &str) -> proto::Problem {
    let (path, message) = (path.to_owned(), message.into());
    proto::Problem { service: service.to_owned(), path, message, remedy: remedy.to_owned() }
}

/// Compiles a configuration. A service continues the counters of the service with the same name in the previous
/// configuration.
///
/// # Errors
/// Returns the mistakes in the configuration.
pub fn compile(
    requested: &proto::Configuration,
    before: Option<&InForce>,
) -> Result<(Configuration, InForce), Problems> {
    let mut problems = Problems::new();
    let services: Vec<_> =
        requested.services.iter().filter_map(|service| compiled(service, before, &mut problems)).collect();
    for (n, (service, _)) in services.iter().enumerate() {
        let earlier = &services[..n];
        if earlier.iter().any(|(other, _)| other.agent_port == service.agent_port) {
            problems.push(problem(
                &service.name,
                "",
                "another service has the same agent_port",
                "give each service its own",
            ));
        }
        if earlier.iter().any(|(other, _)| other.address == service.address) {
            problems.push(problem(
                &service.name,
                "",
                "another service has the same address",
                "give each service its own",
            ));
        }
    }
    let key = <[u8; 16]>::try_from(&requested.cookie_key[..]);
    let former_key = match &requested.former_cookie_key[..] {
        [] => Ok(None),
        bytes => <[u8; 16]>::try_from(bytes).map(Some),
    };
    match (key, former_key) {
        (Ok(key), Ok(former_key)) if problems.is_empty() => {
            let generation = (requested.generation & 0xff) as u8;
            let all = services.iter().map(|(service, _)| Arc::clone(service)).collect();
            let configuration = Configuration { services: all, generation, key, former_key };
            Ok((configuration, InForce { generation: requested.generation, services }))
        }
        (Err(_), _) | (_, Err(_)) => {
            problems.push(problem("", "", "a cookie key has 16 bytes", "give 16 random bytes"));
            Err(problems)
        }
        _ => Err(problems),
    }
}

fn compiled(
    requested: &proto::Service,
    before: Option<&InForce>,
    problems: &mut Problems,
) -> Option<(Arc<Service>, Arc<RuleSet>)> {
    let faults = problems.len();
    let name = &requested.name;
    let mut port = |number: u32, what| {
        let port = u16::try_from(number).ok().filter(|port| *port > 0);
        if port.is_none() {
            problems.push(problem(name, "", format!("{what} {number} is no port"), "give a port from 1 to 65535"));
        }
        port
    };
    let ports = (port(requested.port, "port"), port(requested.agent_port, "agent_port"));
    let address: Option<Ipv4Addr> = requested.address.parse().ok();
    if address.is_none() {
        problems.push(problem(name, "", format!("{:?} is no IPv4 address", requested.address), "give an IPv4 address"));
    }
    let rules = RuleSet::from_json(requested.content.as_bytes())
        .map_err(|rule_problems| {
            let named = |mistake: sluice_rules::Problem| problem(name, &mistake.path, mistake.message, &mistake.remedy);
            problems.extend(rule_problems.into_iter().map(named));
        })
        .ok();
    let rules = Arc::new(rules?);
    let mut groups = Vec::new();
    for group in rules.groups() {
        match requested.groups.get(group).map(|address| address.parse::<SocketAddrV4>()) {
            Some(Ok(address)) => groups.push((group.clone(), address)),
            Some(Err(_)) => problems.push(problem(
                name,
                "",
                format!("group {group}: the address is no ADDRESS:PORT"),
                "give one such as 10.0.0.1:80",
            )),
            None => problems.push(problem(name, "", format!("group {group} has no address"), "give an ADDRESS:PORT")),
        }
    }
    let servers: Vec<_> = rules.groups().iter().map(|group| numbers(requested, group, problems)).collect();
    let ((Some(port), Some(agent_port)), Some(address)) = (ports, address) else { return None };
    if problems.len() > faults {
        return None;
    }
    let deciding = Arc::new(Rules(Arc::clone(&rules)));
    let address = SocketAddrV4::new(address, port);
    let mut service = Service::new(name.clone(), address, agent_port, groups, deciding);
    // A guessed connection reaches its server before its request is read, so no server is guessed for services with
    // refusing rules.
    service.guess = requested.guess && !rules.guards();
    for (group, servers) in service.groups.iter_mut().zip(servers) {
        group.servers = servers;
    }
    let mut known = before.into_iter().flat_map(|before| &before.services);
    if let Some((before, rules_before)) = known.find(|(before, _)| before.name == service.name) {
        service.continue_counters(rules.rules(), (before, rules_before.rules()));
    }
    Some((Arc::new(service), rules))
}

/// Returns the numbers of a group's servers in the data plane. If a group has no numbers, each guess counts as wrong.
fn numbers(requested: &proto::Service, group: &str, problems: &mut Problems) -> Vec<u16> {
    let ids = requested.servers.get(group).map_or(&[][..], |servers| &servers.ids);
    let numbers = ids.iter().map(|id| u16::try_from(*id)).collect::<Result<_, _>>();
    numbers.unwrap_or_else(|_| {
        let text = format!("group {group}: a server's number is above 65535");
        problems.push(problem(&requested.name, "", text, "give a number up to 65535"));
        Vec::new()
    })
}

/// Converts the learned abilities of a group's servers (MSS, window, SACK, window scale) to a message.
fn ability(report: &pool::GroupReport) -> proto::Ability {
    let Learned { mss, window, sack, scales, scale } = report.learned;
    proto::Ability {
        servers: report.servers.iter().copied().map(u32::from).collect(),
        mss: mss.map(u32::from),
        window: window.map(u32::from),
        sack,
        scales,
        scale: scale.map(u32::from),
    }
}

/// Converts a message about the abilities of servers to the engine's form. Omits groups that are not configured or that
/// have a server number above 65,535, and omits abilities that are out of range.
fn group_reports(message: proto::SharedAbilities, in_force: Option<&InForce>) -> Vec<pool::GroupReport> {
    let read = |group: proto::GroupAbility| {
        let mut services = in_force?.services.iter().map(|(service, _)| service);
        let service = services.find(|service| service.name == group.service)?;
        let address = service.groups.iter().find(|same| same.name == group.group)?.address;
        let proto::Ability { servers, mss, window, sack, scales, scale } = group.ability?;
        let word = |number: Option<u32>| number.and_then(|number| u16::try_from(number).ok());
        let scale = scale.and_then(|scale| u8::try_from(scale).ok());
        let learned = Learned { mss: word(mss), window: word(window), sack, scales, scale };
        let servers = servers.into_iter().map(u16::try_from).collect::<Result<_, _>>().ok()?;
        Some(pool::GroupReport { group: address, servers, learned })
    };
    message.groups.into_iter().filter_map(read).collect()
}

/// Returns a report of a service's counters, and of the abilities of its groups that this agent has learned.
fn service_status(
    (service, rules): &(Arc<Service>, Arc<RuleSet>),
    learned: &[pool::GroupReport],
) -> proto::ServiceStatus {
    let counters = &service.counters;
    let hits = rules.rules().iter().zip(&service.hits);
    let group = |group: &crate::config::Group| proto::GroupStatus {
        name: group.name.clone(),
        opened: group.opened.get(),
        failed: group.failed.get(),
        ability: learned.iter().find(|learned| learned.group == group.address).map(ability),
    };
    proto::ServiceStatus {
        name: service.name.clone(),
        handshakes: counters.handshakes.get(),
        rules: hits.map(|(name, hits)| proto::RuleStatus { name: name.clone(), hits: hits.get() }).collect(),
        by_default: counters.by_default.get(),
        groups: service.groups.iter().map(group).collect(),
        refused: counters.refused().into_iter().map(|(why, count)| (why.to_owned(), count)).collect(),
        spliced: counters.spliced.get(),
        orders_repeated: counters.orders_repeated.get(),
        orders_failed: counters.orders_failed.get(),
        resets: counters.resets.get(),
        lost: counters.lost.get(),
        strays: counters.strays.get(),
        guesses_right: counters.guesses_right.get(),
        guesses_wrong: counters.guesses_wrong.get(),
        guesses_reset: counters.guesses_reset.get(),
    }
}

/// Returns a report of the agent's state, for the controller and for Prometheus.
pub fn status(shared: &SharedState, started: Instant) -> proto::Status {
    let (load, current) = (*locked(&shared.load), locked(&shared.current).clone());
    let learned = locked(&shared.learned).clone();
    proto::Status {
        generation: current.as_ref().map_or(0, |current| current.generation),
        uptime_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        connections: load.connections as u64,
        waiting: load.waiting as u64,
        memory: load.memory as u64,
        draining: load.is_draining,
        services: current
            .iter()
            .flat_map(|current| current.services.iter().map(|service| service_status(service, &learned)))
            .collect(),
    }
}

#[tonic::async_trait]
impl<W: Fn() + Send + Sync + 'static> proto::agent_server::Agent for Control<W> {
    async fn configure(&self, request: Request<proto::Configuration>) -> Result<Response<proto::Verdict>, Refused> {
        let requested = request.into_inner();
        let before = locked(&self.shared.current).clone();
        // Compiling rules may take seconds, so it runs on a thread for blocking work.
        let compiled = tokio::task::spawn_blocking(move || compile(&requested, before.as_deref())).await;
        let problems = match compiled.map_err(|error| Refused::internal(error.to_string()))? {
            Ok((configuration, in_force)) => {
                tracing::info!(generation = in_force.generation, services = in_force.services.len(), "configured");
                *locked(&self.shared.current) = Some(Arc::new(in_force));
                *locked(&self.shared.next) = Some(configuration);
                (self.wake)();
                Problems::new()
            }
            Err(problems) => problems,
        };
        Ok(Response::new(proto::Verdict { problems }))
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<proto::Status, Refused>> + Send>>;

    async fn watch(&self, request: Request<proto::WatchRequest>) -> Result<Response<Self::WatchStream>, Refused> {
        let interval = match request.into_inner().interval_ms {
            0 => Duration::from_secs(1),
            ms => Duration::from_millis(u64::from(ms.max(10))),
        };
        let (shared, started) = (Arc::clone(&self.shared), self.started);
        let ticks = tokio_stream::wrappers::IntervalStream::new(tokio::time::interval(interval));
        Ok(Response::new(Box::pin(ticks.map(move |_| Ok(status(&shared, started))))))
    }

    async fn share(&self, request: Request<proto::SharedAbilities>) -> Result<Response<proto::ShareResponse>, Refused> {
        let current = locked(&self.shared.current).clone();
        *locked(&self.shared.others) = Some(group_reports(request.into_inner(), current.as_deref()));
        (self.wake)();
        Ok(Response::new(proto::ShareResponse {}))
    }

    async fn drain(&self, _: Request<proto::DrainRequest>) -> Result<Response<proto::DrainResponse>, Refused> {
        self.shared.drain.notify_one();
        Ok(Response::new(proto::DrainResponse {}))
    }
}
