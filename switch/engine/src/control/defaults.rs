//! Lets the control plane read and set the default entries of tables, and set the direct counter and the direct meter
//! of any entry.

use super::{CounterData, DefaultView, EntryAction, MeterConfig, Of, Result, arrays::check_meter};
use crate::engine::Engine;
use crate::error::ControlError;
use crate::meter::Meter;
use crate::profile::{Bound, Call};
use crate::program::TableId;

impl Engine {
    /// Reads the default entry of a table.
    pub fn table_default(&self, table: TableId) -> DefaultView {
        let (ts, info) = (&self.machine.tables[table.index()], self.program.table_info(table));
        DefaultView {
            action: ts.default.as_ref().map(|bound| self.action_of(table, bound)),
            metadata: ts.miss.metadata.clone(),
            cookie: ts.miss.cookie,
            counter: info.direct_counter.then_some(ts.miss.counter),
            meter: info.direct_meter.map(|_| ts.miss.meter.view()),
        }
    }

    /// Sets the default action (`Some`), or restores the program's default action (`None`). In both cases clears the
    /// metadata and the cookie of the default entry.
    ///
    /// # Errors
    /// `PermissionDenied` if the default action is constant; otherwise the errors that `table_insert` returns for an
    /// action.
    pub fn table_set_default(&mut self, table: TableId, action: Option<&EntryAction>) -> Result<()> {
        let info = self.program.table_info(table);
        if info.const_default {
            return Err(ControlError::PermissionDenied(format!(
                "the default action of table {} is constant; change it in the program",
                info.name
            )));
        }
        let bound = match action {
            Some(action) => {
                self.has_room(table, action, self.machine.tables[table.index()].default.as_ref())?;
                Some(self.bind(table, action)?)
            }
            None => self.program.tables[table.index()]
                .default
                .as_ref()
                .map(|d| Bound::Call(Call { action: d.action, params: d.params.clone().into() })),
        };
        if let Some(old) = self.machine.set_default(table, bound) {
            self.unbind(table, &old);
        }
        self.table_label_default(table, Vec::new(), 0);
        Ok(())
    }

    /// Sets the metadata and the cookie of the default entry.
    pub fn table_label_default(&mut self, table: TableId, metadata: Vec<u8>, cookie: u64) {
        let miss = &mut self.machine.tables[table.index()].miss;
        (miss.metadata, miss.cookie) = (metadata, cookie);
    }

    /// Sets the direct counter of an entry or of the default entry.
    ///
    /// # Errors
    /// `NotFound` if the entry does not exist, `InvalidArgument` if the table has no direct counter.
    pub fn direct_counter_write(&mut self, table: TableId, of: Of<'_>, value: CounterData) -> Result<()> {
        if !self.program.table_info(table).direct_counter {
            return Err(self.lacks(table, "direct counter"));
        }
        *self.direct(table, of)?.0 = value;
        Ok(())
    }

    /// Configures the direct meter of an entry or of the default entry. `None` sets the default configuration: the
    /// meter of an entry then colours every packet green, and the meter of the default entry writes no colour at all.
    /// `now` is the time in nanoseconds.
    ///
    /// # Errors
    /// `NotFound` if the entry does not exist, `InvalidArgument` if the table has no direct meter or the CIR is above
    /// the PIR.
    pub fn direct_meter_write(
        &mut self,
        now: u64,
        table: TableId,
        of: Of<'_>,
        config: Option<MeterConfig>,
    ) -> Result<()> {
        check_meter(config)?;
        self.direct_meter(table, of)?.configure(now, config);
        Ok(())
    }

    /// Sets the counts of the direct meter of an entry or of the default entry, one count for each colour, to zero.
    ///
    /// # Errors
    /// `NotFound` if the entry does not exist, `InvalidArgument` if the table has no direct meter.
    pub fn direct_meter_clear_counts(&mut self, table: TableId, of: Of<'_>) -> Result<()> {
        self.direct_meter(table, of)?.clear_counts();
        Ok(())
    }

    fn direct_meter(&mut self, table: TableId, of: Of<'_>) -> Result<&mut Meter> {
        if self.program.table_info(table).direct_meter.is_none() {
            return Err(self.lacks(table, "direct meter"));
        }
        Ok(self.direct(table, of)?.1)
    }

    fn direct(&mut self, table: TableId, of: Of<'_>) -> Result<(&mut CounterData, &mut Meter)> {
        let missing = self.no_entry(table);
        let id = match of {
            Of::Default => None,
            Of::Entry(key, priority) => Some(self.locate(table, key, priority)?),
        };
        let ts = &mut self.machine.tables[table.index()];
        match id {
            None => Ok((&mut ts.miss.counter, &mut ts.miss.meter)),
            Some(id) => {
                let entry = ts.entry_mut(id).ok_or(missing)?;
                Ok((&mut entry.counter, &mut entry.meter))
            }
        }
    }
}
