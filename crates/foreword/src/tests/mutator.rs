//! Makes malformed inputs of good ones, the same for the same seed, and runs a test with each.
//!
//! Used by `tests.rs` and by `tests/it/fuzz.rs`. The good ones are recorded samples and the files in
//! `testdata/fuzz/TARGET`. An input that once failed is
//! added there, so that it is tried first from then on. `scripts/fuzz` runs longer.

#[path = "../../../foreword-bench/src/random.rs"]
#[expect(dead_code, reason = "only the benches use all of it")]
mod random;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};

use random::Random;

/// Tries every input of the corpus and then `times` that are made of them, or as many as
/// `FOREWORD_FUZZ_ITERATIONS` sets. An input that fails is left in a file.
pub fn fuzz(target: &str, samples: Vec<Vec<u8>>, times: u64, mut attempt: impl FnMut(&[u8])) {
    let number = |name| std::env::var(name).ok()?.parse::<u64>().ok();
    let times = number("FOREWORD_FUZZ_ITERATIONS").unwrap_or(times);
    let seed = number("FOREWORD_FUZZ_SEED").unwrap_or(1);
    let corpus = [samples, files(&folder().join(target))].concat();
    assert!(!corpus.is_empty(), "nothing to begin with for {target}");
    // Written before the attempt, since a stack overflow would end the process.
    let last = std::env::temp_dir().join(format!("foreword-fuzz-{target}-{}", std::process::id()));
    let mut attempt = |input: &[u8], number: u64| {
        std::fs::write(&last, input).unwrap();
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| attempt(input))) {
            eprintln!(
                "{target}: input {number} of seed {seed} failed; it is in {}, keep it in testdata/fuzz/{target}",
                last.display()
            );
            resume_unwind(panic);
        }
    };
    for (number, input) in (0..).zip(&corpus) {
        attempt(input, number);
    }
    let mut mutator = Mutator {
        random: Random::new(seed),
        corpus: &corpus,
    };
    for number in 0..times {
        let input = mutator.next_input();
        attempt(&input, number + corpus.len() as u64);
    }
    let _ = std::fs::remove_file(last);
}

/// The folder of the corpora.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/fuzz")
}

/// The contents of the files of a folder, in order of their names; none if there is no folder.
pub fn files(folder: &Path) -> Vec<Vec<u8>> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.retain(|path| path.is_file());
    paths
        .iter()
        .map(|path| std::fs::read(path).unwrap())
        .collect()
}

/// What has meaning to one reader or another.
#[rustfmt::skip]
const TOKENS: &[&[u8]] = &[
    b"{", b"}", b"[", b"]", b"\"", b"\\", b",", b":", b"\0", b"\n", b"\r\n", b"\t", b"null",
    b"true", b"{}", b"[]", b"\"\"", b"0", b"-1", b"-0", b"1e999", b"9223372036854775808",
    b"18446744073709551616", b"0.1e-400", b"\\ud800", b"\\udfff\\ud800", b"\\u0000", b"\\x",
    b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xef\xbb\xbf", "é".as_bytes(),
    "𝄞".as_bytes(), "\u{202e}".as_bytes(), "a\u{301}".as_bytes(), "漢字".as_bytes(), b"//", b"/*",
    b"*/", b"#", b"'''", b"[[", b"]]", b"=", b"../", b"~/", b"/dev/null", b"%s", b"$(id)", b"--",
    b"*", b"AND", b"NOT", b"NEAR(", b"^", b"<private>", b"</private>", b"<observation>",
    b"</observation>", b"<title>", b"</narrative>", b"<summary>", b"<nothing>", b"<![CDATA[",
    b"]]>", b"&lt;", b"<", b"password=", b"sk-ant-api03-", b"AKIA", b"-----BEGIN PRIVATE KEY-----",
    b"eyJ", b"session_id", b"tool_input", b"hooks", b"foreword", b"exclude",
];

struct Mutator<'a> {
    random: Random,
    corpus: &'a [Vec<u8>],
}

impl Mutator<'_> {
    /// One to eight changes to one of the corpus.
    fn next_input(&mut self) -> Vec<u8> {
        let mut input = self.pick(self.corpus).clone();
        for _ in 0..=self.below(8) {
            self.change(&mut input);
        }
        input
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let part = self.part(input);
        match self.below(12) {
            0 if !input.is_empty() => {
                let at = self.below(input.len());
                input[at] ^= 1 << self.below(8);
            }
            1 if !input.is_empty() => {
                let at = self.below(input.len());
                input[at] = self.below(256) as u8;
            }
            2 => input.truncate(part.start),
            3 => drop(input.drain(part)),
            4 => {
                let again = input[part.clone()].repeat(1 + self.below(4));
                input.splice(part.start..part.start, again);
            }
            5 | 6 => {
                let token = *self.pick(TOKENS);
                input.splice(part.start..part.start, token.iter().copied());
            }
            7 => {
                let token = *self.pick(TOKENS);
                input.splice(part, token.iter().copied());
            }
            8 => {
                let other = self.pick(self.corpus).clone();
                let theirs = self.part(&other);
                input.splice(part, other[theirs].iter().copied());
            }
            9 => self.number(input),
            // Rarely very deep, or very long.
            10 if self.below(4) == 0 => {
                let depth = 1 << self.below(14);
                let (open, close) =
                    *self.pick(&[("[", "]"), ("{\"a\":", "}"), ("<a>", "</a>"), ("(", ")")]);
                let (open, close) = (open.repeat(depth), close.repeat(depth));
                let around = [open.as_bytes(), &input[part.clone()], close.as_bytes()].concat();
                input.splice(part, around);
            }
            11 if self.below(4) == 0 => {
                let token = self.pick(TOKENS).repeat(1 << self.below(12));
                input.splice(part.start..part.start, token);
            }
            _ => {}
        }
        // Changes upon changes must not grow without end.
        input.truncate(1 << 20);
    }

    /// Puts another number in place of one.
    fn number(&mut self, input: &mut Vec<u8>) {
        let from = self.below(input.len() + 1);
        let Some(start) = input[from..].iter().position(u8::is_ascii_digit) else {
            return;
        };
        let start = from + start;
        let length = input[start..]
            .iter()
            .take_while(|it| it.is_ascii_digit())
            .count();
        let number = *self.pick(&[
            "0",
            "-1",
            "4294967296",
            "9223372036854775807",
            "1e308",
            "00",
            "0x10",
            "NaN",
        ]);
        input.splice(start..start + length, number.bytes());
    }

    /// Some part of an input, mostly short.
    fn part(&mut self, input: &[u8]) -> std::ops::Range<usize> {
        let start = self.below(input.len() + 1);
        let most = if self.below(4) == 0 { input.len() } else { 32 };
        let length = self.below(most.min(input.len() - start) + 1);
        start..start + length
    }

    fn pick<'b, T>(&mut self, of: &'b [T]) -> &'b T {
        &of[self.below(of.len())]
    }

    fn below(&mut self, end: usize) -> usize {
        self.random.below(end as u32) as usize
    }
}
