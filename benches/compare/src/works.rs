//! The list of works, and how each is set up.

use ninfer_codec::format::Category;
use ninfer_codec::{Format, Plan, Tensor, TensorMut};

use crate::memory::{Buffers, Pages};
use crate::trial::{Contender, Effort, Place, Role, SLOW_PARTS, Trial, Work, ours};
use crate::{data, limits, peers};

/// Columns of the main works.
const COLUMNS: u64 = 4096;
/// A row of an NVFP4 payload comes with 127 others.
const TILE_ROWS: u64 = 128;
/// Where an ordinary allocation of many bytes begins, past a page's start.
const ALLOCATION_OFFSET: usize = 16;

/// A work that is not set up yet.
#[derive(Clone, Debug)]
pub struct Job {
    pub work: Work,
    plan: Plan,
    /// Rows worked on; L2 takes the first of an NVFP4 payload only.
    rows: u64,
    /// Where values begin in their buffer.
    offset: usize,
}

/// Lists every work of one thread at one page size.
pub fn jobs(pages: Pages, effort: &Effort) -> Vec<Job> {
    let mut jobs = Vec::new();
    let mut add = |operation, format, values, place, columns, offset| {
        jobs.push(Job::new(operation, format, values, place, pages, columns, offset, effort));
    };
    let quantized = || Format::ALL.into_iter().filter(|format| !is_direct(*format));
    let grouped = || Format::ALL.into_iter().filter(|format| format.scheme().is_some());
    for place in [Place::L2, Place::Memory] {
        for values in ["f32", "bf16", "f16"] {
            quantized().for_each(|format| add("decode", format, values, place, COLUMNS, 0));
        }
        for values in ["f32", "bf16", "f16"] {
            grouped().for_each(|format| add("quantize", format, values, place, COLUMNS, 0));
        }
        add("decode", Format::Bf16, "bf16", place, COLUMNS, 0);
        add("decode", Format::Fp32, "f32", place, COLUMNS, 0);
        for operation in ["pack", "unpack", "gather", "gather-random"] {
            Format::ALL.iter().for_each(|format| add(operation, *format, "words", place, COLUMNS, 0));
        }
        quantized().for_each(|format| add("validate", format, "words", place, COLUMNS, 0));
    }
    for format in quantized() {
        let columns = if format == Format::Nvfp4 { 4032 } else { 4000 };
        add("decode", format, "f32", Place::Memory, columns, 0);
    }
    grouped().for_each(|format| add("quantize", format, "f32", Place::Memory, 4000, 0));
    for operation in ["decode", "quantize"] {
        for place in [Place::L2, Place::Memory] {
            add(operation, Format::Q4G64F16S, "f32", place, COLUMNS, ALLOCATION_OFFSET);
        }
    }
    jobs
}

pub fn is_direct(format: Format) -> bool {
    matches!(format.descriptor().category, Category::DirectFloat | Category::DirectInteger)
}

impl Job {
    #[expect(clippy::too_many_arguments, reason = "every coordinate of a row of the table")]
    pub fn new(
        operation: &'static str,
        format: Format,
        values: &'static str,
        place: Place,
        pages: Pages,
        columns: u64,
        offset: usize,
        effort: &Effort,
    ) -> Self {
        let tile = data::plan(format, TILE_ROWS, columns);
        // Bytes of a row on the side that is made as large as the place asks for.
        let row_bytes = match operation {
            "decode" | "quantize" => columns * data::value_bytes(values) as u64,
            "pack" | "unpack" => data::word_bytes(&tile, 1).0 as u64,
            _ => tile.payload_bytes() / TILE_ROWS,
        };
        let rows = place.bytes(effort) as u64 / row_bytes;
        let rows = match place {
            Place::L2 => rows,
            Place::Memory => rows.next_multiple_of(u64::from(SLOW_PARTS) * TILE_ROWS),
        };
        let whole_tiles = rows.next_multiple_of(TILE_ROWS);
        let (plan, rows) = match format {
            Format::Nvfp4 if operation == "decode" => (data::plan(format, whole_tiles, columns), rows),
            Format::Nvfp4 => (data::plan(format, whole_tiles, columns), whole_tiles),
            _ => (data::plan(format, rows, columns), rows),
        };
        let payload = (plan.payload_bytes() * rows / plan.rows()) as usize;
        let weights = (rows * columns) as usize;
        let value_side = weights * data::value_bytes(values);
        let words = data::word_bytes(&plan, rows);
        let (read_bytes, written_bytes, limit) = match operation {
            "decode" if is_direct(format) => (payload, value_side, "copy"),
            "decode" => (payload, value_side, "store"),
            "quantize" => (value_side, payload, "read"),
            "pack" => (words.0 + words.1, payload, "copy"),
            "unpack" => (payload, words.0 + words.1, "copy"),
            // Every NVFP4 code is legal: only the scales and the divisor can be at fault.
            "validate" if format == Format::Nvfp4 => (plan.scales().bytes as usize + 4, 0, "read"),
            "validate" => (payload, 0, "read"),
            _ => (payload, payload, "copy"),
        };
        let note = match (columns, offset) {
            (COLUMNS, 0) => "",
            (COLUMNS, _) => "at 16 mod 64",
            (4000, _) => "K=4000",
            _ => "K=4032",
        };
        let work = Work {
            operation,
            format,
            values,
            place,
            pages,
            threads: 1,
            note,
            weights,
            read_bytes,
            written_bytes,
            limit,
        };
        Self { work, plan, rows, offset }
    }

    /// Fills the buffers and gathers the contenders.
    pub fn set_up(&self, buffers: &mut Buffers) -> Trial<'static> {
        let payload = self.plan.payload_bytes() as usize;
        let words = data::word_bytes(&self.plan, self.rows);
        let (mut contenders, compared) = match self.work.operation {
            "decode" => {
                data::fill_payload(&self.plan, &mut buffers.input[..payload]);
                (self.decoders(), (self.offset + self.work.written_bytes, 0))
            }
            "quantize" => {
                let end = self.offset + self.work.read_bytes;
                data::fill_values(&mut buffers.input[self.offset..end], self.work.values);
                (self.quantizers(), (payload, 0))
            }
            "pack" => {
                data::fill_words(&self.plan, &mut buffers.input[..words.0], &mut buffers.scales[..words.1]);
                (self.packers(words), (payload, 0))
            }
            "unpack" => {
                data::fill_payload(&self.plan, &mut buffers.input[..payload]);
                (self.unpackers(words), words)
            }
            "validate" => {
                data::fill_payload(&self.plan, &mut buffers.input[..payload]);
                (self.validators(), (0, 0))
            }
            _ => {
                data::fill_payload(&self.plan, &mut buffers.input[..payload]);
                (self.gatherers(), (payload, 0))
            }
        };
        contenders.extend(self.limits());
        Trial { work: self.work.clone(), contenders, compared }
    }

    fn limits(&self) -> Vec<Contender<'static>> {
        type Read = fn(&[u8]);
        type Store = fn(&mut [u8]);
        type Copy = fn(&[u8], &mut [u8]);
        let (read, written) = (self.work.read_bytes, self.work.written_bytes);
        match self.work.limit {
            "store" => {
                let bytes = written / 256 * 256;
                let loops: [(_, _, Store); 3] = [
                    ("store loop", Role::Limit, limits::store_loop),
                    ("streaming store loop", Role::Limit, limits::streaming_store_loop),
                    ("memset", Role::Check, |out| out.fill(0x5a)),
                ];
                let make = |(name, role, run): (_, _, Store)| {
                    Contender::new(name, role, 1, move |b, _| run(&mut b.output[..bytes]))
                };
                loops.map(make).into()
            }
            "read" => {
                let from = match self.work.format {
                    Format::Nvfp4 => self.plan.scales().offset as usize,
                    _ => 0,
                };
                let bytes = read / 512 * 512;
                let loops: [(_, Read); 3] = [
                    ("read loop", limits::read_loop_4),
                    ("read loop, 8 lanes", limits::read_loop_8),
                    ("read loop, prefetch", limits::read_loop_prefetch),
                ];
                let make = |(name, run): (_, Read)| {
                    Contender::new(name, Role::Limit, 1, move |b, _| run(&b.input[from..][..bytes]))
                };
                loops.map(make).into()
            }
            _ => {
                // A copy that moves as many bytes, read and written together.
                let bytes = (read + written) / 2 / 256 * 256;
                let loops: [(_, Copy); 2] = [
                    ("memcpy", |from, out| out.copy_from_slice(from)),
                    ("streaming copy", limits::streaming_copy),
                ];
                let make = |(name, run): (_, Copy)| {
                    Contender::new(name, Role::Limit, 1, move |b, _| {
                        run(&b.input[..bytes], &mut b.output[..bytes]);
                    })
                };
                loops.map(make).into()
            }
        }
    }

    /// The rows of a part: the first and how many.
    fn part(&self, parts: u32, part: u32) -> (u64, u64) {
        let count = self.rows / u64::from(parts);
        (u64::from(part) * count, count)
    }

    fn decoders(&self) -> Vec<Contender<'static>> {
        let job = self.clone();
        let mut contenders = ours(self.work.place, |parts| {
            let job = job.clone();
            move |buffers: &mut Buffers, part| {
                let (begin, count) = job.part(parts, part);
                let payload = &buffers.input[..job.plan.payload_bytes() as usize];
                let tensor = Tensor::new(job.plan, payload).expect("as long as the plan says");
                let rows = tensor.rows(begin, count).expect("rows of the tensor");
                let bytes = job.value_rows(&mut buffers.output, begin, count);
                let out = data::output(bytes, job.work.values);
                rows.decode(out, job.plan.columns() as usize).expect("legal scales");
            }
        });
        if self.has_peers() {
            let parts = self.peer_parts();
            let sample = data::weights(1 << 16);
            let weights = self.work.weights / parts as usize;
            contenders.extend(peers::decoders(self.work.format, weights, parts, &sample));
        }
        contenders
    }

    fn quantizers(&self) -> Vec<Contender<'static>> {
        let job = self.clone();
        let mut contenders = ours(self.work.place, |parts| {
            let job = job.clone();
            move |buffers: &mut Buffers, part| {
                let (begin, count) = job.part(parts, part);
                let payload = &mut buffers.output[..job.plan.payload_bytes() as usize];
                let mut tensor = TensorMut::new(job.plan, payload).expect("as long as the plan says");
                let mut rows = tensor.rows_mut(begin, count).expect("rows of the tensor");
                let bytes = job.value_rows(&mut buffers.input, begin, count);
                let source = data::source(bytes, job.work.values);
                rows.quantize(source, job.plan.columns() as usize).expect("finite weights");
            }
        });
        if self.has_peers() {
            let parts = self.peer_parts();
            contenders.extend(peers::quantizers(self.work.format, self.work.weights / parts as usize, parts));
        }
        contenders
    }

    fn packers(&self, words: (usize, usize)) -> Vec<Contender<'static>> {
        let job = self.clone();
        ours(self.work.place, |parts| {
            let job = job.clone();
            move |buffers: &mut Buffers, part| {
                let (begin, count) = job.part(parts, part);
                let payload = &mut buffers.output[..job.plan.payload_bytes() as usize];
                let mut tensor = TensorMut::new(job.plan, payload).expect("as long as the plan says");
                let mut rows = tensor.rows_mut(begin, count).expect("rows of the tensor");
                let codes = share(&mut buffers.input[..words.0], parts, part);
                let scales = share(&mut buffers.scales[..words.1], parts, part);
                rows.pack(data::words(&job.plan, codes, scales)).expect("legal words");
            }
        })
    }

    fn unpackers(&self, words: (usize, usize)) -> Vec<Contender<'static>> {
        let job = self.clone();
        ours(self.work.place, |parts| {
            let job = job.clone();
            move |buffers: &mut Buffers, part| {
                let (begin, count) = job.part(parts, part);
                let payload = &buffers.input[..job.plan.payload_bytes() as usize];
                let tensor = Tensor::new(job.plan, payload).expect("as long as the plan says");
                let rows = tensor.rows(begin, count).expect("rows of the tensor");
                let codes = share(&mut buffers.output[..words.0], parts, part);
                let scales = share(&mut buffers.scales[..words.1], parts, part);
                let mut divisor = 0;
                rows.unpack(data::words_mut(&job.plan, codes, scales, &mut divisor)).expect("they fit");
            }
        })
    }

    fn gatherers(&self) -> Vec<Contender<'static>> {
        let list: Vec<u64> = match self.work.operation {
            "gather" => (0..self.rows).collect(),
            _ => data::shuffled(self.rows),
        };
        let plan = self.plan;
        // A part would be a payload of its own, so every backend gathers the whole.
        ours(Place::L2, |_| {
            let list = list.clone();
            move |buffers: &mut Buffers, _| {
                let payload = &buffers.input[..plan.payload_bytes() as usize];
                let tensor = Tensor::new(plan, payload).expect("as long as the plan says");
                let out = &mut buffers.output[..payload.len()];
                tensor.gather(&list, out).expect("rows of the tensor");
            }
        })
    }

    fn validators(&self) -> Vec<Contender<'static>> {
        let job = self.clone();
        ours(self.work.place, |parts| {
            let job = job.clone();
            move |buffers: &mut Buffers, part| {
                let (begin, count) = job.part(parts, part);
                let payload = &buffers.input[..job.plan.payload_bytes() as usize];
                let tensor = Tensor::new(job.plan, payload).expect("as long as the plan says");
                let rows = tensor.rows(begin, count).expect("rows of the tensor");
                rows.validate().expect("a canonical payload");
            }
        })
    }

    fn has_peers(&self) -> bool {
        self.work.values == "f32" && self.work.note.is_empty()
    }

    fn peer_parts(&self) -> u32 {
        if self.work.place == Place::Memory { SLOW_PARTS } else { 1 }
    }

    /// The bytes of some rows of values.
    fn value_rows<'b>(&self, buffer: &'b mut [u8], begin: u64, count: u64) -> &'b mut [u8] {
        let row_bytes = self.plan.columns() as usize * data::value_bytes(self.work.values);
        &mut buffer[self.offset + begin as usize * row_bytes..][..count as usize * row_bytes]
    }
}

/// One of `parts` equal parts.
fn share(bytes: &mut [u8], parts: u32, part: u32) -> &mut [u8] {
    let length = bytes.len() / parts as usize;
    &mut bytes[part as usize * length..][..length]
}
