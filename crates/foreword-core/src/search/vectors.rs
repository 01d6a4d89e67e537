//! Vectors in memory, and the search for the nearest ones, which compares all of them.
//!
//! A record is an owner (the id of an item, which may own several) and a vector of length
//! one, kept as one byte per number. Beside it the signs are kept, one bit per number: counting
//! the bits in which two vectors differ is so fast that all are compared that way, and only the
//! best thousand by their bytes. A hundred thousand records take 46 MB and less than a
//! millisecond.
//!
//! On disk records are stored in *pages*, one an item: opaque to the database, with a checksum. A
//! damaged page is an error; its item is then embedded again.

use std::collections::HashMap;

/// The embedding of a text, made by `foreword-embed`; its length is one.
pub type Vector = [f32; DIMENSIONS];

pub const DIMENSIONS: usize = 384;
/// The owner of removed records.
const NOBODY: i64 = i64::MIN;
/// At least this many of the nearest by signs are compared by their bytes.
const COMPARED: usize = 1000;
/// For each wanted result, at least this many are compared by their bytes.
const COMPARED_EACH: usize = 20;

/// The version of the page format.
const VERSION: u8 = 3;
/// Bytes at the beginning of a page: the version and the number of records.
const HEAD: usize = 3;
/// Bytes of the checksum at the end of a page.
const CHECKSUM: usize = 8;
/// The factor of the checksum: an odd number without a pattern in its bits.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
/// Bytes of a record in a page: the owner, the step and the codes.
const RECORD: usize = 8 + 4 + DIMENSIONS;

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PageError {
    #[error("a page of vectors is damaged")]
    Damaged,
    #[error("a page of vectors is of version {0}, which this program does not know")]
    OtherVersion(u8),
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Vectors {
    owners: Vec<i64>,
    /// The value of one step of a record's codes.
    steps: Vec<f32>,
    codes: Vec<[i8; DIMENSIONS]>,
    signs: Vec<Signs>,
    /// The index of an owner's first record; its others follow it.
    first: HashMap<i64, usize>,
}

type Signs = [u64; DIMENSIONS / 64];

impl Vectors {
    /// Reserves memory for about this many records.
    pub fn reserve(&mut self, records: usize) {
        self.owners.reserve(records);
        self.steps.reserve(records);
        self.codes.reserve(records);
        self.signs.reserve(records);
        self.first.reserve(records);
    }

    pub fn len(&self) -> usize {
        self.owners.len()
    }

    pub fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }

    /// Adds a record. All records of an owner must be added one after the other.
    pub fn push(&mut self, owner: i64, vector: &Vector) {
        let step = largest(vector) / f32::from(i8::MAX);
        self.push_codes(
            owner,
            step,
            vector.map(|number| (number / step).round() as i8),
        );
    }

    fn push_codes(&mut self, owner: i64, step: f32, codes: [i8; DIMENSIONS]) {
        self.first.entry(owner).or_insert(self.owners.len());
        self.owners.push(owner);
        self.steps.push(step);
        self.signs.push(signs(&codes));
        self.codes.push(codes);
    }

    /// Removes every record of this owner. Their memory is not freed, since few are ever removed.
    pub fn remove(&mut self, owner: i64) {
        for at in self.records(owner).collect::<Vec<_>>() {
            self.owners[at] = NOBODY;
        }
        self.first.remove(&owner);
    }

    /// The mean direction of an owner's records; none if it has none.
    pub fn of(&self, owner: i64) -> Option<Vector> {
        let mut sum = [0.0; DIMENSIONS];
        for at in self.records(owner) {
            for (sum, code) in sum.iter_mut().zip(&self.codes[at]) {
                *sum += f32::from(*code) * self.steps[at];
            }
        }
        let length = sum.iter().map(|it| it * it).sum::<f32>().sqrt();
        (length > 0.0).then(|| sum.map(|it| it / length))
    }

    fn records(&self, owner: i64) -> impl Iterator<Item = usize> {
        let first = self.first.get(&owner).copied().unwrap_or(self.len());
        (first..self.len()).take_while(move |at| self.owners[*at] == owner)
    }

    /// The `count` nearest records, each with its owner and cosine, the nearest first. An owner
    /// occurs once for each of its records that is near.
    pub fn nearest(&self, query: &Vector, count: usize) -> Vec<(i64, f32)> {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt") {
            #[expect(unsafe_code, reason = "the one call that needs a certain processor")]
            // SAFETY: the processor was just asked whether it has both.
            return unsafe { self.nearest_wide(query, count) };
        }
        self.nearest_plain(query, count)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,popcnt")]
    fn nearest_wide(&self, query: &Vector, count: usize) -> Vec<(i64, f32)> {
        self.nearest_plain(query, count)
    }

    // The functions called here are inlined into one of the two above, and so compiled for its
    // processor. They use loops, since a closure would be compiled for any processor.
    #[inline(always)]
    fn nearest_plain(&self, query: &Vector, count: usize) -> Vec<(i64, f32)> {
        let candidates = self.candidates(query, COMPARED.max(count * COMPARED_EACH));
        let mut hits = self.compare(query, candidates.into_iter());
        hits.sort_by(|(a, near_a), (b, near_b)| near_b.total_cmp(near_a).then(a.cmp(b)));
        hits.truncate(count);
        hits
    }

    /// Every record of these owners with its cosine, in no order.
    pub fn near(&self, query: &Vector, owners: impl Iterator<Item = i64>) -> Vec<(i64, f32)> {
        self.compare(query, owners.flat_map(|owner| self.records(owner)))
    }

    #[inline(always)]
    fn compare(&self, query: &Vector, records: impl Iterator<Item = usize>) -> Vec<(i64, f32)> {
        // The query as 16-bit integers, which are multiplied faster than floating-point numbers.
        let step = largest(query) / f32::from(i16::MAX);
        let query = query.map(|number| (number / step) as i16);
        let mut hits = Vec::new();
        for at in records {
            if self.owners[at] != NOBODY {
                let cosine = product(&query, &self.codes[at]) as f32 * step * self.steps[at];
                hits.push((self.owners[at], cosine));
            }
        }
        hits
    }

    /// The `count` nearest records by their signs, and all that are as near as the last of them.
    #[inline(always)]
    fn candidates(&self, query: &Vector, count: usize) -> Vec<usize> {
        let query = signs(&query.map(|number| if number < 0.0 { -1 } else { 1 }));
        let distances = distances(&self.signs, &query);
        let mut by_distance = [0; DIMENSIONS + 1];
        for distance in &distances {
            by_distance[usize::from(*distance)] += 1;
        }
        let mut so_far = 0;
        let last = by_distance.iter().position(|records| {
            so_far += records;
            so_far >= count
        });
        let last = last.unwrap_or(DIMENSIONS);
        let near = |at: &usize| usize::from(distances[*at]) <= last;
        (0..self.len()).filter(near).collect()
    }

    /// All records as one page; at most 65,535 of them.
    pub fn to_page(&self) -> Vec<u8> {
        let count = self.len().min(usize::from(u16::MAX));
        let mut page = Vec::with_capacity(HEAD + count * RECORD + CHECKSUM);
        page.push(VERSION);
        page.extend((count as u16).to_le_bytes());
        for at in 0..count {
            page.extend(self.owners[at].to_le_bytes());
            page.extend(self.steps[at].to_le_bytes());
            page.extend(self.codes[at].map(|code| code as u8));
        }
        page.extend(checksum(&page));
        page
    }

    /// Adds the records of a page; none of them if it is damaged.
    pub fn add_page(&mut self, page: &[u8]) -> Result<(), PageError> {
        let (page, sum) = page.split_last_chunk().ok_or(PageError::Damaged)?;
        let (&[version, low, high], records) =
            page.split_first_chunk().ok_or(PageError::Damaged)?;
        let count = usize::from(u16::from_le_bytes([low, high]));
        if checksum(page) != *sum {
            return Err(PageError::Damaged);
        }
        if version != VERSION {
            return Err(PageError::OtherVersion(version));
        }
        let (records, rest) = records.as_chunks::<RECORD>();
        if records.len() != count || !rest.is_empty() {
            return Err(PageError::Damaged);
        }
        for record in records {
            let (owner, record) = record.split_first_chunk().ok_or(PageError::Damaged)?;
            let (step, codes) = record.split_first_chunk().ok_or(PageError::Damaged)?;
            let codes: [u8; DIMENSIONS] = codes.try_into().map_err(|_| PageError::Damaged)?;
            let (owner, step) = (i64::from_le_bytes(*owner), f32::from_le_bytes(*step));
            self.push_codes(owner, step, codes.map(|code| code as i8));
        }
        Ok(())
    }
}

fn largest(vector: &Vector) -> f32 {
    let sizes = vector.iter().map(|number| number.abs());
    sizes.fold(f32::MIN_POSITIVE, f32::max)
}

fn signs(codes: &[i8; DIMENSIONS]) -> Signs {
    let (eights, _) = codes.as_chunks::<8>();
    std::array::from_fn(|word| {
        eights[word * 8..][..8].iter().rev().fold(0, |bits, eight| {
            let bytes = u64::from_le_bytes(eight.map(|code| code as u8));
            // One multiplication moves the highest bit of each byte together.
            let highest = bytes >> 7 & 0x0101_0101_0101_0101;
            bits << 8 | highest.wrapping_mul(0x0102_0408_1020_4080) >> 56
        })
    })
}

/// In how many signs each of these differs from the query.
#[inline(always)]
fn distances(all: &[Signs], query: &Signs) -> Vec<u16> {
    let mut distances = vec![0; all.len()];
    for (distance, signs) in distances.iter_mut().zip(all) {
        for (a, b) in signs.iter().zip(query) {
            *distance += (a ^ b).count_ones() as u16;
        }
    }
    distances
}

/// The dot product; at most 384 · 32767 · 127, which is below 2^31.
#[inline(always)]
fn product(query: &[i16; DIMENSIONS], codes: &[i8; DIMENSIONS]) -> i32 {
    let mut sum = 0;
    for (number, code) in query.iter().zip(codes) {
        sum += i32::from(*number) * i32::from(*code);
    }
    sum
}

/// Detects accidental damage: each step maps different sums to different sums, so a change within
/// eight bytes always shows. With BLAKE3 100,000 pages take 160 ms to load instead of 59.
fn checksum(bytes: &[u8]) -> [u8; CHECKSUM] {
    let step = |sum: u64, word: u64| (sum ^ word).wrapping_mul(FACTOR).rotate_left(29);
    let (words, rest) = bytes.as_chunks();
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    let rest = rest.iter().map(|byte| u64::from(*byte));
    let sum = words.chain(rest).fold(bytes.len() as u64, step);
    sum.to_le_bytes()
}

#[cfg(test)]
mod tests;
