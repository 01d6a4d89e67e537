//! Splits a text into tokens, the ids of the model's word pieces.
//!
//! Two steps, both as in the tokenizer that was used in training. The text is normalised: no
//! control characters, no accents, lower case; and split at white space, around punctuation
//! and around each Chinese character. Each word is then cut into the longest pieces that the
//! vocabulary has. Special tokens in a text are treated as text.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use icu_normalizer::DecomposingNormalizerBorrowed;
use icu_properties::CodePointMapData;
use icu_properties::props::{GeneralCategory, GeneralCategoryGroup};
use serde_json::Value;

use crate::weights::{damaged, reading};
use crate::{ModelError, TOKENS_MAX};

/// How many word pieces the model knows.
pub const VOCABULARY: usize = 30_522;
/// A longer word becomes the unknown token.
const WORD_MAX: usize = 100;
/// The most bytes of the vocabulary file that are read, thirty times the size of the model's.
const FILE_MAX: u64 = 16 * 1024 * 1024;

pub struct WordPiece {
    /// Pieces that a word begins with.
    first: Pieces,
    /// Pieces that continue a word.
    further: Pieces,
    /// The bytes of the longest piece.
    longest: usize,
    unknown: u32,
    opening: u32,
    closing: u32,
}

type Pieces = HashMap<Box<str>, u32>;

impl WordPiece {
    pub fn open(path: &Path) -> Result<WordPiece, ModelError> {
        let mut bytes = Vec::new();
        File::open(path)
            .and_then(|file| file.take(FILE_MAX).read_to_end(&mut bytes))
            .map_err(|error| reading(path, error))?;
        let file: Value =
            serde_json::from_slice(&bytes).map_err(|_| damaged(path, "it is not JSON"))?;
        let vocabulary = file["model"]["vocab"].as_object();
        let vocabulary = vocabulary.ok_or_else(|| damaged(path, "it has no vocabulary"))?;
        let number = |piece: &str| {
            let number = vocabulary.get(piece).and_then(Value::as_u64);
            number
                .filter(|number| *number < VOCABULARY as u64)
                .map(|number| number as u32)
                .ok_or_else(|| {
                    damaged(
                        path,
                        &format!("{piece} has no id in the model's vocabulary"),
                    )
                })
        };
        let (mut first, mut further) = (Pieces::new(), Pieces::new());
        for piece in vocabulary.keys() {
            let number = number(piece)?;
            match piece.strip_prefix("##") {
                Some(rest) if !rest.is_empty() => further.insert(rest.into(), number),
                _ => first.insert(piece.as_str().into(), number),
            };
        }
        Ok(WordPiece {
            first,
            further,
            longest: vocabulary.keys().map(String::len).max().unwrap_or(0),
            unknown: number("[UNK]")?,
            opening: number("[CLS]")?,
            closing: number("[SEP]")?,
        })
    }

    /// The tokens of a text, between the opening and the closing one; at most `TOKENS_MAX`.
    pub fn tokens(&self, text: &str) -> Vec<u32> {
        let mut tokens = vec![self.opening];
        let mut word = String::new();
        // A last blank ends the last word.
        for char in plain(text).chain([' ']) {
            let alone = is_punctuation(char) || is_chinese(char);
            if (char.is_whitespace() || alone) && !word.is_empty() {
                self.cut(&word, &mut tokens);
                word.clear();
            }
            if alone {
                self.cut(char.encode_utf8(&mut [0; 4]), &mut tokens);
            } else if !char.is_whitespace() {
                word.push(char);
            }
            if tokens.len() >= TOKENS_MAX {
                break;
            }
        }
        tokens.truncate(TOKENS_MAX - 1);
        tokens.push(self.closing);
        tokens
    }

    fn cut(&self, word: &str, tokens: &mut Vec<u32>) {
        let before = tokens.len();
        let mut rest = word;
        let mut pieces = &self.first;
        while !rest.is_empty() {
            let ends = (1..=rest.len().min(self.longest)).rev();
            let mut ends = ends.filter(|end| rest.is_char_boundary(*end));
            let found = ends.find_map(|end| Some((end, *pieces.get(&rest[..end])?)));
            let Some((end, number)) = found.filter(|_| word.chars().count() <= WORD_MAX) else {
                tokens.truncate(before);
                tokens.push(self.unknown);
                return;
            };
            tokens.push(number);
            rest = &rest[end..];
            pieces = &self.further;
        }
    }
}

/// The text without invisible characters and accents, in lower case.
fn plain(text: &str) -> impl Iterator<Item = char> {
    let seen = text.chars().filter_map(|char| match char {
        '\t' | '\n' | '\r' => Some(' '),
        '\u{fffd}' => None,
        _ if is_in(char, GeneralCategoryGroup::Control) => None,
        _ if is_in(char, GeneralCategoryGroup::Format) => None,
        _ if is_in(char, GeneralCategoryGroup::PrivateUse) => None,
        _ => Some(char),
    });
    DecomposingNormalizerBorrowed::new_nfd()
        .normalize_iter(seen)
        .filter(|char| !is_in(*char, GeneralCategoryGroup::NonspacingMark))
        .flat_map(char::to_lowercase)
}

fn is_punctuation(char: char) -> bool {
    char.is_ascii_punctuation() || is_in(char, GeneralCategoryGroup::Punctuation)
}

fn is_in(char: char, group: GeneralCategoryGroup) -> bool {
    // Skips the lookup for most characters.
    if char.is_ascii_alphanumeric() || char == ' ' {
        return false;
    }
    group.contains(CodePointMapData::<GeneralCategory>::new().get(char))
}

/// Not kana and hangul, which the tokenizer does not split by character.
fn is_chinese(char: char) -> bool {
    matches!(u32::from(char),
        0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xf900..=0xfaff
        | 0x20000..=0x2a6df | 0x2a700..=0x2b73f | 0x2b740..=0x2b81f | 0x2b920..=0x2ceaf
        | 0x2f800..=0x2fa1f)
}
