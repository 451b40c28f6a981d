//! Tests with the rules R1 to R6 of Chow, Wang & Prakash (LCS), and with the authors' document that has two roots.

use std::sync::Arc;

use serde_json::json;
use sluice_rules::{ConnectionFacts, Decider, Decision, RuleSet, Sticky};

use crate::common::{decide, get, http, post, summary};

const PURCHASES: &str = "<purchase>
  <customerName>CCL</customerName>
  <customerID>111222333</customerID>
  <item><productID>309121544</productID><unitPrice>5000</unitPrice><subTotal>50000</subTotal></item>
  <item><productID>309121538</productID><unitPrice>200</unitPrice><subTotal>2000</subTotal></item>
  <totalAmount>52000</totalAmount>
</purchase>
<purchase>
  <customerName>CDL</customerName>
  <customerID>111222444</customerID>
  <item><productID>30913555</productID><unitPrice>3000</unitPrice><subTotal>20000</subTotal></item>
  <totalAmount>20000</totalAmount>
</purchase>
";

fn lcs() -> Arc<RuleSet> {
    Arc::new(RuleSet::from_json(include_bytes!("../fixtures/lcs.json")).expect("the paper's rules"))
}

fn purchase(name: &str, total: u32) -> String {
    format!("<purchase><customerName>{name}</customerName><totalAmount>{total}</totalAmount></purchase>")
}

#[test]
fn rules_of_the_paper() {
    let rules = lcs();
    let to = |request: String| decide(&rules, request);
    assert_eq!(to(post("text/xml", &purchase("CDL", 52001))), "server1");
    assert_eq!(to(post("text/xml", &purchase("CCL", 52000))), "server2");
    assert_eq!(to(get("/images/logo.gif")), "server3");
    assert_eq!(to(get("/images/logo.gif?x")), "defaultServers");
    let order = |total| post("text/xml", &purchase("CDL", total)).replace("/buy", "/cgi/xmlprocess.pl");
    assert_eq!(to(order(5001)), "hsServers");
    assert_eq!(to(order(5000)), "defaultServers");
}

#[test]
fn rule_on_addresses_and_port() {
    let rules = lcs();
    let [source, destination] = ["128.198.60.1", "128.198.192.192"].map(|address| address.parse().unwrap());
    let facts = ConnectionFacts { source, destination, port: 80 };
    let Decision::Route(route) = Decider::new(&rules, facts).feed(get("/").as_bytes()) else { panic!("no route") };
    assert_eq!((rules.group(route.group), route.sticky), ("LBServerGroup", Sticky::Client));
    let other = ConnectionFacts { port: 81, ..facts };
    let decision = Decider::new(&rules, other).feed(get("/").as_bytes());
    assert_eq!(summary(&rules, &decision), "defaultServers");
}

#[test]
fn purchases_in_a_form() {
    let rules = lcs();
    let xml = purchase("C&amp;L", 60000).replace('<', "%3C").replace('>', "%3e").replace('&', "%26");
    let form = format!("name=x&order=%0A{xml}&more=1");
    assert_eq!(decide(&rules, post("application/x-www-form-urlencoded", &form)), "server1");
}

#[test]
fn indexed_elements() {
    for (path, value, group) in [
        ("purchase:1.item:2.subTotal", "> 5000", "all"),
        ("purchase:1.item:1.subTotal", "> 5000", "fast"),
        ("purchase:2.item:1.subTotal", "= 20000", "fast"),
        ("purchase:2.totalAmount", "< 15000", "all"),
        ("purchase:2.totalAmount", "< 25000", "fast"),
        ("purchase:3.totalAmount", "< 25000", "all"),
        ("purchase.item:2.subTotal", "= 2000", "fast"),
        ("purchase:2.item:2.subTotal", ">= 0", "all"),
        ("purchase.item.subTotal", "<= 2000", "fast"),
        ("purchase:2.customername", "CDL", "all"),
        ("purchase:1.customerName", "!= 5", "all"),
    ] {
        let rules = http(json!([{"name": "r", "match": {"xml": {path: value}}, "to": "fast"}]));
        assert_eq!(decide(&rules, post("text/xml", PURCHASES)), group, "{path} {value}");
    }
}
