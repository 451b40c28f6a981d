//! Allocation of scratch words to rows, done when a program is loaded.

/// The place of a number in the scratch words; at least one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    pub at: usize,
    pub words: usize,
}

impl Row {
    pub fn end(self) -> usize {
        self.at + self.words
    }
}

/// The allocator of rows.
#[derive(Default)]
pub struct Scratch {
    /// Rows in use, in order of their places.
    rows: Vec<Row>,
    /// The number of words that were ever in use.
    pub words: usize,
}

impl Scratch {
    /// Allocates the first gap that is long enough.
    pub fn take(&mut self, words: usize) -> Row {
        let mut at = 0;
        let gap = self.rows.iter().position(|row| {
            let fits = row.at - at >= words;
            if !fits {
                at = row.end();
            }
            fits
        });
        let row = Row { at, words };
        self.rows.insert(gap.unwrap_or(self.rows.len()), row);
        self.words = self.words.max(row.end());
        row
    }

    pub fn free(&mut self, row: Row) {
        self.rows.retain(|r| *r != row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_words_are_used_again() {
        let mut scratch = Scratch::default();
        let rows = [2, 3, 1].map(|words| scratch.take(words));
        assert_eq!(rows.map(|r| r.at), [0, 2, 5]);
        scratch.free(rows[1]);
        assert_eq!(scratch.take(4).at, 6, "too long for the gap");
        assert_eq!(scratch.take(2).at, 2);
        assert_eq!(scratch.take(1).at, 4);
        assert_eq!(scratch.words, 10);
    }
}
