//! How well a row matches: BM25 as FTS5 computes it, without the parts that make FTS5 slow.
//!
//! FTS5's own `bm25()` walks through every row of every term before the first result, to
//! count them, and looks up the length of each row that it ranks. Here two small functions read
//! from FTS5 what only it has: in how many rows the terms are (`term_rows`, which stops early),
//! and how much of each term a row has (`term_weights`). The rest is arithmetic, and a row's
//! length is looked up only if the row could be one of the best. No other file uses FTS5's C
//! interface.

#![expect(
    unsafe_code,
    reason = "FTS5 takes functions of its rows only through its C interface"
)]

use std::ffi::{CStr, c_int, c_void};

use rusqlite::Connection;
use rusqlite::ffi;

/// The weight of a word in each column: title, body, tags, parts.
pub const WEIGHTS: [f64; 4] = [4.0, 1.0, 2.0, 1.0];
/// BM25's saturation of repeated terms, as in FTS5; other values find no more in the benchmark.
const K1: f64 = 1.2;
/// BM25's influence of the row length, as in FTS5.
const B: f64 = 0.75;

/// The most terms of a query; the terms of a row are a mask of 64 bits.
pub(super) const TERMS_MAX: usize = 64;

/// At least this many rows of a term are counted; beyond, their number is estimated. With an
/// estimate that is off by 3 % (a thousand rows), one in fifty of the first ten hits differs from
/// FTS5's.
const COUNTED_MIN: i64 = 1000;
/// In a large memory the limit is the number of all rows divided by this.
const COUNTED_PART: i64 = 200;

/// BM25 for some terms.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bm25 {
    /// The weight of each term by its rarity.
    pub rarities: Vec<f64>,
    /// The average length of a row, in words.
    pub average_size: f64,
}

impl Bm25 {
    /// The score of a row: `weights` is how much of each term it has, `size` its length in words.
    /// Higher is better.
    pub fn score(&self, weights: &[f64], size: f64) -> f64 {
        let length = K1 * (1.0 - B + B * size / self.average_size);
        let each = self.rarities.iter().zip(weights);
        each.map(|(rarity, weight)| rarity * weight * (K1 + 1.0) / (weight + length))
            .sum()
    }
}

/// The weight of a term that is in `with` of all `rows`. It falls to zero for a term in half of
/// all rows, but stays positive, since a row may match by no other term.
pub(super) fn rarity(with: f64, rows: f64) -> f64 {
    ((rows - with + 0.5) / (with + 0.5)).ln().max(1e-6)
}

/// The number of words in a row, decoded from FTS5's `texts_docsize`: a number for each column,
/// seven bits a byte, the highest first, a high bit where another byte follows.
pub(super) fn size(encoded: &[u8]) -> f64 {
    let (mut all, mut number) = (0, 0_u32);
    for byte in encoded {
        number = number << 7 | u32::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            all += number;
            number = 0;
        }
    }
    f64::from(all)
}

/// Decodes the result of `term_rows` or `term_weights`: a blob of numbers.
pub(super) fn numbers(blob: &[u8]) -> impl Iterator<Item = f64> {
    let (numbers, _) = blob.as_chunks();
    numbers.iter().map(|it| f64::from_ne_bytes(*it))
}

/// Registers two SQL functions on a connection. To be called once: FTS5 keeps every copy.
///
/// `term_rows(texts)` returns the number of rows, the number of words, and for each term of the
/// expression two numbers: how many of its rows were counted, and 0; or, if counting stopped
/// early, the id of the last counted row instead of 0. Rows come in the order of their ids.
/// `term_weights(texts, first, measured)` returns the length of this row (looked up if `measured`,
/// else the least that the positions of the terms allow), and how much it has of each term from
/// number `first` on.
pub(super) fn register(connection: &Connection) -> rusqlite::Result<()> {
    let failed = |code| rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
    let mut api: *mut ffi::fts5_api = std::ptr::null_mut();
    // SAFETY: the documented way to FTS5's interface (`select fts5(?1)`). The statement is
    // finalized before `api` is used; the interface itself lives as long as the connection.
    unsafe {
        let mut statement = std::ptr::null_mut();
        let sql = c"select fts5(?1)";
        let code = ffi::sqlite3_prepare_v2(
            connection.handle(),
            sql.as_ptr(),
            -1,
            &mut statement,
            std::ptr::null_mut(),
        );
        if code != ffi::SQLITE_OK {
            return Err(failed(code));
        }
        let target = (&raw mut api).cast::<c_void>();
        ffi::sqlite3_bind_pointer(statement, 1, target, c"fts5_api_ptr".as_ptr(), None);
        ffi::sqlite3_step(statement);
        ffi::sqlite3_finalize(statement);
        let create = api.as_ref().and_then(|api| api.xCreateFunction);
        let Some(create) = create else {
            return Err(failed(ffi::SQLITE_ERROR));
        };
        let functions: [(&CStr, ffi::fts5_extension_function); 2] = [
            (c"term_rows", Some(term_rows)),
            (c"term_weights", Some(term_weights)),
        ];
        for (name, function) in functions {
            let code = create(api, name.as_ptr(), std::ptr::null_mut(), function, None);
            if code != ffi::SQLITE_OK {
                return Err(failed(code));
            }
        }
        Ok(())
    }
}

/// SAFETY, of this and the other functions that FTS5 calls: every pointer is FTS5's and valid
/// during the call; all functions used here are in its interface since version 1.
unsafe extern "C" fn term_rows(
    api: *const ffi::Fts5ExtensionApi,
    row: *mut ffi::Fts5Context,
    context: *mut ffi::sqlite3_context,
    _count: c_int,
    _arguments: *mut *mut ffi::sqlite3_value,
) {
    unsafe {
        set_result(context, count_rows(&*api, row));
    }
}

unsafe extern "C" fn term_weights(
    api: *const ffi::Fts5ExtensionApi,
    row: *mut ffi::Fts5Context,
    context: *mut ffi::sqlite3_context,
    count: c_int,
    arguments: *mut *mut ffi::sqlite3_value,
) {
    unsafe {
        let weighed = (count == 2).then(|| {
            let first = ffi::sqlite3_value_int(*arguments);
            let measured = ffi::sqlite3_value_int(*arguments.add(1)) != 0;
            weigh(&*api, row, first, measured)
        });
        set_result(context, weighed.flatten());
    }
}

unsafe fn set_result(context: *mut ffi::sqlite3_context, numbers: Option<Vec<f64>>) {
    unsafe {
        match numbers.map(|it| (c_int::try_from(size_of_val(it.as_slice())), it)) {
            Some((Ok(length), numbers)) => {
                let copied = ffi::SQLITE_TRANSIENT();
                ffi::sqlite3_result_blob(context, numbers.as_ptr().cast(), length, copied);
            }
            _ => ffi::sqlite3_result_error_code(context, ffi::SQLITE_ERROR),
        }
    }
}

/// The counted rows of one term: how many, the id of the last one, and where counting stops.
struct TermCounts {
    rows: i64,
    last: i64,
    max: i64,
}

unsafe fn count_rows(api: &ffi::Fts5ExtensionApi, row: *mut ffi::Fts5Context) -> Option<Vec<f64>> {
    unsafe {
        let (mut rows, mut words) = (0, 0);
        api.xRowCount?(row, &mut rows);
        api.xColumnTotalSize?(row, -1, &mut words);
        let max = COUNTED_MIN.max(rows / COUNTED_PART);
        let mut numbers = vec![rows as f64, words as f64];
        for term in 0..api.xPhraseCount?(row) {
            let mut counted = TermCounts {
                rows: 0,
                last: 0,
                max,
            };
            let target = (&raw mut counted).cast::<c_void>();
            let code = api.xQueryPhrase?(row, term, target, Some(count_one));
            (code == ffi::SQLITE_OK).then_some(())?;
            let stopped = counted.rows == max;
            let reached = if stopped { counted.last } else { 0 };
            numbers.extend([counted.rows as f64, reached as f64]);
        }
        Some(numbers)
    }
}

/// FTS5 calls this for each row of a term.
unsafe extern "C" fn count_one(
    api: *const ffi::Fts5ExtensionApi,
    row: *mut ffi::Fts5Context,
    counted: *mut c_void,
) -> c_int {
    unsafe {
        let counted = &mut *counted.cast::<TermCounts>();
        let Some(row_id) = (*api).xRowid else {
            return ffi::SQLITE_ERROR;
        };
        counted.rows += 1;
        counted.last = row_id(row);
        if counted.rows < counted.max {
            ffi::SQLITE_OK
        } else {
            ffi::SQLITE_DONE
        }
    }
}

unsafe fn weigh(
    api: &ffi::Fts5ExtensionApi,
    row: *mut ffi::Fts5Context,
    first: c_int,
    measured: bool,
) -> Option<Vec<f64>> {
    unsafe {
        let terms = first..api.xPhraseCount?(row);
        let mut numbers = Vec::with_capacity(terms.len() + 1);
        numbers.push(0.0);
        let mut sizes = [0; WEIGHTS.len()];
        for term in terms {
            let mut place = ffi::Fts5PhraseIter {
                a: std::ptr::null(),
                b: std::ptr::null(),
            };
            let (mut column, mut offset) = (-1, -1);
            api.xPhraseFirst?(row, term, &mut place, &mut column, &mut offset);
            let mut weight = 0.0;
            while let Ok(at) = usize::try_from(column) {
                weight += WEIGHTS.get(at)?;
                sizes[at] = offset.max(sizes[at]);
                api.xPhraseNext?(row, &mut place, &mut column, &mut offset);
            }
            numbers.push(weight);
        }
        let mut size = sizes.iter().sum();
        if measured {
            api.xColumnSize?(row, -1, &mut size);
        }
        numbers[0] = f64::from(size);
        Some(numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_a_row_is_the_sum_of_its_columns() {
        assert_eq!(size(&[7, 0x81, 0x00, 2, 0]), 7.0 + 128.0 + 2.0);
        assert_eq!(size(&[]), 0.0);
    }

    #[test]
    fn a_longer_row_scores_less() {
        let bm25 = Bm25 {
            rarities: vec![3.0, 0.5],
            average_size: 100.0,
        };
        for weights in [[1.0, 0.0], [4.0, 2.0]] {
            let at = |size| bm25.score(&weights, size);
            assert!(at(0.0) > at(1.0) && at(1.0) > at(100.0));
        }
        assert_eq!(bm25.score(&[1.0, 0.0], 100.0), 3.0);
    }
}
