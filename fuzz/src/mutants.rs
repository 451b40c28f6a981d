//! Mutates programs by replacing parts of their JSON. Random changes of bytes hardly ever yield valid JSON, and never a
//! valid program.

use serde_json::{Value, json};

/// A generator of random numbers (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, below: usize) -> usize {
        (self.next() % below.max(1) as u64) as usize
    }
}

/// Returns the program with one to three parts replaced; `None` if `program` is not JSON.
pub fn mutant(program: &[u8], seed: u32) -> Option<Vec<u8>> {
    let mut tree: Value = serde_json::from_slice(program).ok()?;
    let mut random = Random(seed.into());
    for _ in 0..1 + random.below(3) {
        replace(&mut tree, &mut random);
    }
    serde_json::to_vec(&tree).ok()
}

fn replace(tree: &mut Value, random: &mut Random) {
    let mut places = Vec::new();
    collect(tree, String::new(), &mut places);
    let other = tree.pointer(&places[random.below(places.len())]).cloned().unwrap_or_default();
    let numbers = [0u64, 1, 2, 7, 63, 64, 65, 128, 1000, 65_535, 65_536, u64::MAX];
    let new = match random.below(8) {
        0 => Value::Null,
        1 => json!(numbers[random.below(numbers.len())]),
        2 => json!(format!("0x{:x}", random.next())),
        3 => json!(-1),
        4 => json!([]),
        5 => json!(random.below(2) == 0),
        _ if other.to_string().len() < 5_000 => other,
        _ => json!({}),
    };
    if let Some(place) = tree.pointer_mut(&places[random.below(places.len())]) {
        *place = new;
    }
}

/// Appends to `places` the JSON pointers of all values of the subtree at `path`, except those of `source_info` members,
/// which only refer to the source code.
fn collect(subtree: &Value, path: String, places: &mut Vec<String>) {
    match subtree {
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| collect(item, format!("{path}/{index}"), places));
        }
        Value::Object(members) => {
            for (name, member) in members.iter().filter(|(name, _)| *name != "source_info") {
                collect(member, format!("{path}/{}", name.replace('~', "~0").replace('/', "~1")), places);
            }
        }
        _ => {}
    }
    places.push(path);
}
