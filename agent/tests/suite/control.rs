//! Tests of the controller's calls to the agent, and of the agent's reports.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use sluice_agent::control::{Control, SharedState, locked, status};
use sluice_agent::pool::{GroupReport, Learned};
use sluice_agent::proto::agent_server::Agent as _;
use sluice_agent::proto::{Ability, Configuration, GroupAbility, Servers, Service, SharedAbilities, WatchRequest};
use tokio_stream::StreamExt as _;
use tonic::Request;

const CONTENT: &str = r#"{"protocol": "http", "default": {"to": "all"},
    "rules": [{"name": "images", "match": {"path": {"suffix": ".gif"}}, "to": "images"}]}"#;

fn service() -> Service {
    let group = |name: &str, address: &str| (name.to_owned(), address.to_owned());
    Service {
        name: "shop".to_owned(),
        address: "10.0.0.100".to_owned(),
        port: 80,
        agent_port: 8080,
        groups: [group("all", "10.9.0.1:80"), group("images", "10.9.0.2:80")].into(),
        content: CONTENT.to_owned(),
        guess: false,
        servers: servers(&[3, 5]),
    }
}

fn servers(ids: &[u32]) -> HashMap<String, Servers> {
    HashMap::from([("images".to_owned(), Servers { ids: ids.to_vec() })])
}

fn configuration(services: Vec<Service>) -> Configuration {
    Configuration { services, generation: 258, cookie_key: vec![1; 16], former_cookie_key: Vec::new() }
}

async fn problems(shared: &Arc<SharedState>, configuration: Configuration) -> Vec<String> {
    let control = Control::new(Arc::clone(shared), || {});
    let verdict = control.configure(Request::new(configuration)).await.unwrap().into_inner();
    verdict
        .problems
        .into_iter()
        .map(|problem| format!("{}/{}: {}", problem.service, problem.path, problem.message))
        .collect()
}

#[tokio::test]
async fn a_configuration_is_in_force_and_reported() {
    let shared = Arc::new(SharedState::default());
    assert_eq!(problems(&shared, configuration(vec![service()])).await, [""; 0]);
    assert_eq!(locked(&shared.next).as_ref().map(|next| next.generation), Some(2), "modulo 256");
    let next = Arc::clone(&locked(&shared.next).as_ref().unwrap().services[0]);
    assert_eq!(next.groups.iter().map(|group| &group.servers[..]).collect::<Vec<_>>(), [&[][..], &[3, 5]]);
    let control = Control::new(Arc::clone(&shared), || {});
    let request = Request::new(WatchRequest { interval_ms: 10 });
    let status = control.watch(request).await.unwrap().into_inner().next().await.unwrap().unwrap();
    assert_eq!(status.generation, 258);
    let service = &status.services[0];
    assert_eq!((service.name.as_str(), service.rules[0].name.as_str(), service.groups.len()), ("shop", "images", 2));
}

#[tokio::test]
async fn counts_outlive_the_rules_that_they_began_with() {
    let shared = Arc::new(SharedState::default());
    assert_eq!(problems(&shared, configuration(vec![service()])).await, [""; 0]);
    let running = locked(&shared.next).take().unwrap().services.remove(0);
    let extended_content = CONTENT
        .replace(r#""rules": ["#, r#""rules": [{"name": "css", "match": {"path": {"suffix": ".css"}}, "to": "all"}, "#);
    assert_eq!(
        problems(&shared, configuration(vec![Service { content: extended_content, ..service() }])).await,
        [""; 0]
    );
    // A connection that began with the former rules uses the same counters as connections with the new rules.
    running.counters.lost.add(1);
    running.hits[0].add(2);
    running.groups.iter().find(|group| group.name == "images").unwrap().opened.add(3);
    let reported = status(&shared, Instant::now()).services.remove(0);
    let hits: Vec<_> = reported.rules.iter().map(|rule| (rule.name.as_str(), rule.hits)).collect();
    let opened: Vec<_> = reported.groups.iter().map(|group| (group.name.as_str(), group.opened)).collect();
    assert_eq!((reported.lost, &hits[..]), (1, &[("css", 0), ("images", 2)][..]));
    assert!(opened.contains(&("images", 3)) && opened.contains(&("all", 0)), "{opened:?}");
}

#[tokio::test]
async fn what_agents_have_learned_is_reported_and_shared() {
    let shared = Arc::new(SharedState::default());
    assert_eq!(problems(&shared, configuration(vec![service()])).await, [""; 0]);
    let learned =
        Learned { mss: Some(1400), window: Some(9000), sack: Some(false), scales: Some(true), scale: Some(6) };
    let known = GroupReport { group: "10.9.0.2:80".parse().unwrap(), servers: vec![3, 5], learned };
    *locked(&shared.learned) = vec![known.clone()];
    let reported = status(&shared, Instant::now()).services.remove(0);
    let abilities: Vec<_> = reported.groups.into_iter().map(|group| (group.name, group.ability)).collect();
    let ability = Ability {
        servers: vec![3, 5],
        mss: Some(1400),
        window: Some(9000),
        sack: Some(false),
        scales: Some(true),
        scale: Some(6),
    };
    assert_eq!(abilities, [("all".to_owned(), None), ("images".to_owned(), Some(ability.clone()))]);
    // Another agent reports the same ability. Reports about groups that this agent lacks, and reports with a server
    // number above 65,535, are ignored.
    let of = |service: &str, group: &str, servers: &[u32]| GroupAbility {
        service: service.to_owned(),
        group: group.to_owned(),
        ability: Some(Ability { servers: servers.to_vec(), ..ability.clone() }),
    };
    let groups = vec![
        of("shop", "images", &[3, 5]),
        of("shop", "none", &[3]),
        of("x", "all", &[3]),
        of("shop", "all", &[65_536]),
    ];
    let control = Control::new(Arc::clone(&shared), || {});
    control.share(Request::new(SharedAbilities { groups })).await.unwrap();
    assert_eq!(locked(&shared.others).take(), Some(vec![known]));
}

#[tokio::test]
async fn what_is_wrong_changes_nothing_and_is_named() {
    let shared = Arc::new(SharedState::default());
    let cases = [
        (Service { servers: servers(&[1, 65_536]), ..service() }, "shop/: group images: a server's number"),
        (Service { content: "{".to_owned(), ..service() }, "shop/"),
        (Service { content: CONTENT.replace("suffix", "sufix"), ..service() }, "rules[0]"),
        (
            Service { groups: [("all".to_owned(), "10.9.0.1:80".to_owned())].into(), ..service() },
            "group images has no address",
        ),
        (Service { address: "shop.example".to_owned(), ..service() }, "no IPv4 address"),
        (Service { agent_port: 70_000, ..service() }, "agent_port 70000"),
        (Service { content: CONTENT.replace("http", "gopher"), ..service() }, "shop/"),
    ];
    for (service, fragment) in cases {
        let messages = problems(&shared, configuration(vec![service])).await;
        assert!(messages.iter().any(|problem| problem.contains(fragment)), "{fragment}: {messages:?}");
    }
    let twice = problems(&shared, configuration(vec![service(), service()])).await;
    assert!(twice.iter().any(|problem| problem.contains("the same agent_port")), "{twice:?}");
    let key = Configuration { cookie_key: vec![1; 15], ..configuration(vec![service()]) };
    assert!(problems(&shared, key).await[0].contains("16 bytes"));
    assert!(locked(&shared.next).is_none());
}
