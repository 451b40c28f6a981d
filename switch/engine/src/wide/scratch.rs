//! Allocates rows of scratch words. The allocation takes place when a program is loaded.

/// The position of a number in the scratch words. A row has at least one word.
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

/// An allocator of rows.
#[derive(Default)]
pub struct Scratch {
    /// The rows in use, ordered by their position.
    rows: Vec<Row>,
    /// The number of scratch words that are needed for all rows.
    pub words: usize,
}

impl Scratch {
    /// Allocates a row in the first gap that has enough words.
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
