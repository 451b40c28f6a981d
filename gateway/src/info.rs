//! The content of the file `bfrt.json`: the names, ids and widths of a compiled program in BF Runtime.

use serde::{Deserialize, Deserializer};

/// The parts of `bfrt.json` that the gateway uses.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Info {
    /// All objects that have a key and data: match tables, registers, counters, meters and profiles.
    #[serde(default)]
    pub tables: Vec<Table>,
    /// The digests of the program.
    #[serde(default)]
    pub learn_filters: Vec<LearnFilter>,
}

/// An object that BF Runtime calls a table, which has a key and data.
#[derive(Debug, Clone, Deserialize)]
pub struct Table {
    /// The table's name, which begins with the name of the program's instance, such as `pipe.Ingress.routes`.
    pub name: String,
    /// The id of the table in the driver.
    pub id: u32,
    /// The kind of the table, such as `MatchAction_Direct` or `Register`.
    pub table_type: String,
    /// Number of entries or cells of the table.
    #[serde(default)]
    pub size: u64,
    /// The fields of the key.
    #[serde(default)]
    pub key: Vec<Key>,
    /// The actions, for kinds of tables that have actions.
    #[serde(default)]
    pub action_specs: Vec<Action>,
    /// The data fields that do not belong to an action.
    #[serde(default)]
    pub data: Vec<Data>,
    /// The ids of the profile and the selector to which entries of this table refer.
    #[serde(default)]
    pub depends_on: Vec<u32>,
    /// Whether the default action is constant.
    #[serde(default)]
    pub has_const_default_action: bool,
    /// The operations on all entries of the table, such as `Sync`.
    #[serde(default)]
    pub supported_operations: Vec<String>,
}

impl Info {
    /// Parses the description of the tables that the device has regardless of its program, such as ports. Skips tables
    /// whose form differs from that of a program's tables. Returns no tables for an empty text.
    ///
    /// # Errors
    /// Fails when the text is not empty, and is not JSON with a list of tables.
    pub fn parse_device(json: &[u8]) -> serde_json::Result<Self> {
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
    /// Returns the name of the table in P4Info, without the program's instance.
    pub fn p4_name(&self) -> &str {
        p4_name(&self.name)
    }

    /// Returns the data field with this name among the fields that do not belong to an action.
    pub fn data_field(&self, name: &str) -> Option<&Field> {
        self.data.iter().flat_map(Data::fields).find(|field| field.name == name)
    }

    /// Returns the id of the data field with this name.
    pub fn data_id(&self, name: &str) -> Option<u32> {
        self.data_field(name).map(|field| field.id)
    }
}

/// Returns a table's name without the name of the program's instance.
pub fn p4_name(name: &str) -> &str {
    name.split_once('.').map_or(name, |(_, rest)| rest)
}

/// A field of a key.
#[derive(Debug, Clone, Deserialize)]
pub struct Key {
    /// The id of the field in the driver.
    pub id: u32,
    /// The field's name in P4Info. Names that begin with `$` are defined by the driver.
    pub name: String,
    /// The match kind: `Exact`, `LPM`, `Ternary`, `Range` or `Optional`.
    pub match_type: String,
    /// The type of the field's values.
    #[serde(rename = "type")]
    pub kind: Type,
}

/// An action with its parameters.
#[derive(Debug, Clone, Deserialize)]
pub struct Action {
    /// The id of the action in the driver.
    pub id: u32,
    /// The action's name in P4Info.
    pub name: String,
    /// The parameters, and fields of the entry that the driver lists with the action.
    #[serde(default, deserialize_with = "action_fields")]
    pub data: Vec<Field>,
}

/// Reads the fields of an action. The actions of a program list the fields directly, whereas the actions of the
/// driver's own tables wrap each field in an object.
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

/// The form of [`Data`]: a single field, or several alternative fields of which an entry has exactly one.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "lowercase")]
enum DataForm {
    Singleton(Field),
    Oneof(Vec<Field>),
}

/// A data field that does not belong to an action, or several alternative fields.
#[derive(Debug, Clone, Deserialize)]
pub struct Data {
    #[serde(flatten)]
    form: DataForm,
}

impl Data {
    /// Returns the field, or all alternative fields.
    pub fn fields(&self) -> &[Field] {
        match &self.form {
            DataForm::Singleton(field) => std::slice::from_ref(field),
            DataForm::Oneof(fields) => fields,
        }
    }
}

/// A field of the data of an entry.
#[derive(Debug, Clone, Deserialize)]
pub struct Field {
    /// The id of the field in the driver.
    pub id: u32,
    /// The field's name in P4Info. Names that begin with `$` are defined by the driver.
    pub name: String,
    /// The type of the field's values; empty for a field that contains other fields.
    #[serde(rename = "type", default)]
    pub kind: Type,
}

/// The type of a field's values.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Type {
    /// The type's name, such as `bytes`, `uint32` or `bool`.
    #[serde(rename = "type")]
    name: String,
    width: Option<u32>,
}

impl Type {
    /// Returns the width in bits; `None` for types without a fixed width.
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

/// A digest of the program.
#[derive(Debug, Clone, Deserialize)]
pub struct LearnFilter {
    /// The name of the type of the digest's messages.
    pub name: String,
    /// The id of the digest in the driver.
    pub id: u32,
    /// The fields of a digest message.
    pub fields: Vec<Field>,
}
