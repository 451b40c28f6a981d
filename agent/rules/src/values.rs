//! The values that a request has for the fields that rules have conditions on.

use crate::field::FieldId;

/// Returns the number of bytes that a list has allocated.
pub(crate) fn allocated<T>(list: &Vec<T>) -> usize {
    list.capacity() * size_of::<T>()
}

/// Copies of the values, in order of arrival. Values of fields without conditions are not stored.
#[derive(Clone, Debug, Default)]
pub(crate) struct Values {
    bytes: Vec<u8>,
    list: Vec<(FieldId, u32, u32)>,
}

impl Values {
    pub(crate) fn push(&mut self, field: FieldId, value: &[u8]) {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(value);
        self.list.push((field, start, self.bytes.len() as u32));
    }

    /// Adds a value in lower case.
    pub(crate) fn push_lower(&mut self, field: FieldId, value: &[u8]) {
        self.push(field, value);
        let start = self.bytes.len() - value.len();
        self.bytes[start..].make_ascii_lowercase();
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns the bytes of memory in use.
    pub(crate) fn memory(&self) -> usize {
        allocated(&self.bytes) + allocated(&self.list)
    }

    /// Returns the bytes of memory in use for all values except the first `first` ones.
    pub(crate) fn used_behind(&self, first: usize) -> usize {
        let before = self.list[..first].last().map_or(0, |&(.., end)| end as usize);
        self.bytes.len() - before + size_of_val(&self.list[first..])
    }

    pub(crate) fn get(&self, index: usize) -> (FieldId, &[u8]) {
        let (field, start, end) = self.list[index];
        (field, &self.bytes[start as usize..end as usize])
    }

    /// Returns the values of a field among the first `first` of all values.
    pub(crate) fn of(&self, field: FieldId, first: usize) -> impl Iterator<Item = &[u8]> + Clone {
        let of = move |&&(other, ..): &&(FieldId, u32, u32)| other == field;
        self.list[..first].iter().filter(of).map(|&(_, start, end)| &self.bytes[start as usize..end as usize])
    }
}
