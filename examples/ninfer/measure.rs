//! How far decoded values are from their source. Sums are taken block by block in the order of the rows, so
//! they do not depend on the number of threads.

use ninfer_codec::format::binary16;
use ninfer_codec::{Format, Source};

/// What was measured on some rows of one object.
#[derive(Clone, Debug, Default)]
pub struct Measure {
    /// Sum of the squared errors.
    pub squared_error: f64,
    /// Sum of the squared source values.
    pub squared_signal: f64,
    /// The largest absolute error, and its row and column.
    pub largest: f64,
    pub largest_at: (u64, u64),
    /// Logical groups, or rows for a scale a row.
    pub groups: u64,
    /// Groups whose scale came out as zero and was raised to the least binary16.
    pub rescued: u64,
    /// Groups with a zero scale.
    pub all_zero: u64,
    /// How often each code was used, by rising code.
    pub histogram: Vec<u64>,
}

const LANES: usize = 8;

/// Sums of one row, element `i` in lane `i % LANES`.
#[derive(Default)]
struct Lanes {
    error: [f64; LANES],
    signal: [f64; LANES],
    largest: [f64; LANES],
}

impl Lanes {
    #[inline]
    fn add(&mut self, lane: usize, value: f64, decoded: f32) {
        let difference = value - f64::from(decoded);
        self.error[lane] += difference * difference;
        self.signal[lane] += value * value;
        // Neither is a NaN, so this is the plain maximum.
        let distance = difference.abs();
        self.largest[lane] = if distance > self.largest[lane] { distance } else { self.largest[lane] };
    }
}

/// How often each byte occurs. Equal bytes often follow one another, so neighbours count in tables of their own.
fn byte_counts(bytes: &[u8]) -> [u64; 256] {
    const TABLES: usize = 4;
    let mut tables = [[0u32; 256]; TABLES];
    let mut counts = [0u64; 256];
    // A table of 32-bit counts takes far more than a block.
    for piece in bytes.chunks(1 << 30) {
        for group in piece.chunks(TABLES) {
            for (table, &byte) in tables.iter_mut().zip(group) {
                table[usize::from(byte)] += 1;
            }
        }
        for table in &mut tables {
            counts
                .iter_mut()
                .zip(&mut *table)
                .for_each(|(total, count)| *total += u64::from(std::mem::take(count)));
        }
    }
    counts
}

impl Measure {
    /// Adds the measure of the rows that follow.
    pub fn append(&mut self, next: &Self) {
        self.squared_error += next.squared_error;
        self.squared_signal += next.squared_signal;
        if next.largest > self.largest {
            (self.largest, self.largest_at) = (next.largest, next.largest_at);
        }
        self.groups += next.groups;
        self.rescued += next.rescued;
        self.all_zero += next.all_zero;
        self.histogram.resize(self.histogram.len().max(next.histogram.len()), 0);
        for (count, next) in self.histogram.iter_mut().zip(&next.histogram) {
            *count += next;
        }
    }

    /// `sqrt(sum of squared errors / sum of squared values)`; zero where there is no error.
    pub fn relative_rmse(&self) -> f64 {
        if self.squared_error == 0.0 { 0.0 } else { (self.squared_error / self.squared_signal).sqrt() }
    }

    /// Signal-to-noise ratio in decibels, to four places, in which every machine's logarithm agrees; `None`
    /// where there is no noise or no signal.
    pub fn snr_db(&self) -> Option<f64> {
        let ratio = self.squared_signal / self.squared_error;
        (ratio.is_finite() && ratio > 0.0).then(|| (1e5 * ratio.log10()).round() / 1e4)
    }

    /// Compares rows with what they decode to; `first` is the row and column that they begin at.
    pub fn add_errors(&mut self, source: &Source<'_>, decoded: &[f32], columns: usize, first: (u64, u64)) {
        match source {
            Source::F32(values) => self.errors(values, decoded, columns, first, |&value| value.into()),
            Source::Bf16(values) => self.errors(values, decoded, columns, first, |value| value.to_f64()),
            Source::F16(values) => self.errors(values, decoded, columns, first, |value| value.to_f64()),
            Source::F64(values) => self.errors(values, decoded, columns, first, |&value| value),
        }
    }

    fn errors<T>(
        &mut self,
        values: &[T],
        decoded: &[f32],
        columns: usize,
        (first_row, first_column): (u64, u64),
        exact: impl Fn(&T) -> f64,
    ) {
        for ((row, values), decoded) in (first_row..).zip(values.chunks(columns)).zip(decoded.chunks(columns))
        {
            let mut lanes = Lanes::default();
            let (groups, tail) = values.as_chunks::<LANES>();
            let (decoded_groups, decoded_tail) = decoded.as_chunks::<LANES>();
            for (values, decoded) in groups.iter().zip(decoded_groups) {
                for lane in 0..LANES {
                    lanes.add(lane, exact(&values[lane]), decoded[lane]);
                }
            }
            for (lane, (value, &decoded)) in tail.iter().zip(decoded_tail).enumerate() {
                lanes.add(lane, exact(value), decoded);
            }
            self.squared_error += lanes.error.iter().sum::<f64>();
            self.squared_signal += lanes.signal.iter().sum::<f64>();
            let largest = lanes.largest.into_iter().fold(0.0, f64::max);
            if largest > self.largest {
                let is_largest =
                    |(value, &decoded): (&T, &f32)| (exact(value) - f64::from(decoded)).abs() == largest;
                let column = values.iter().zip(decoded).position(is_largest).unwrap_or(0);
                (self.largest, self.largest_at) = (largest, (row, first_column + column as u64));
            }
        }
    }

    /// Counts groups by their binary16 scales; `amax` gives the largest magnitude of a group by its index.
    pub fn add_scales(&mut self, format: Format, scales: &[u16], amax: impl Fn(usize) -> f32) {
        let qmax = format.descriptor().qmax.unwrap_or(1) as f32;
        self.groups += scales.len() as u64;
        for (group, &scale) in scales.iter().enumerate() {
            self.all_zero += u64::from(scale == 0);
            let rescued = scale == binary16::MIN_POSITIVE
                && binary16::from_f32_bits((amax(group) / qmax).to_bits()) == 0;
            self.rescued += u64::from(rescued);
        }
    }

    /// Counts signed codes of `bits` bits.
    pub fn add_signed_codes(&mut self, codes: &[i8], bits: u32) {
        let least = -(1i32 << (bits - 1));
        let counts = byte_counts(bytemuck::cast_slice(codes));
        self.add_counts((least..-least).map(|code| counts[code as i8 as u8 as usize]));
    }

    /// Counts the words of E2M1 pairs.
    pub fn add_pairs(&mut self, codes: &[u8]) {
        let counts = byte_counts(codes);
        let mut words = [0u64; 16];
        for (pair, count) in counts.into_iter().enumerate() {
            words[pair % 16] += count;
            words[pair / 16] += count;
        }
        self.add_counts(words.into_iter());
    }

    /// Counts 8-bit words.
    pub fn add_bytes(&mut self, codes: &[u8]) {
        self.add_counts(byte_counts(codes).into_iter());
    }

    fn add_counts(&mut self, counts: impl ExactSizeIterator<Item = u64>) {
        self.histogram.resize(counts.len(), 0);
        for (total, count) in self.histogram.iter_mut().zip(counts) {
            *total += count;
        }
    }
}
