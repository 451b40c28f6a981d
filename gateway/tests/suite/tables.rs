//! Tests table entries and default actions.

use sluice_p4runtime::proto::p4::v1 as p4;
use tonic::Code;

use crate::common::{Bench, action, direct, exact, id, lpm, server};
use p4::entity::Entity;
use p4::update::Type;

#[tokio::test]
async fn an_entry_lives_from_insert_to_delete() {
    let (bench, mut controller) = Bench::ready().await;
    controller.insert(server(3)).await;
    assert_eq!(bench.driver.store.lock().rows("SluiceIngress.translate.servers").entries.len(), 1);
    let mut entries = controller.entries("servers").await;
    assert_eq!(entries.len(), 1);
    assert_eq!(Entity::TableEntry(entries.remove(0)), server(3), "with metadata, which the driver does not store");
    let (code, text) = controller.write(Type::Insert, server(3)).await.unwrap_err();
    assert_eq!(code, Code::AlreadyExists);
    assert!(text.contains("table SluiceIngress.translate.servers: the entry exists already"), "{text}");
    assert_eq!(controller.write(Type::Modify, server(4)).await.unwrap_err().0, Code::NotFound);
    controller.delete(server(3)).await;
    assert_eq!(controller.write(Type::Delete, server(3)).await.unwrap_err().0, Code::NotFound);
    assert!(controller.entries("servers").await.is_empty());
    assert!(bench.driver.store.lock().rows("SluiceIngress.translate.servers").entries.is_empty());
}

#[tokio::test]
async fn prefixes_and_default_routes() {
    let (bench, mut controller) = Bench::ready().await;
    for fields in [vec![lpm(1, &[10, 1, 0, 0], 16)], Vec::new()] {
        let route = p4::TableEntry {
            table_id: id("routes"),
            r#match: fields,
            action: direct(action("via", &[&[9, 9]])),
            ..Default::default()
        };
        controller.insert(Entity::TableEntry(route.clone())).await;
        let entries = controller.entries("routes").await;
        assert!(entries.contains(&route), "{entries:?}");
    }
    assert_eq!(bench.driver.store.lock().rows("SluiceIngress.forward.routes").entries.len(), 2);
}

#[tokio::test]
async fn parameters_that_the_driver_does_not_return_read_back_as_written() {
    let (bench, mut controller) = Bench::ready().await;
    let times: [&[u8]; 5] = [&[1], &[2], &[3], &[4], &[5]];
    let timers = p4::TableEntry {
        table_id: id("timers"),
        is_default_action: true,
        action: direct(action("set_timers", &times)),
        ..Default::default()
    };
    controller.modify(Entity::TableEntry(timers.clone())).await;
    let pattern = p4::TableEntry { action: None, ..timers.clone() };
    assert_eq!(controller.read(Entity::TableEntry(pattern.clone())).await, [Entity::TableEntry(timers)]);
    let driver = |bench: &Bench| bench.driver.store.lock().rows("SluiceIngress.places.timers").default.clone();
    assert_eq!(driver(&bench).unwrap().fields.len(), 5);
    // A write without an action restores the default action that the program declares.
    controller.modify(Entity::TableEntry(pattern.clone())).await;
    assert_eq!(driver(&bench), None);
    let Entity::TableEntry(own) = controller.read(Entity::TableEntry(pattern)).await.remove(0) else { panic!() };
    assert!(own.is_default_action && !own.is_const);
}

#[tokio::test]
async fn refusals_name_table_field_and_reason() {
    let (bench, mut controller) = Bench::ready().await;
    let mut wide = server(1);
    let Entity::TableEntry(entry) = &mut wide else { panic!() };
    entry.r#match = vec![exact(1, &[1, 0, 0])];
    let (code, text) = controller.write(Type::Insert, wide).await.unwrap_err();
    assert_eq!(code, Code::InvalidArgument);
    assert!(text.contains("servers: match field 1 (server)"), "{text}");
    let constant = p4::TableEntry { table_id: id("servers"), is_default_action: true, ..Default::default() };
    let (code, _) = controller.write(Type::Modify, Entity::TableEntry(constant)).await.unwrap_err();
    assert_eq!(code, Code::PermissionDenied);
    assert!(bench.driver.requests.lock().is_empty(), "what the gateway refuses does not reach the driver");
}

#[tokio::test]
async fn the_programs_default_action_has_the_shortest_values() {
    let (_bench, mut controller) = Bench::ready().await;
    let pattern = p4::TableEntry { table_id: id("timers"), is_default_action: true, ..Default::default() };
    let entries = controller.read(Entity::TableEntry(pattern)).await;
    let Entity::TableEntry(entry) = &entries[0] else { panic!("{entries:?}") };
    let Some(p4::table_action::Type::Action(action)) = entry.action.as_ref().and_then(|action| action.r#type.as_ref())
    else {
        panic!("{entry:?}")
    };
    assert!(!action.params.is_empty());
    // p4c writes values with leading zeros into P4Info. The gateway must return them without leading zeros.
    assert!(action.params.iter().all(|param| param.value.len() == 1 || param.value[0] != 0), "{action:?}");
}
