//! How well a row matches: BM25 as FTS5 counts it, told what it would look up.
//!
//! FTS5's own `bm25()` walks through every row of every term before the first result, to
//! learn how many there are. Ours is given those numbers. It also leaves out the first
//! terms of an expression, which are there only to choose the rows, and says which terms
//! a row has. This is the one place that speaks to FTS5 in C.

#![expect(
    unsafe_code,
    reason = "FTS5 takes ranking functions only through its C interface"
)]

use std::ffi::{c_int, c_void};

use rusqlite::Connection;
use rusqlite::ffi;

/// What a word in each column is worth: title, body, tags, parts.
pub(super) const WEIGHTS: [f64; 4] = [4.0, 1.0, 2.0, 1.0];
/// FTS5's own constants: with others the benchmark finds no more.
const K1: f64 = 1.2;
const B: f64 = 0.75;

/// More terms than fit a mask are not asked for.
pub(super) const TERMS_MAX: usize = 64;

/// How well a row matches (more is better), and which of the terms it has, one bit each.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rank {
    pub score: f64,
    pub terms: u64,
}

impl Rank {
    pub fn from_bytes(bytes: &[u8]) -> Option<Rank> {
        let (score, terms) = bytes.split_first_chunk()?;
        Some(Rank {
            score: f64::from_le_bytes(*score),
            terms: u64::from_le_bytes(terms.try_into().ok()?),
        })
    }
}

/// The rarer a term, the heavier. One in more than half of all rows says nothing, but a row
/// may have no other.
pub(super) fn weight(with: f64, rows: f64) -> f64 {
    ((rows - with + 0.5) / (with + 0.5)).ln().max(1e-6)
}

/// What `rank_of(texts, …)` is told: how many terms only choose, and how many rows each of the others is in.
pub(super) fn argument(choosing: usize, rows: impl IntoIterator<Item = f64>) -> Vec<u8> {
    let numbers = std::iter::once(choosing as f64).chain(rows);
    numbers.flat_map(f64::to_le_bytes).collect()
}

/// Makes `rank_of(texts, argument)` known to a connection. Once: FTS5 keeps every copy.
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
        match create(
            api,
            c"rank_of".as_ptr(),
            std::ptr::null_mut(),
            Some(rank),
            None,
        ) {
            ffi::SQLITE_OK => Ok(()),
            code => Err(failed(code)),
        }
    }
}

/// What stays the same for all rows of a query.
struct Terms {
    choosing: c_int,
    /// The weight of each term that counts.
    idf: Vec<f64>,
    average_size: f64,
}

/// FTS5 calls this for each row.
///
/// SAFETY: every pointer is FTS5's and valid during the call; all functions of its
/// interface are there since version 1; `Terms` is freed by FTS5 through `forget`.
unsafe extern "C" fn rank(
    api: *const ffi::Fts5ExtensionApi,
    row: *mut ffi::Fts5Context,
    answer: *mut ffi::sqlite3_context,
    count: c_int,
    arguments: *mut *mut ffi::sqlite3_value,
) {
    unsafe {
        let ranked = (count == 1)
            .then(|| rank_row(&*api, row, *arguments))
            .flatten();
        let Some(rank) = ranked else {
            ffi::sqlite3_result_error_code(answer, ffi::SQLITE_ERROR);
            return;
        };
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&rank.score.to_le_bytes());
        bytes[8..].copy_from_slice(&rank.terms.to_le_bytes());
        ffi::sqlite3_result_blob(answer, bytes.as_ptr().cast(), 16, ffi::SQLITE_TRANSIENT());
    }
}

unsafe fn rank_row(
    api: &ffi::Fts5ExtensionApi,
    row: *mut ffi::Fts5Context,
    argument: *mut ffi::sqlite3_value,
) -> Option<Rank> {
    unsafe {
        let mut terms = api.xGetAuxdata?(row, 0).cast::<Terms>();
        if terms.is_null() {
            terms = Box::into_raw(Box::new(read_terms(api, row, argument)?));
            // On failure FTS5 has freed them already.
            let set = api.xSetAuxdata?(row, terms.cast(), Some(forget));
            (set == ffi::SQLITE_OK).then_some(())?;
        }
        let terms = &*terms;
        let mut size = 0;
        api.xColumnSize?(row, -1, &mut size);
        let size = K1 * (1.0 - B + B * f64::from(size) / terms.average_size);
        let mut rank = Rank {
            score: 0.0,
            terms: 0,
        };
        for (number, idf) in (0..).zip(&terms.idf) {
            let mut place = ffi::Fts5PhraseIter {
                a: std::ptr::null(),
                b: std::ptr::null(),
            };
            let (mut column, mut offset) = (-1, -1);
            api.xPhraseFirst?(
                row,
                terms.choosing + number,
                &mut place,
                &mut column,
                &mut offset,
            );
            let mut weight = 0.0;
            while let Ok(at) = usize::try_from(column) {
                weight += WEIGHTS.get(at).copied().unwrap_or(1.0);
                api.xPhraseNext?(row, &mut place, &mut column, &mut offset);
            }
            if weight > 0.0 {
                rank.score += idf * weight * (K1 + 1.0) / (weight + size);
                rank.terms |= 1 << number;
            }
        }
        Some(rank)
    }
}

unsafe fn read_terms(
    api: &ffi::Fts5ExtensionApi,
    row: *mut ffi::Fts5Context,
    argument: *mut ffi::sqlite3_value,
) -> Option<Terms> {
    let (mut rows, mut tokens) = (0, 0);
    let bytes = unsafe {
        api.xRowCount?(row, &mut rows);
        api.xColumnTotalSize?(row, -1, &mut tokens);
        let start = ffi::sqlite3_value_blob(argument).cast::<u8>();
        let length = usize::try_from(ffi::sqlite3_value_bytes(argument)).ok()?;
        (!start.is_null()).then(|| std::slice::from_raw_parts(start, length))?
    };
    let (numbers, _) = bytes.as_chunks();
    let mut numbers = numbers.iter().map(|it| f64::from_le_bytes(*it));
    let choosing = numbers.next()? as c_int;
    let rows = (rows as f64).max(1.0);
    Some(Terms {
        choosing,
        idf: numbers
            .take(TERMS_MAX)
            .map(|with| weight(with, rows))
            .collect(),
        average_size: (tokens as f64 / rows).max(1.0),
    })
}

unsafe extern "C" fn forget(terms: *mut c_void) {
    drop(unsafe { Box::from_raw(terms.cast::<Terms>()) });
}
