//! The six layers between tokens and vector: BERT, as it was published.
//!
//! Nearly all of the time goes into products of matrices, and all of those go through
//! `multiply`. Weights are packed for it once: sixteen outputs lie side by side, so
//! that a processor with wide registers takes them at a time. The code is plain Rust,
//! compiled twice: for processors with AVX2 and FMA, and for any.

use std::array;

use crate::weights::Weights;
use crate::{DIMENSIONS, ModelError, Vector};

pub const VOCABULARY: usize = 30_522;
const LAYERS: usize = 6;
const HEADS: usize = 12;
/// What one head sees of a token.
const HEAD: usize = DIMENSIONS / HEADS;
const INNER: usize = 4 * DIMENSIONS;
const POSITIONS: usize = 512;
const EPSILON: f32 = 1e-12;

/// So many outputs are worked on together, for so many tokens: twelve registers of AVX2 hold the
/// sums, and four are left for the rest.
const LANES: usize = 16;
const ROWS: usize = 6;
type Lanes = [f32; LANES];

pub struct Network {
    words: Words,
    positions: Vec<f32>,
    norm: Norm,
    layers: Vec<Layer>,
}

struct Layer {
    query: Dense,
    key: Dense,
    value: Dense,
    attended: Dense,
    attended_norm: Norm,
    wide: Dense,
    narrow: Dense,
    norm: Norm,
}

/// `x · weightsᵀ + bias`. For each sixteen outputs, and in those for each input, sixteen weights.
struct Dense {
    weights: Vec<Lanes>,
    bias: Vec<f32>,
    inputs: usize,
}

struct Norm {
    weight: Vec<f32>,
    bias: Vec<f32>,
}

/// The table of words is half of the file. In 16 bits it takes half of that, and the vectors
/// differ by less than what other processors' rounding does.
struct Words {
    numbers: Vec<i16>,
    /// By word, what one step is.
    steps: Vec<f32>,
}

impl Network {
    pub fn read(weights: &Weights) -> Result<Network, ModelError> {
        let table = |name: &str, rows| {
            let name = format!("embeddings.{name}_embeddings.weight");
            weights.tensor(&name, &[rows, DIMENSIONS])
        };
        let mut positions = table("position", POSITIONS)?;
        // A text is never the second of a pair, so its kind is a part of each position.
        let kinds = table("token_type", 2)?;
        for position in positions.chunks_exact_mut(DIMENSIONS) {
            add(position, &kinds[..DIMENSIONS]);
        }
        let layers = (0..LAYERS).map(|number| Layer::read(weights, number));
        Ok(Network {
            words: Words::read(weights)?,
            positions,
            norm: Norm::read(weights, "embeddings")?,
            layers: layers.collect::<Result<_, _>>()?,
        })
    }

    /// At most `TOKENS_MAX` tokens of the vocabulary.
    pub fn run(&self, tokens: &[u32]) -> Vector {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            #[expect(unsafe_code, reason = "the one call that needs a certain processor")]
            // SAFETY: the processor was just asked whether it has both.
            return unsafe { run_wide(self, tokens) };
        }
        self.run_plain(tokens)
    }

    pub fn run_plain(&self, tokens: &[u32]) -> Vector {
        run::<false>(self, tokens)
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn run_wide(network: &Network, tokens: &[u32]) -> Vector {
    run::<true>(network, tokens)
}

// Everything below is inlined into one of the two functions above, and so compiled for it.

#[inline(always)]
fn run<const FUSED: bool>(network: &Network, tokens: &[u32]) -> Vector {
    let mut x = vec![0.0; tokens.len() * DIMENSIONS];
    let rows = x.chunks_exact_mut(DIMENSIONS).zip(tokens);
    for ((row, &token), position) in rows.zip(network.positions.chunks_exact(DIMENSIONS)) {
        network.words.unpack(token as usize, row);
        add(row, position);
    }
    network.norm.apply(&mut x);
    for layer in &network.layers {
        layer.apply::<FUSED>(&mut x, tokens.len());
    }
    // The mean over all tokens, of length one: how long it was before does not matter.
    let mut vector = [0.0; DIMENSIONS];
    for row in x.chunks_exact(DIMENSIONS) {
        add(&mut vector, row);
    }
    let length = sum(&vector, |number| number * number).sqrt();
    vector.map(|number| number / length.max(f32::MIN_POSITIVE))
}

impl Layer {
    fn read(weights: &Weights, number: usize) -> Result<Layer, ModelError> {
        let name = |part: &str| format!("encoder.layer.{number}.{part}");
        let dense =
            |part: &str, outputs, inputs| Dense::read(weights, &name(part), outputs, inputs);
        let square = |part: &str| dense(part, DIMENSIONS, DIMENSIONS);
        Ok(Layer {
            query: square("attention.self.query")?,
            key: square("attention.self.key")?,
            value: square("attention.self.value")?,
            attended: square("attention.output.dense")?,
            attended_norm: Norm::read(weights, &name("attention.output"))?,
            wide: dense("intermediate.dense", INNER, DIMENSIONS)?,
            narrow: dense("output.dense", DIMENSIONS, INNER)?,
            norm: Norm::read(weights, &name("output"))?,
        })
    }

    #[inline(always)]
    fn apply<const FUSED: bool>(&self, x: &mut [f32], tokens: usize) {
        let seen = self.attend::<FUSED>(x, tokens);
        add(x, &self.attended.apply::<FUSED>(&seen, tokens));
        self.attended_norm.apply(x);
        let mut inner = self.wide.apply::<FUSED>(x, tokens);
        for number in &mut inner {
            *number = gelu(*number);
        }
        add(x, &self.narrow.apply::<FUSED>(&inner, tokens));
        self.norm.apply(x);
    }

    /// What each token sees in the others: each head by itself, its part of every row.
    #[inline(always)]
    fn attend<const FUSED: bool>(&self, x: &[f32], tokens: usize) -> Vec<f32> {
        let queries = self.query.apply::<FUSED>(x, tokens);
        let keys = self.key.apply::<FUSED>(x, tokens);
        let values = self.value.apply::<FUSED>(x, tokens);
        let mut seen = vec![0.0; tokens * DIMENSIONS];
        let width = tokens.next_multiple_of(LANES);
        let mut shares = vec![0.0; tokens * width];
        for head in (0..DIMENSIONS).step_by(HEAD) {
            let key = |token: usize, at: usize| match token < tokens {
                true => keys[token * DIMENSIONS + head + at],
                false => 0.0,
            };
            let packed = pack(width, HEAD, key);
            let rows = (&queries[head..], DIMENSIONS, tokens);
            multiply::<FUSED>(rows, &packed, HEAD, |row, lane, sums| {
                shares[row * width + lane..][..LANES].copy_from_slice(&sums);
            });
            for row in shares.chunks_exact_mut(width) {
                soften(&mut row[..tokens]);
            }
            let value = |at: usize, token: usize| values[token * DIMENSIONS + head + at];
            let packed = pack(HEAD, tokens, value);
            multiply::<FUSED>(
                (&shares, width, tokens),
                &packed,
                tokens,
                |row, lane, sums| {
                    seen[row * DIMENSIONS + head + lane..][..LANES].copy_from_slice(&sums);
                },
            );
        }
        seen
    }
}

impl Dense {
    fn read(
        weights: &Weights,
        name: &str,
        outputs: usize,
        inputs: usize,
    ) -> Result<Dense, ModelError> {
        let mut packed = vec![[0.0; LANES]; outputs / LANES * inputs];
        weights.rows(
            &format!("{name}.weight"),
            &[outputs, inputs],
            |output, row| {
                let panel = &mut packed[output / LANES * inputs..][..inputs];
                for (weights, number) in panel.iter_mut().zip(row) {
                    weights[output % LANES] = *number;
                }
            },
        )?;
        Ok(Dense {
            weights: packed,
            bias: weights.tensor(&format!("{name}.bias"), &[outputs])?,
            inputs,
        })
    }

    #[inline(always)]
    fn apply<const FUSED: bool>(&self, x: &[f32], tokens: usize) -> Vec<f32> {
        let outputs = self.bias.len();
        let mut y = vec![0.0; tokens * outputs];
        let rows = (x, self.inputs, tokens);
        multiply::<FUSED>(rows, &self.weights, self.inputs, |row, lane, sums| {
            let y = &mut y[row * outputs + lane..][..LANES];
            y.copy_from_slice(&sums);
            add(y, &self.bias[lane..lane + LANES]);
        });
        y
    }
}

impl Norm {
    fn read(weights: &Weights, name: &str) -> Result<Norm, ModelError> {
        let tensor = |part| weights.tensor(&format!("{name}.LayerNorm.{part}"), &[DIMENSIONS]);
        Ok(Norm {
            weight: tensor("weight")?,
            bias: tensor("bias")?,
        })
    }

    #[inline(always)]
    fn apply(&self, x: &mut [f32]) {
        for row in x.chunks_exact_mut(DIMENSIONS) {
            let mean = sum(row, |number| number) / DIMENSIONS as f32;
            let variance = sum(row, |number| (number - mean) * (number - mean)) / DIMENSIONS as f32;
            let scale = 1.0 / (variance + EPSILON).sqrt();
            for ((number, weight), bias) in row.iter_mut().zip(&self.weight).zip(&self.bias) {
                *number = (*number - mean) * scale * weight + bias;
            }
        }
    }
}

impl Words {
    fn read(weights: &Weights) -> Result<Words, ModelError> {
        let mut words = Words {
            numbers: Vec::with_capacity(VOCABULARY * DIMENSIONS),
            steps: Vec::with_capacity(VOCABULARY),
        };
        let name = "embeddings.word_embeddings.weight";
        weights.rows(name, &[VOCABULARY, DIMENSIONS], |_, row| {
            let most = row
                .iter()
                .fold(f32::MIN_POSITIVE, |most, it| most.max(it.abs()));
            let step = most / f32::from(i16::MAX);
            let packed = row
                .iter()
                .map(|it| (it / step + 0.5_f32.copysign(*it)) as i16);
            words.numbers.extend(packed);
            words.steps.push(step);
        })?;
        Ok(words)
    }

    #[inline(always)]
    fn unpack(&self, word: usize, row: &mut [f32]) {
        let numbers = &self.numbers[word * DIMENSIONS..][..DIMENSIONS];
        for (number, packed) in row.iter_mut().zip(numbers) {
            *number = f32::from(*packed) * self.steps[word];
        }
    }
}

/// As `multiply` wants it: for each sixteen outputs, and in those for each input, sixteen weights.
#[inline(always)]
fn pack(outputs: usize, inputs: usize, weight: impl Fn(usize, usize) -> f32) -> Vec<Lanes> {
    let mut packed = Vec::with_capacity(outputs / LANES * inputs);
    for lane in (0..outputs).step_by(LANES) {
        packed.extend((0..inputs).map(|input| array::from_fn(|at| weight(lane + at, input))));
    }
    packed
}

/// The product of some rows with packed weights; `put` takes sixteen outputs of a row at a time.
/// Rows are numbers, how far one row begins after the other, and how many there are.
#[inline(always)]
fn multiply<const FUSED: bool>(
    (numbers, stride, count): (&[f32], usize, usize),
    packed: &[Lanes],
    inputs: usize,
    mut put: impl FnMut(usize, usize, Lanes),
) {
    for (panel, weights) in packed.chunks_exact(inputs).enumerate() {
        let mut row = 0;
        while row < count {
            let numbers = &numbers[row * stride..];
            let mut put = |at: usize, sums| put(row + at, panel * LANES, sums);
            match count - row {
                1 => block::<FUSED, 1>(numbers, stride, weights, &mut put),
                2 => block::<FUSED, 2>(numbers, stride, weights, &mut put),
                3 => block::<FUSED, 3>(numbers, stride, weights, &mut put),
                4 => block::<FUSED, 4>(numbers, stride, weights, &mut put),
                5 => block::<FUSED, 5>(numbers, stride, weights, &mut put),
                _ => block::<FUSED, ROWS>(numbers, stride, weights, &mut put),
            }
            row += ROWS;
        }
    }
}

/// A few rows against sixteen outputs, with all sums in registers.
#[inline(always)]
fn block<const FUSED: bool, const COUNT: usize>(
    numbers: &[f32],
    stride: usize,
    weights: &[Lanes],
    put: &mut impl FnMut(usize, Lanes),
) {
    let rows: [&[f32]; COUNT] = array::from_fn(|row| &numbers[row * stride..][..weights.len()]);
    let mut sums = [[0.0; LANES]; COUNT];
    // Copied, or each row loads them again, which takes half as long once more.
    for (at, weights) in weights.iter().copied().enumerate() {
        for (row, sums) in rows.iter().zip(&mut sums) {
            let number = row[at];
            for (sum, weight) in sums.iter_mut().zip(&weights) {
                // Without the instruction, `mul_add` is a slow function.
                *sum = match FUSED {
                    true => number.mul_add(*weight, *sum),
                    false => number * weight + *sum,
                };
            }
        }
    }
    for (row, sums) in sums.into_iter().enumerate() {
        put(row, sums);
    }
}

#[inline(always)]
fn add(to: &mut [f32], other: &[f32]) {
    for (to, other) in to.iter_mut().zip(other) {
        *to += other;
    }
}

/// In eight sums beside each other: the order of additions is what keeps a compiler from that.
#[inline(always)]
fn sum(numbers: &[f32], part: impl Fn(f32) -> f32) -> f32 {
    let mut sums = [0.0; 8];
    let (chunks, rest) = numbers.as_chunks::<8>();
    for chunk in chunks {
        for (sum, number) in sums.iter_mut().zip(chunk) {
            *sum += part(*number);
        }
    }
    sums.iter().sum::<f32>() + rest.iter().map(|number| part(*number)).sum::<f32>()
}

/// Products with keys become shares that add up to one.
#[inline(always)]
fn soften(row: &mut [f32]) {
    let scale = 1.0 / (HEAD as f32).sqrt();
    let most = row.iter().fold(f32::MIN, |most, number| most.max(*number));
    for number in &mut *row {
        *number = exp((*number - most) * scale);
    }
    let whole = 1.0 / sum(row, |number| number);
    for number in row {
        *number *= whole;
    }
}

/// By the error function, in the approximation of Abramowitz and Stegun 7.1.26 (off by at most
/// 1.5e-7), which is made of what a processor does with many numbers at a time.
#[inline(always)]
fn gelu(x: f32) -> f32 {
    let z = x.abs() * std::f32::consts::FRAC_1_SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * z);
    let series = ((((1.061_405_4 * t - 1.453_152) * t + 1.421_413_7) * t - 0.284_496_74) * t
        + 0.254_829_6)
        * t;
    let erf = 1.0 - series * exp(-z * z);
    0.5 * x * (1.0 + erf.copysign(x))
}

/// For what is not above zero. The whole part of the power of two goes into the exponent's bits, the rest
/// into a series.
#[inline(always)]
fn exp(x: f32) -> f32 {
    // Adding it rounds to a whole number, which then stands in the lowest bits.
    const ROUNDS: f32 = 12_582_912.0;
    let x = x.max(-87.0);
    let rounded = x * std::f32::consts::LOG2_E + ROUNDS;
    let whole = rounded - ROUNDS;
    // The logarithm of two in two parts, since one is not exact enough.
    let rest = x - whole * 0.693_359_4 + whole * 2.121_944_4e-4;
    let series = ((((1.0 / 720.0 * rest + 1.0 / 120.0) * rest + 1.0 / 24.0) * rest + 1.0 / 6.0)
        * rest
        + 0.5)
        * rest
        * rest
        + rest
        + 1.0;
    series * f32::from_bits((rounded.to_bits() << 23).wrapping_add(1.0_f32.to_bits()))
}
