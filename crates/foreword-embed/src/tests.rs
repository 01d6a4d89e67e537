//! Compares with the reference (testdata/embed), and opens files that are not the model.

use std::io::Read as _;
use std::os::unix::fs::FileExt as _;
use std::process::Command;
use std::sync::OnceLock;

use super::*;

/// The model's folder. Without it these tests fail.
fn folder() -> PathBuf {
    if let Some(path) = std::env::var_os("FOREWORD_TEST_MODEL") {
        return PathBuf::from(path);
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/model");
    let output = Command::new(script).output().unwrap();
    assert!(output.status.success(), "scripts/model: {output:?}");
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim_end())
}

fn model() -> &'static SentenceModel {
    static MODEL: OnceLock<SentenceModel> = OnceLock::new();
    MODEL.get_or_init(|| SentenceModel::open(&folder()).unwrap())
}

/// Texts with their tokens and vectors, as the reference has them.
fn reference() -> Vec<(String, Vec<u32>, Embedding)> {
    let texts = include_str!("../../../testdata/embed/texts.json");
    let texts: Vec<(String, Vec<u32>)> = serde_json::from_str(texts).unwrap();
    let (numbers, _) = include_bytes!("../../../testdata/embed/vectors.i16").as_chunks();
    let numbers: Vec<f32> = numbers
        .iter()
        .map(|it| i16::from_le_bytes(*it).into())
        .collect();
    let vectors = numbers.chunks_exact(DIMENSIONS);
    let vectors = vectors.map(|it| Embedding::try_from(it).unwrap().map(|it| it / 32767.0));
    assert_eq!((texts.len(), vectors.len()), (200, 200));
    let both = texts.into_iter().zip(vectors);
    both.map(|((text, tokens), vector)| (text, tokens, vector))
        .collect()
}

fn cosine(a: &Embedding, b: &Embedding) -> f64 {
    let dot = |a: &Embedding, b: &Embedding| -> f64 {
        a.iter()
            .zip(b)
            .map(|(a, b)| f64::from(*a) * f64::from(*b))
            .sum()
    };
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

#[test]
fn a_text_has_the_tokens_of_the_reference() {
    for (text, tokens, _) in reference() {
        assert_eq!(model().wordpiece.tokens(&text), tokens, "{text:?}");
    }
}

#[test]
fn a_text_has_the_vector_of_the_reference() {
    let reference = reference();
    let texts: Vec<&str> = reference.iter().map(|(text, ..)| text.as_str()).collect();
    let vectors = model().embed_all(&texts, 2);
    for ((text, _, expected), vector) in reference.iter().zip(&vectors) {
        let cosine = cosine(vector, expected);
        assert!(cosine >= 0.99999, "{cosine} {text:?}");
        let length: f32 = vector.iter().map(|it| it * it).sum();
        assert!((length - 1.0).abs() < 1e-5, "{length} {text:?}");
    }
}

#[test]
fn any_processor_gives_the_same_vector() {
    let short = reference()
        .into_iter()
        .filter(|(_, tokens, _)| tokens.len() < 40);
    for (text, tokens, expected) in short.step_by(5) {
        for width in [4, 8, 16] {
            let cosine = cosine(&model().network.run_within(width, &tokens), &expected);
            assert!(cosine >= 0.99999, "{cosine} {width} {text:?}");
        }
    }
}

#[test]
fn threads_change_nothing() {
    let texts = ["one", "and another", "", "the third"];
    let one = model().embed_all(&texts, 1);
    assert_eq!(one, texts.map(|text| model().embed(text)));
    assert_eq!(one, model().embed_all(&texts, 9));
    assert!(model().embed_all(&[], 2).is_empty());
}

/// Makes a model of the right shape with all weights zero, changes it, and opens it.
fn opened(change: impl FnOnce(&mut Vec<u8>, &mut Vec<u8>)) -> Result<SentenceModel, String> {
    let dir = tempfile::tempdir().unwrap();
    let (weights, tokenizer) = (dir.path().join(WEIGHTS), dir.path().join(TOKENIZER));
    let mut vocabulary = std::fs::read(folder().join(TOKENIZER)).unwrap();
    let mut header = Vec::new();
    let file = std::fs::File::open(folder().join(WEIGHTS)).unwrap();
    let whole = file.metadata().unwrap().len();
    file.take(8 + 11408).read_to_end(&mut header).unwrap();
    let length = header.len();
    change(&mut header, &mut vocabulary);
    std::fs::write(&tokenizer, vocabulary).unwrap();
    std::fs::write(&weights, &header).unwrap();
    if header.len() == length {
        // The rest is a hole in the file, which reads as zeros.
        let file = std::fs::File::options().write(true).open(&weights).unwrap();
        file.set_len(whole).unwrap();
    }
    let folder = dir.path().display().to_string();
    SentenceModel::open(dir.path()).map_err(|error| error.to_string().replace(&folder, "DIR"))
}

/// Replaces the first `from` by `to`, which has the same length.
fn replace(bytes: &mut [u8], from: &str, to: &str) {
    assert_eq!(from.len(), to.len());
    let mut places = bytes.windows(from.len());
    let at = places.position(|it| it == from.as_bytes()).unwrap();
    bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
}

#[test]
fn a_model_of_zeros_gives_zeros() {
    let model = opened(|_, _| {}).unwrap();
    assert_eq!(model.embed("anything"), [0.0; DIMENSIONS]);
}

#[test]
fn what_is_not_the_model_is_named() {
    let noise: Vec<u8> = (0..100_000_u32)
        .map(|it| (it.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    type Change = Box<dyn FnOnce(&mut Vec<u8>, &mut Vec<u8>)>;
    let weights = |change: fn(&mut Vec<u8>)| -> Change { Box::new(move |it, _| change(it)) };
    let vocabulary = |change: fn(&mut Vec<u8>)| -> Change { Box::new(move |_, it| change(it)) };
    let noise_there = noise.clone();
    let cases: Vec<(Change, &str)> = vec![
        (
            weights(Vec::clear),
            "DIR/model.safetensors is damaged: it is cut off",
        ),
        (
            weights(|it| it.truncate(5000)),
            "DIR/model.safetensors is damaged: it is cut off",
        ),
        (
            weights(|it| it.push(0)),
            "DIR/model.safetensors is damaged: embeddings.position_embeddings.weight is cut off",
        ),
        (
            Box::new(move |it, _| *it = noise_there),
            "DIR/model.safetensors is damaged: it is not a safetensors file",
        ),
        (
            weights(|it| it[..8].fill(255)),
            "DIR/model.safetensors is damaged: it is not a safetensors file",
        ),
        (
            weights(|it| it[8] = b'x'),
            "DIR/model.safetensors is damaged: its header is not JSON",
        ),
        (
            weights(|it| replace(it, "[1536,384]", "[1536,385]")),
            "DIR/model.safetensors is damaged: encoder.layer.0.intermediate.dense.weight is missing or has another shape",
        ),
        (
            weights(|it| replace(it, "[796672,47678464]", "[1,1844674407370]")),
            "DIR/model.safetensors is damaged: embeddings.word_embeddings.weight is cut off",
        ),
        (
            Box::new(move |_, it| *it = noise),
            "DIR/tokenizer.json is damaged: it is not JSON",
        ),
        (
            vocabulary(|it| it.truncate(200_000)),
            "DIR/tokenizer.json is damaged: it is not JSON",
        ),
        (
            vocabulary(|it| *it = b"[]".to_vec()),
            "DIR/tokenizer.json is damaged: it has no vocabulary",
        ),
        (
            vocabulary(|it| replace(it, "\"[SEP]\":102", "\"[SEB]\":102")),
            "DIR/tokenizer.json is damaged: [SEP] has no id in the model's vocabulary",
        ),
        (
            vocabulary(|it| replace(it, "\"##ing\":2075", "\"##ing\":9e99")),
            "DIR/tokenizer.json is damaged: ##ing has no id in the model's vocabulary",
        ),
    ];
    for (change, expected) in cases {
        assert_eq!(opened(change).err().as_deref(), Some(expected));
    }
}

#[test]
fn a_weight_that_is_no_number_is_damage() {
    let dir = tempfile::tempdir().unwrap();
    for name in [WEIGHTS, TOKENIZER] {
        std::fs::copy(folder().join(name), dir.path().join(name)).unwrap();
    }
    let weights = dir.path().join(WEIGHTS);
    let file = std::fs::File::options().write(true).open(&weights).unwrap();
    file.write_all_at(&f32::NAN.to_le_bytes(), 60_000_000)
        .unwrap();
    let said = SentenceModel::open(dir.path()).err().unwrap().to_string();
    assert!(said.ends_with("has a value that is not a number"), "{said}");
}

#[test]
fn a_folder_without_the_model_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let error = SentenceModel::open(&dir.path().join("nowhere"))
        .err()
        .unwrap();
    assert!(matches!(error, ModelError::Missing(path) if path.ends_with("nowhere/tokenizer.json")));
    std::fs::copy(folder().join(TOKENIZER), dir.path().join(TOKENIZER)).unwrap();
    let error = SentenceModel::open(dir.path()).err().unwrap();
    assert!(matches!(error, ModelError::Missing(path) if path.ends_with(WEIGHTS)));
    std::fs::create_dir(dir.path().join(WEIGHTS)).unwrap();
    assert!(matches!(
        SentenceModel::open(dir.path()).err(),
        Some(ModelError::Io { .. })
    ));
}
