//! Front-panel ports that a file configures: speed, error correction, autonegotiation and loopback. The gateway applies
//! the file when it connects to the driver.
//!
//! A port that already has its settings is not changed, so that a restart of the gateway interrupts no link. Any other
//! port is deleted and added again, because the driver cannot change the speed or error correction of an existing port.

use std::collections::BTreeMap;

use serde::Deserialize;
use thiserror::Error;
use toml::Spanned;
use tonic::{Code, Status};

use crate::bfrt;
use crate::client::Driver;
use crate::info::Table;
use crate::proto::{DataField, TableData, TableEntry, TableKey, entity, update::Type};

/// Name of the driver's table of ports, whose key is the device port.
const PORTS: &str = "$PORT";
/// Name of the driver's table that maps front-panel names to device ports.
const NAMES: &str = "$PORT_STR_INFO";

/// The errors of the file that configures ports.
#[derive(Debug, Error)]
pub enum PortsError {
    /// The file cannot be read.
    #[error("--ports {file}: {cause}; give an existing file")]
    Unread {
        /// The path of the file.
        file: String,
        /// The error of the operating system.
        cause: std::io::Error,
    },
    /// The content of the file is wrong.
    #[error("--ports {file}: {cause}")]
    Wrong {
        /// The path of the file.
        file: String,
        /// The line, and a description of its error.
        cause: String,
    },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    ports: BTreeMap<Spanned<String>, PortSettings>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct PortSettings {
    speed: Speed,
    #[serde(default)]
    fec: Fec,
    #[serde(default)]
    autonegotiation: Autonegotiation,
    #[serde(default)]
    loopback: Loopback,
}

/// Declares the values of a setting, each with its name in the file and its name in the driver. The value that is
/// marked `#[default]` applies when the file omits the setting.
macro_rules! choices {
    ($(#[$derive:meta])* $name:ident: $($(#[$default:meta])* $choice:ident $file:literal $driver:literal),*) => {
        #[derive(Debug, Clone, Copy, Deserialize)]
        $(#[$derive])*
        enum $name { $($(#[$default])* #[serde(rename = $file)] $choice),* }

        impl $name {
            fn driver(self) -> &'static str {
                match self { $(Self::$choice => $driver),* }
            }
        }
    };
}

choices!(Speed: G1 "1G" "BF_SPEED_1G", G10 "10G" "BF_SPEED_10G", G25 "25G" "BF_SPEED_25G", G40 "40G" "BF_SPEED_40G",
    G50 "50G" "BF_SPEED_50G", G100 "100G" "BF_SPEED_100G", G200 "200G" "BF_SPEED_200G", G400 "400G" "BF_SPEED_400G");
choices!(#[derive(Default)] Fec: #[default] None "none" "BF_FEC_TYP_NONE", Firecode "firecode" "BF_FEC_TYP_FIRECODE",
    ReedSolomon "reed-solomon" "BF_FEC_TYP_REED_SOLOMON");
choices!(#[derive(Default)] Autonegotiation: #[default] Default "default" "PM_AN_DEFAULT", On "on" "PM_AN_FORCE_ENABLE",
    Off "off" "PM_AN_FORCE_DISABLE");
choices!(#[derive(Default)] Loopback: #[default] None "none" "BF_LPBK_NONE", MacNear "mac-near" "BF_LPBK_MAC_NEAR",
    MacFar "mac-far" "BF_LPBK_MAC_FAR", PcsNear "pcs-near" "BF_LPBK_PCS_NEAR",
    SerdesNear "serdes-near" "BF_LPBK_SERDES_NEAR", SerdesFar "serdes-far" "BF_LPBK_SERDES_FAR");

/// A port in the file, with the number of the line that declares it.
#[derive(Debug, Clone)]
struct Port {
    line: usize,
    name: String,
    settings: PortSettings,
}

/// The ports that a file configures.
#[derive(Debug, Clone, Default)]
pub struct FrontPanel {
    file: String,
    ports: Vec<Port>,
}

impl FrontPanel {
    /// Reads a file that configures ports.
    ///
    /// # Errors
    /// Fails when the file cannot be read, or with the first wrong line. The error contains the file and the problem.
    pub fn open(file: &str) -> Result<Self, PortsError> {
        let text = std::fs::read_to_string(file);
        Self::parse(file, &text.map_err(|cause| PortsError::Unread { file: file.to_owned(), cause })?)
    }

    /// Parses the text of a file. `file` is the path of the file in error messages.
    ///
    /// # Errors
    /// Fails with [`PortsError::Wrong`] for the first wrong line.
    pub fn parse(file: &str, text: &str) -> Result<Self, PortsError> {
        let wrong = |line: usize, what: &str| PortsError::Wrong {
            file: file.to_owned(),
            cause: format!("line {line}: {what}"),
        };
        let line_of = |place: usize| text[..place.min(text.len())].matches('\n').count() + 1;
        let read: File = toml::from_str(text)
            .map_err(|error| wrong(line_of(error.span().map_or(0, |span| span.start)), error.message()))?;
        let mut ports = Vec::with_capacity(read.ports.len());
        for (name, settings) in read.ports {
            let line = line_of(name.span().start);
            let name = name.into_inner();
            if !is_name(&name) {
                return Err(wrong(line, &format!("the port {name:?} is neither CONNECTOR/CHANNEL nor a device port")));
            }
            ports.push(Port { line, name, settings });
        }
        ports.sort_by_key(|port| port.line);
        Ok(Self { file: file.to_owned(), ports })
    }

    /// Configures the ports in the driver.
    ///
    /// # Errors
    /// Fails for the first port that cannot be configured. The error contains the line of the file that declares it.
    pub async fn apply(&self, driver: &Driver) -> Result<(), Status> {
        for port in &self.ports {
            port.set(driver).await.map_err(|status| {
                let (file, Port { line, name, .. }, cause) = (&self.file, port, status.message());
                let remedy = "give a port that the device has, and a speed and error correction that it takes";
                Status::new(status.code(), format!("--ports {file}: line {line}: port {name}: {cause}; {remedy}"))
            })?;
        }
        Ok(())
    }
}

/// Returns whether a name is a front-panel port such as `1/0`, or the number of a device port.
fn is_name(name: &str) -> bool {
    let is_number = |text: &str| text.parse::<u32>().is_ok();
    name.split_once('/')
        .map_or_else(|| is_number(name), |(connector, channel)| is_number(connector) && is_number(channel))
}

impl Port {
    /// Configures the port, unless the port already has all its settings.
    async fn set(&self, driver: &Driver) -> Result<(), Status> {
        let table = table(driver, PORTS)?;
        let key = number_key(table, self.device_port(driver).await?)?;
        let fields = self.fields(table)?;
        let existing = read(driver, bfrt::key_only(table.id, key.clone())).await?;
        let has = |field: &DataField| existing.iter().flat_map(|data| &data.fields).any(|current| current == field);
        if fields.iter().all(has) {
            return Ok(());
        }
        let mut updates = Vec::new();
        if existing.is_some() {
            updates.push(bfrt::update(Type::Delete, bfrt::key_only(table.id, key.clone())));
        }
        let data = TableData { action_id: 0, fields };
        updates.push(bfrt::update(Type::Insert, bfrt::entry(table.id, key, data)));
        for outcome in driver.write(updates).await? {
            outcome?;
        }
        Ok(())
    }

    /// Returns the device port's number: the port's name in the file if it is a number, otherwise the number to which
    /// the driver maps this front-panel name.
    async fn device_port(&self, driver: &Driver) -> Result<u32, Status> {
        if let Ok(number) = self.name.parse() {
            return Ok(number);
        }
        let names = table(driver, NAMES)?;
        let key = TableKey { fields: vec![bfrt::exact(key_id(names)?, self.name.as_bytes())] };
        let entry = read(driver, bfrt::key_only(names.id, key)).await?;
        let field_id = data_id(names, "$DEV_PORT")?;
        let field = entry.iter().flat_map(|data| &data.fields).find(|field| field.field_id == field_id);
        let number = field.and_then(bfrt::bytes).map(bfrt::number).and_then(|number| u32::try_from(number).ok());
        number.ok_or_else(|| Status::invalid_argument("the front panel has no such port"))
    }

    fn fields(&self, table: &Table) -> Result<Vec<DataField>, Status> {
        let PortSettings { speed, fec, autonegotiation, loopback } = self.settings;
        let names = [
            ("$SPEED", speed.driver()),
            ("$FEC", fec.driver()),
            ("$AUTO_NEGOTIATION", autonegotiation.driver()),
            ("$LOOPBACK_MODE", loopback.driver()),
        ];
        let named = names.into_iter().map(|(field, value)| Ok(bfrt::name(data_id(table, field)?, value)));
        named.chain([Ok(bfrt::flag(data_id(table, "$PORT_ENABLE")?, true))]).collect()
    }
}

fn lacks(what: &str) -> Status {
    Status::failed_precondition(format!("the driver has no {what}"))
}

#[allow(clippy::result_large_err)]
fn table<'d>(driver: &'d Driver, name: &str) -> Result<&'d Table, Status> {
    let table = driver.program()?.device_info.tables.iter().find(|table| table.name == name);
    table.ok_or_else(|| lacks(&format!("table {name}")))
}

#[allow(clippy::result_large_err)]
fn data_id(table: &Table, name: &str) -> Result<u32, Status> {
    table.data_id(name).ok_or_else(|| lacks(&format!("field {name} in {}", table.name)))
}

#[allow(clippy::result_large_err)]
fn key_id(table: &Table) -> Result<u32, Status> {
    table.key.first().map(|key| key.id).ok_or_else(|| lacks(&format!("key of {}", table.name)))
}

#[allow(clippy::result_large_err)]
fn number_key(table: &Table, number: u32) -> Result<TableKey, Status> {
    Ok(bfrt::number_key(key_id(table)?, number))
}

/// Reads the data of an entry. Returns `None` when the entry does not exist; some tables of the driver report this as
/// an invalid argument.
async fn read(driver: &Driver, entry: TableEntry) -> Result<Option<TableData>, Status> {
    match driver.read(vec![bfrt::entry_entity(entry)]).await {
        Ok(entities) => Ok(entities.into_iter().find_map(|entity| match entity.entity {
            Some(entity::Entity::TableEntry(entry)) => entry.data,
            _ => None,
        })),
        Err(status) if matches!(status.code(), Code::NotFound | Code::InvalidArgument) => Ok(None),
        Err(status) => Err(status),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        FrontPanel::parse("ports.toml", text).unwrap_err().to_string()
    }

    #[test]
    fn errors_of_a_file_name_the_line() {
        for (text, expected) in [
            ("[ports.\"1/0\"]\nspeed = \"100G\"\nfec = \"rs\"\n", ["line 3", "reed-solomon"]),
            ("[ports.\"1/0\"]\nspeed = \"100G\"\nlanes = 4\n", ["line 3", "lanes"]),
            ("[ports.\"1/0\"]\nfec = \"none\"\n", ["line 1", "speed"]),
            ("\n[ports.uplink]\nspeed = \"10G\"\n", ["line 2", "neither CONNECTOR/CHANNEL nor a device port"]),
            ("[ports.\"1/0\"]\nspeed = \n", ["line 2", "--ports ports.toml"]),
        ] {
            let text = refusal(text);
            assert!(expected.iter().all(|fragment| text.contains(fragment)), "{text}");
        }
        let unread = FrontPanel::open("/nowhere/ports.toml").unwrap_err().to_string();
        assert!(unread.starts_with("--ports /nowhere/ports.toml: No such file"), "{unread}");
    }

    #[test]
    fn front_panel_names_and_device_ports_are_accepted() {
        let text = "[ports.\"2/1\"]\nspeed = \"25G\"\n[ports.132]\nspeed = \"100G\"\nfec = \"reed-solomon\"\n";
        let panel = FrontPanel::parse("ports.toml", text).unwrap();
        let lines: Vec<_> = panel.ports.iter().map(|port| (port.line, port.name.as_str())).collect();
        assert_eq!(lines, [(1, "2/1"), (3, "132")]);
    }
}
