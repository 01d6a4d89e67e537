//! Vectors in memory, and which of them are nearest to another: by looking at all.
//!
//! A record is an owner (the number of an item, which may own several) and a vector of length
//! one, kept as one byte per number. Beside that stands one bit per number, its sign: counting
//! the bits in which two vectors differ is so quick that all are looked at, and only the
//! thousand best are compared by their bytes. A hundred thousand records take 46 MB and
//! less than a millisecond.
//!
//! On disk records lie in *pages*, one an item: opaque to the database, with a checksum. A page that is
//! damaged is an error, and whoever reads it has its owners embedded again.

use std::collections::HashMap;

/// What `foreword-embed` makes of a text: of length one.
pub type Vector = [f32; DIMENSIONS];

pub const DIMENSIONS: usize = 384;
/// The owner of what was removed.
const NOBODY: i64 = i64::MIN;
/// So many of the best by their signs are compared by their bytes, at least,
const COMPARED: usize = 1000;
/// or for each that is asked for.
const COMPARED_EACH: usize = 20;

const VERSION: u8 = 3;
/// The version and how many records there are.
const HEAD: usize = 3;
const CHECKSUM: usize = 8;
/// An odd number without a pattern in its bits.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
/// An owner, a step and the codes.
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
    /// What one step of a record's codes is.
    steps: Vec<f32>,
    codes: Vec<[i8; DIMENSIONS]>,
    signs: Vec<Signs>,
    /// Where an owner's records begin; they lie side by side.
    first: HashMap<i64, usize>,
}

type Signs = [u64; DIMENSIONS / 64];

impl Vectors {
    /// Makes room for about so many records.
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

    /// Adds a record; those of an owner come one after the other.
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

    /// Every record of this owner. Their room is kept: few are ever removed.
    pub fn remove(&mut self, owner: i64) {
        for at in self.records(owner).collect::<Vec<_>>() {
            self.owners[at] = NOBODY;
        }
        self.first.remove(&owner);
    }

    /// What an owner's records say together; none if it has none.
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

    /// So many records, the nearest first, each with its cosine. An owner is there once for each
    /// of its records that is near.
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

    // What this calls is inlined into one of the two functions above, and so compiled for it:
    // with loops, since a closure would be compiled for any processor.
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
        // Two bytes for each of its numbers: whole numbers are multiplied quicker than others.
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

    /// The best by their signs, and all that are as good as the last of them.
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
            // The highest bit of each byte, moved together by one product.
            let highest = bytes >> 7 & 0x0101_0101_0101_0101;
            bits << 8 | highest.wrapping_mul(0x0102_0408_1020_4080) >> 56
        })
    })
}

/// In how many signs each of these differs from another.
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

/// Of at most 384 · 32767 · 127, which is below 2^31.
#[inline(always)]
fn product(query: &[i16; DIMENSIONS], codes: &[i8; DIMENSIONS]) -> i32 {
    let mut sum = 0;
    for (number, code) in query.iter().zip(codes) {
        sum += i32::from(*number) * i32::from(*code);
    }
    sum
}

/// Notices accidental damage: each step maps different sums to different sums, so a change within
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
