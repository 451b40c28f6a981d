//! `bfrt.json`: the driver's names, ids and widths of a compiled program.

use serde::{Deserialize, Deserializer};

/// The whole file, as far as the gateway reads it.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Info {
    /// Everything that has a key and data: tables, registers, counters, meters, profiles.
    #[serde(default)]
    pub tables: Vec<Table>,
    /// Digests.
    #[serde(default)]
    pub learn_filters: Vec<LearnFilter>,
}

/// One table, in BF Runtime's sense.
#[derive(Debug, Clone, Deserialize)]
pub struct Table {
    /// The program's instance in front, as in `pipe.Ingress.routes`.
    pub name: String,
    /// The driver's id.
    pub id: u32,
    /// What it is, such as `MatchAction_Direct` or `Register`.
    pub table_type: String,
    /// Entries or cells.
    #[serde(default)]
    pub size: u64,
    /// The key.
    #[serde(default)]
    pub key: Vec<Key>,
    /// The actions, if it has any.
    #[serde(default)]
    pub action_specs: Vec<Action>,
    /// Data beside the actions'.
    #[serde(default)]
    pub data: Vec<Data>,
    /// Ids of the profile and selector that its entries refer to.
    #[serde(default)]
    pub depends_on: Vec<u32>,
    /// The default action cannot be changed.
    #[serde(default)]
    pub has_const_default_action: bool,
    /// Such as `Sync`.
    #[serde(default)]
    pub supported_operations: Vec<String>,
}

impl Info {
    /// The tables of a file that have the form of a program's. Some of those that the driver has for the device have not.
    ///
    /// # Errors
    /// When it is no JSON with a list of tables.
    pub fn known(json: &[u8]) -> serde_json::Result<Self> {
        #[derive(Deserialize)]
        struct Loose {
            tables: Vec<serde_json::Value>,
        }
        if json.is_empty() {
            return Ok(Self::default());
        }
        let loose: Loose = serde_json::from_slice(json)?;
        let tables = loose.tables.into_iter().filter_map(|table| serde_json::from_value(table).ok()).collect();
        Ok(Self { tables, learn_filters: Vec::new() })
    }
}

impl Table {
    /// The name without the program's instance: that of P4Info.
    pub fn p4_name(&self) -> &str {
        p4_name(&self.name)
    }

    /// The data field of this name, beside the actions'.
    pub fn data_field(&self, name: &str) -> Option<&Field> {
        self.data.iter().flat_map(Data::fields).find(|field| field.name == name)
    }

    /// Its id.
    pub fn data_id(&self, name: &str) -> Option<u32> {
        self.data_field(name).map(|field| field.id)
    }
}

/// A name without the program's instance.
pub fn p4_name(name: &str) -> &str {
    name.split_once('.').map_or(name, |(_, rest)| rest)
}

/// A field of a key.
#[derive(Debug, Clone, Deserialize)]
pub struct Key {
    /// The driver's id.
    pub id: u32,
    /// As in P4Info; the driver's own begin with `$`.
    pub name: String,
    /// `Exact`, `LPM`, `Ternary`, `Range` or `Optional`.
    pub match_type: String,
    /// What it holds.
    #[serde(rename = "type")]
    pub kind: Type,
}

/// An action with its parameters.
#[derive(Debug, Clone, Deserialize)]
pub struct Action {
    /// The driver's id.
    pub id: u32,
    /// As in P4Info.
    pub name: String,
    /// Parameters, and what else an entry with this action has.
    #[serde(default, deserialize_with = "action_fields")]
    pub data: Vec<Field>,
}

/// A program's actions have plain fields, those of the driver's own tables have them as tables have.
fn action_fields<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Field>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Form {
        Wrapped { singleton: Field },
        Plain(Field),
    }
    let fields = Vec::<Form>::deserialize(deserializer)?;
    Ok(fields.into_iter().map(|(Form::Wrapped { singleton: field } | Form::Plain(field))| field).collect())
}

/// Data beside the actions': a field, or several of which an entry has one.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Choice {
    Singleton(Field),
    Oneof(Vec<Field>),
}

/// Data beside the actions'.
#[derive(Debug, Clone, Deserialize)]
pub struct Data {
    #[serde(flatten)]
    choice: Choice,
}

impl Data {
    /// Its field, or those of which an entry has one.
    pub fn fields(&self) -> &[Field] {
        match &self.choice {
            Choice::Singleton(field) => std::slice::from_ref(field),
            Choice::Oneof(fields) => fields,
        }
    }
}

/// A field of data.
#[derive(Debug, Clone, Deserialize)]
pub struct Field {
    /// The driver's id.
    pub id: u32,
    /// As in P4Info; the driver's own begin with `$`.
    pub name: String,
    /// What it holds; a field that contains others has no type of its own.
    #[serde(rename = "type", default)]
    pub kind: Type,
}

/// What a field holds.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Type {
    /// `bytes`, `uint32`, `bool` and others.
    #[serde(rename = "type")]
    name: String,
    width: Option<u32>,
}

impl Type {
    /// Bits, where the type has a fixed number of them.
    pub fn bits(&self) -> Option<u32> {
        match (self.name.as_str(), self.width) {
            ("bytes", width) => width,
            ("uint8", _) => Some(8),
            ("uint16", _) => Some(16),
            ("uint32", _) => Some(32),
            ("uint64", _) => Some(64),
            ("bool", _) => Some(1),
            _ => None,
        }
    }
}

/// A digest.
#[derive(Debug, Clone, Deserialize)]
pub struct LearnFilter {
    /// Named by the type of its messages.
    pub name: String,
    /// The driver's id.
    pub id: u32,
    /// The fields of a message.
    pub fields: Vec<Field>,
}
