//! The network between tokens and embedding: six layers of BERT, as it was published.
//!
//! Nearly all of the time goes into matrix products, which all go through `multiply`. Weights are
//! packed for it once: the weights of sixteen outputs lie side by side, so that a processor with
//! wide registers handles them together. The code is plain Rust, compiled three times: for
//! processors with AVX-512, for those with AVX2 and FMA, and for any.

use crate::weights::Weights;
use crate::wordpiece::VOCABULARY;
use crate::{DIMENSIONS, Embedding, ModelError};

const LAYERS: usize = 6;
const HEADS: usize = 12;
/// How many numbers of a token one attention head uses.
const HEAD: usize = DIMENSIONS / HEADS;
const INNER: usize = 4 * DIMENSIONS;
const POSITIONS: usize = 512;
const EPSILON: f32 = 1e-12;

/// How many outputs are computed together.
const LANES: usize = 16;
type Lanes = [f32; LANES];

pub struct Network {
    token_embeddings: TokenEmbeddings,
    positions: Vec<f32>,
    norm: Norm,
    layers: Vec<Layer>,
}

struct Layer {
    /// Queries, keys and values, beside each other.
    projections: Dense,
    attended: Dense,
    attended_norm: Norm,
    wide: Dense,
    narrow: Dense,
    norm: Norm,
}

/// `x · weightsᵀ + bias`. The weights are packed as `pack` does it.
struct Dense {
    weights: Vec<[i16; LANES]>,
    /// The value of one step of the weights, by output.
    steps: Vec<f32>,
    bias: Vec<f32>,
    inputs: usize,
}

struct Norm {
    weight: Vec<f32>,
    bias: Vec<f32>,
}

/// The vector of each token, before the first layer; half of the model's file.
struct TokenEmbeddings {
    numbers: Vec<i16>,
    /// The value of one step of the numbers, by token.
    steps: Vec<f32>,
}

impl Network {
    pub fn read(weights: &Weights) -> Result<Network, ModelError> {
        let table = |name: &str, rows| {
            let name = format!("embeddings.{name}_embeddings.weight");
            weights.tensor(&name, &[rows, DIMENSIONS])
        };
        let mut positions = table("position", POSITIONS)?;
        // A text is never the second of a pair, so the vector of the first kind is added to each
        // position once.
        let kinds = table("token_type", 2)?;
        for position in positions.chunks_exact_mut(DIMENSIONS) {
            add(position, &kinds[..DIMENSIONS]);
        }
        let layers = (0..LAYERS).map(|number| Layer::read(weights, number));
        Ok(Network {
            token_embeddings: TokenEmbeddings::read(weights)?,
            positions,
            norm: Norm::read(weights, "embeddings")?,
            layers: layers.collect::<Result<_, _>>()?,
        })
    }

    /// The embedding of at most `TOKENS_MAX` tokens of the vocabulary.
    pub fn run(&self, tokens: &[u32]) -> Embedding {
        self.run_within(16, tokens)
    }

    /// `run` with registers of at most `width` numbers.
    pub fn run_within(&self, width: usize, tokens: &[u32]) -> Embedding {
        let run = compiled(width);
        #[expect(unsafe_code, reason = "the one call that needs a certain processor")]
        // SAFETY: `compiled` checks that the processor has the features that this function needs.
        unsafe {
            run(self, tokens)
        }
    }
}

/// The version of `run` that was compiled for this processor.
#[cfg_attr(
    not(target_arch = "x86_64"),
    expect(unused_variables, reason = "there it is compiled once")
)]
fn compiled(width: usize) -> unsafe fn(&Network, &[u32]) -> Embedding {
    #[cfg(target_arch = "x86_64")]
    if width >= 16 && is_x86_feature_detected!("avx512f") {
        return run_512;
    } else if width >= 8 && is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        return run_256;
    }
    run::<4>
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn run_512(network: &Network, tokens: &[u32]) -> Embedding {
    run::<16>(network, tokens)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn run_256(network: &Network, tokens: &[u32]) -> Embedding {
    run::<8>(network, tokens)
}

// Everything below is inlined into one of the functions above, and so compiled for its processor.
// `WIDTH` is how many numbers a register holds.

#[inline(always)]
fn run<const WIDTH: usize>(network: &Network, tokens: &[u32]) -> Embedding {
    let mut x = vec![0.0; tokens.len() * DIMENSIONS];
    let rows = x.chunks_exact_mut(DIMENSIONS).zip(tokens);
    for ((row, &token), position) in rows.zip(network.positions.chunks_exact(DIMENSIONS)) {
        network.token_embeddings.unpack(token as usize, row);
        add(row, position);
    }
    network.norm.apply(&mut x);
    for layer in &network.layers {
        layer.apply::<WIDTH>(&mut x, tokens.len());
    }
    // The mean over all tokens, as the sum scaled to length one.
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
        let dense = |parts: &[&str], outputs, inputs| {
            let names: Vec<String> = parts.iter().map(|part| name(part)).collect();
            Dense::read(weights, &names, outputs, inputs)
        };
        let projections = ["query", "key", "value"].map(|part| format!("attention.self.{part}"));
        Ok(Layer {
            projections: dense(
                &projections.each_ref().map(String::as_str),
                DIMENSIONS,
                DIMENSIONS,
            )?,
            attended: dense(&["attention.output.dense"], DIMENSIONS, DIMENSIONS)?,
            attended_norm: Norm::read(weights, &name("attention.output"))?,
            wide: dense(&["intermediate.dense"], INNER, DIMENSIONS)?,
            narrow: dense(&["output.dense"], DIMENSIONS, INNER)?,
            norm: Norm::read(weights, &name("output"))?,
        })
    }

    #[inline(always)]
    fn apply<const WIDTH: usize>(&self, x: &mut [f32], tokens: usize) {
        let attended = self.attend::<WIDTH>(x, tokens);
        add(x, &self.attended.apply::<WIDTH>(&attended, tokens));
        self.attended_norm.apply(x);
        let mut inner = self.wide.apply::<WIDTH>(x, tokens);
        for number in &mut inner {
            *number = gelu(*number);
        }
        add(x, &self.narrow.apply::<WIDTH>(&inner, tokens));
        self.norm.apply(x);
    }

    /// Self-attention: each head by itself, on its part of every row.
    #[inline(always)]
    fn attend<const WIDTH: usize>(&self, x: &[f32], tokens: usize) -> Vec<f32> {
        const ROW: usize = 3 * DIMENSIONS;
        let projected = self.projections.apply::<WIDTH>(x, tokens);
        let mut attended = vec![0.0; tokens * DIMENSIONS];
        let width = tokens.next_multiple_of(LANES);
        let mut shares = vec![0.0; tokens * width];
        for head in (0..DIMENSIONS).step_by(HEAD) {
            let (queries, keys) = (&projected[head..], &projected[DIMENSIONS + head..]);
            let values = &projected[2 * DIMENSIONS + head..];
            let packed = pack(tokens, HEAD, |token, at| keys[token * ROW + at]);
            let to = (shares.as_mut_slice(), width);
            multiply::<WIDTH, f32>((queries, ROW), &packed, HEAD, to, tokens);
            for row in shares.chunks_exact_mut(width) {
                soften(&mut row[..tokens]);
            }
            let packed = pack(HEAD, tokens, |at, token| values[token * ROW + at]);
            let to = (&mut attended[head..], DIMENSIONS);
            multiply::<WIDTH, f32>((&shares, width), &packed, tokens, to, tokens);
        }
        attended
    }
}

impl Dense {
    /// Reads tensors of the same shape as one, their outputs beside each other.
    fn read(
        weights: &Weights,
        names: &[String],
        outputs: usize,
        inputs: usize,
    ) -> Result<Dense, ModelError> {
        let mut dense = Dense {
            weights: vec![[0; LANES]; names.len() * outputs / LANES * inputs],
            steps: Vec::new(),
            bias: Vec::new(),
            inputs,
        };
        for name in names {
            let Dense {
                weights: packed,
                steps,
                ..
            } = &mut dense;
            weights.rows(&format!("{name}.weight"), &[outputs, inputs], |_, row| {
                let output = steps.len();
                let (step, numbers) = narrow(row);
                let panel = &mut packed[output / LANES * inputs..][..inputs];
                for (weights, number) in panel.iter_mut().zip(numbers) {
                    weights[output % LANES] = number;
                }
                steps.push(step);
            })?;
            let bias = weights.tensor(&format!("{name}.bias"), &[outputs])?;
            dense.bias.extend(bias);
        }
        Ok(dense)
    }

    #[inline(always)]
    fn apply<const WIDTH: usize>(&self, x: &[f32], tokens: usize) -> Vec<f32> {
        let outputs = self.bias.len();
        let mut y = vec![0.0; tokens * outputs];
        let to = (y.as_mut_slice(), outputs);
        multiply::<WIDTH, i16>((x, self.inputs), &self.weights, self.inputs, to, tokens);
        for row in y.chunks_exact_mut(outputs) {
            for ((number, step), bias) in row.iter_mut().zip(&self.steps).zip(&self.bias) {
                *number = *number * step + bias;
            }
        }
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

impl TokenEmbeddings {
    fn read(weights: &Weights) -> Result<TokenEmbeddings, ModelError> {
        let mut table = TokenEmbeddings {
            numbers: Vec::with_capacity(VOCABULARY * DIMENSIONS),
            steps: Vec::with_capacity(VOCABULARY),
        };
        let name = "embeddings.word_embeddings.weight";
        weights.rows(name, &[VOCABULARY, DIMENSIONS], |_, row| {
            let (step, numbers) = narrow(row);
            table.numbers.extend(numbers);
            table.steps.push(step);
        })?;
        Ok(table)
    }

    #[inline(always)]
    fn unpack(&self, token: usize, row: &mut [f32]) {
        let numbers = &self.numbers[token * DIMENSIONS..][..DIMENSIONS];
        for (number, packed) in row.iter_mut().zip(numbers) {
            *number = f32::from(*packed) * self.steps[token];
        }
    }
}

/// A row as 16-bit numbers, and the value of one step. That halves the memory, and the reads from it
/// for each text; embeddings change by less than by the rounding of another processor.
fn narrow(row: &[f32]) -> (f32, impl Iterator<Item = i16>) {
    let most = row
        .iter()
        .fold(f32::MIN_POSITIVE, |most, it| most.max(it.abs()));
    let step = most / f32::from(i16::MAX);
    (
        step,
        row.iter()
            .map(move |it| (it / step + 0.5_f32.copysign(*it)) as i16),
    )
}

/// Packs weights for `multiply`: for each group of sixteen outputs, and in it for each input, sixteen
/// weights.
#[inline(always)]
fn pack(outputs: usize, inputs: usize, weight: impl Fn(usize, usize) -> f32) -> Vec<Lanes> {
    let mut packed = vec![[0.0; LANES]; outputs.div_ceil(LANES) * inputs];
    for output in 0..outputs {
        let panel = &mut packed[output / LANES * inputs..][..inputs];
        for (input, weights) in panel.iter_mut().enumerate() {
            weights[output % LANES] = weight(output, input);
        }
    }
    packed
}

/// Multiplies `count` rows by packed weights. Rows are given as numbers and the distance between the
/// beginnings of two rows.
#[inline(always)]
fn multiply<const WIDTH: usize, W: Copy>(
    (numbers, stride): (&[f32], usize),
    packed: &[[W; LANES]],
    inputs: usize,
    (out, out_stride): (&mut [f32], usize),
    count: usize,
) where
    f32: From<W>,
{
    let mut row = 0;
    while row < count {
        let from = (&numbers[row * stride..], stride);
        let to = (&mut out[row * out_stride..], out_stride);
        // As many rows at a time as have sums that fit into the registers.
        row += match (WIDTH, count - row) {
            (8.., 6..) => block::<WIDTH, 6, W>(from, packed, inputs, to),
            (_, 4..) => block::<WIDTH, 4, W>(from, packed, inputs, to),
            (_, 2..) => block::<WIDTH, 2, W>(from, packed, inputs, to),
            _ => block::<WIDTH, 1, W>(from, packed, inputs, to),
        };
    }
}

/// Multiplies `COUNT` rows, and returns that number.
#[inline(always)]
fn block<const WIDTH: usize, const COUNT: usize, W: Copy>(
    (numbers, stride): (&[f32], usize),
    packed: &[[W; LANES]],
    inputs: usize,
    (out, out_stride): (&mut [f32], usize),
) -> usize
where
    f32: From<W>,
{
    // The rows side by side, so that they are read through one pointer instead of one each.
    let mut columns = vec![[0.0; COUNT]; inputs];
    for (row, numbers) in numbers.chunks(stride).take(COUNT).enumerate() {
        for (column, number) in columns.iter_mut().zip(numbers) {
            column[row] = *number;
        }
    }
    for (panel, weights) in packed.chunks_exact(inputs).enumerate() {
        let mut sums = [[0.0; LANES]; COUNT];
        for (weights, column) in weights.iter().zip(&columns) {
            // Copied and by value, and no more than six rows: otherwise the compiler leaves the
            // sums in memory, which takes thirty times as long.
            let (weights, column) = (weights.map(f32::from), *column);
            for (number, sums) in column.into_iter().zip(&mut sums) {
                for (sum, weight) in sums.iter_mut().zip(&weights) {
                    // Without the instruction, `mul_add` is a slow function.
                    *sum = if WIDTH > 4 {
                        number.mul_add(*weight, *sum)
                    } else {
                        number * weight + *sum
                    };
                }
            }
        }
        for (row, sums) in sums.iter().enumerate() {
            out[row * out_stride + panel * LANES..][..LANES].copy_from_slice(sums);
        }
    }
    COUNT
}

#[inline(always)]
fn add(to: &mut [f32], other: &[f32]) {
    for (to, other) in to.iter_mut().zip(other) {
        *to += other;
    }
}

/// Adds into eight sums side by side. A compiler may not do so by itself, since it changes the order
/// of additions.
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

/// Softmax: turns products with keys into shares that add up to one.
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

/// GELU by the error function, in the approximation of Abramowitz and Stegun 7.1.26 (off by at most
/// 1.5e-7), whose operations a processor does on many numbers at a time.
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

/// The exponential function for numbers not above zero. The whole part of the power of two goes into
/// the bits of the exponent, the rest into a series.
#[inline(always)]
fn exp(x: f32) -> f32 {
    // Adding this rounds to a whole number, which is then in the lowest bits.
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
