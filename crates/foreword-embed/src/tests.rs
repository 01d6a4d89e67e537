//! Against the reference (testdata/embed), and against files that are not the model.

use std::process::Command;
use std::sync::OnceLock;

use super::*;

/// The model's folder. Without it these tests prove nothing, so they fail.
fn folder() -> PathBuf {
    if let Some(path) = std::env::var_os("FOREWORD_TEST_MODEL") {
        return PathBuf::from(path);
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/model");
    let output = Command::new(script).output().unwrap();
    assert!(output.status.success(), "scripts/model: {output:?}");
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim_end())
}

fn model() -> &'static Model {
    static MODEL: OnceLock<Model> = OnceLock::new();
    MODEL.get_or_init(|| Model::open(&folder()).unwrap())
}

/// Texts with their tokens and vectors, as the reference has them.
fn reference() -> Vec<(String, Vec<u32>, Vector)> {
    let texts = include_str!("../../../testdata/embed/texts.json");
    let texts: Vec<(String, Vec<u32>)> = serde_json::from_str(texts).unwrap();
    let (numbers, _) = include_bytes!("../../../testdata/embed/vectors.i16").as_chunks();
    let numbers: Vec<f32> = numbers
        .iter()
        .map(|it| i16::from_le_bytes(*it).into())
        .collect();
    let vectors = numbers.chunks_exact(DIMENSIONS);
    let vectors = vectors.map(|it| Vector::try_from(it).unwrap().map(|it| it / 32767.0));
    assert_eq!((texts.len(), vectors.len()), (200, 200));
    let both = texts.into_iter().zip(vectors);
    both.map(|((text, tokens), vector)| (text, tokens, vector))
        .collect()
}

fn cosine(a: &Vector, b: &Vector) -> f64 {
    let dot = |a: &Vector, b: &Vector| -> f64 {
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
        let cosine = cosine(&model().network.run_plain(&tokens), &expected);
        assert!(cosine >= 0.99999, "{cosine} {text:?}");
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
