//! Embeds a text as a vector, so that texts can be compared by meaning: the model
//! all-MiniLM-L6-v2, in plain Rust.
//!
//! A text is split into tokens (`wordpiece`); six layers (`forward`) with the model's weights
//! (`weights`) turn the tokens into vectors, whose mean is the result. Two texts that mean the
//! same have vectors whose product is near one.
//!
//! This is a crate of its own so that it is optimised in development builds too: without
//! that its tests take minutes. Hooks do not use it.

mod weights;

mod wordpiece;

mod forward;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use forward::Network;
use weights::Weights;
use wordpiece::WordPiece;

/// How many numbers a vector has.
pub const DIMENSIONS: usize = 384;

/// The most tokens of a text; the rest is ignored, since the model was not trained on more.
pub const TOKENS_MAX: usize = 256;

/// The embedding of a text: a vector of length one, so that the product of two is their cosine.
pub type Embedding = [f32; DIMENSIONS];

/// The published file with the model's weights.
pub const WEIGHTS: &str = "model.safetensors";
/// The published file with the model's vocabulary.
pub const TOKENIZER: &str = "tokenizer.json";

#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    #[error("{} does not exist", .0.display())]
    Missing(PathBuf),
    #[error("{} is damaged: {what}", path.display())]
    Damaged { path: PathBuf, what: String },
    #[error("could not read {}: {error}", path.display())]
    Io {
        path: PathBuf,
        error: std::io::Error,
    },
}

/// The model in memory: about 50 MB.
pub struct SentenceModel {
    wordpiece: WordPiece,
    network: Network,
}

impl SentenceModel {
    pub fn open(folder: &Path) -> Result<SentenceModel, ModelError> {
        let wordpiece = WordPiece::open(&folder.join(TOKENIZER))?;
        let network = Network::read(&Weights::open(&folder.join(WEIGHTS))?)?;
        Ok(SentenceModel { wordpiece, network })
    }

    pub fn embed(&self, text: &str) -> Embedding {
        self.network.run(&self.wordpiece.tokens(text))
    }

    /// The embeddings in the order of the texts. Each thread takes the next text when it is done, so
    /// a long text does not delay the others.
    pub fn embed_all(&self, texts: &[&str], threads: usize) -> Vec<Embedding> {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut made = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(text) = texts.get(number) else {
                    return made;
                };
                made.push((number, self.embed(text)));
            }
        };
        let mut vectors = vec![[0.0; DIMENSIONS]; texts.len()];
        std::thread::scope(|scope| {
            let helpers = (1..threads.min(texts.len())).map(|_| scope.spawn(work));
            let helpers: Vec<_> = helpers.collect();
            let mut made = work();
            for helper in helpers {
                // Passes on the panic of a helper thread.
                made.extend(
                    helper
                        .join()
                        .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                );
            }
            for (number, vector) in made {
                vectors[number] = vector;
            }
        });
        vectors
    }
}

#[cfg(test)]
#[cfg(feature = "full-tests")]
mod tests;
