//! One piece of work, those who contend in it, and how they are timed.

use ninfer_codec::Format;
use ninfer_codec::internals::select_backend;
use serde::Serialize;

use crate::limits;
use crate::machine::thread_seconds;
use crate::memory::{Buffers, Pages};

/// Backends to measure, the best last; those the CPU lacks are left out.
pub const BACKENDS: [&str; 3] = ["portable", "avx2", "avx512"];

/// Runs of each contender that count.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    pub rounds: usize,
    /// A run inside L2 is repeated until it takes this long.
    pub repeat_seconds: f64,
    /// Bytes of the larger side of a work from memory.
    pub memory_bytes: usize,
}

/// Where the bytes of a work are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Place {
    #[serde(rename = "L2")]
    L2,
    #[serde(rename = "memory")]
    Memory,
}

impl Place {
    pub const fn name(self) -> &'static str {
        match self {
            Self::L2 => "L2",
            Self::Memory => "mem",
        }
    }

    /// Bytes of the larger side of a work at this place.
    pub const fn bytes(self, effort: &Effort) -> usize {
        match self {
            Self::L2 => 256 << 10,
            Self::Memory => effort.memory_bytes,
        }
    }
}

/// What is measured.
#[derive(Clone, Debug, Serialize)]
pub struct Work {
    pub operation: &'static str,
    #[serde(serialize_with = "format_name")]
    pub format: Format,
    /// The value type, or `words`.
    pub values: &'static str,
    pub place: Place,
    pub pages: Pages,
    pub threads: u32,
    /// What is unusual about it; mostly nothing.
    pub note: &'static str,
    pub weights: usize,
    /// Bytes that must be read and written.
    pub read_bytes: usize,
    pub written_bytes: usize,
    /// What the limits do.
    pub limit: &'static str,
}

fn format_name<S: serde::Serializer>(format: &Format, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(format.name())
}

/// The format's name in tables.
pub fn short(format: Format) -> &'static str {
    match format {
        Format::Fp8E4M3FnRowBf16S => "FP8",
        _ => format.name().split('G').next().unwrap_or_default(),
    }
}

impl Work {
    pub fn name(&self) -> String {
        let threads = if self.threads == 1 { "" } else { " threads" };
        let note = if self.note.is_empty() { String::new() } else { format!(" {}", self.note) };
        let (place, pages) = (self.place.name(), self.pages.name());
        format!("{} {} {} {place} {pages}{threads}{note}", self.operation, short(self.format), self.values)
    }
}

/// What a contender is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Ours,
    /// The best of the limits is what ours are held against.
    Limit,
    /// Shows that a limit is honest.
    Check,
    Peer,
}

type Run<'a> = Box<dyn FnMut(&mut Buffers, u32) + 'a>;

pub struct Contender<'a> {
    name: String,
    role: Role,
    /// Runs that make the whole work: a slow contender does another part each run.
    parts: u32,
    run: Run<'a>,
}

impl<'a> Contender<'a> {
    pub fn new(
        name: impl Into<String>,
        role: Role,
        parts: u32,
        run: impl FnMut(&mut Buffers, u32) + 'a,
    ) -> Self {
        Self { name: name.into(), role, parts, run: Box::new(run) }
    }

    fn prepare(&self) {
        if self.role == Role::Ours {
            assert!(select_backend(&self.name), "the backend {} was there a moment ago", self.name);
        }
    }
}

/// Runs of portable code and of peers that make a whole work from memory: they are slow, and a sixteenth
/// is still far larger than what a cache keeps of it until its turn comes again.
pub const SLOW_PARTS: u32 = 16;

/// Our contenders, one a backend; `make(parts)` gives what one runs.
pub fn ours<'a, R: FnMut(&mut Buffers, u32) + 'a>(
    place: Place,
    make: impl Fn(u32) -> R,
) -> Vec<Contender<'a>> {
    let slow = if place == Place::Memory { SLOW_PARTS } else { 1 };
    let available = BACKENDS.into_iter().filter(|name| select_backend(name));
    available
        .map(|name| {
            let parts = if name == "portable" { slow } else { 1 };
            Contender::new(name, Role::Ours, parts, make(parts))
        })
        .collect()
}

/// A work with its contenders.
pub struct Trial<'a> {
    pub work: Work,
    pub contenders: Vec<Contender<'a>>,
    /// Bytes of the output and of the scales buffer that every backend must leave the same.
    pub compared: (usize, usize),
}

/// One contender's result.
#[derive(Clone, Debug, Serialize)]
pub struct Timing {
    pub name: String,
    pub role: Role,
    /// Median time of the whole work.
    pub seconds: f64,
    /// Distance of the ninth from the first decile, over the median.
    pub spread: f64,
    pub weights_per_second: f64,
    pub bytes_per_second: f64,
    /// The best limit's time over this one's.
    pub of_limit: f64,
}

/// What came out of a trial.
#[derive(Clone, Debug, Serialize)]
pub struct Record {
    pub name: String,
    #[serde(flatten)]
    pub work: Work,
    pub rounds: usize,
    /// Whether all backends left the same bytes.
    pub same_bytes: bool,
    pub timings: Vec<Timing>,
}

impl Record {
    pub fn best(&self, role: Role) -> Option<&Timing> {
        let those = self.timings.iter().filter(|timing| timing.role == role);
        those.min_by(|a, b| a.seconds.total_cmp(&b.seconds))
    }

    pub fn named(&self, name: &str) -> Option<&Timing> {
        self.timings.iter().find(|timing| timing.name == name)
    }

    /// The backend that users get: the best the CPU has.
    pub fn chosen(&self) -> Option<&Timing> {
        self.timings.iter().rfind(|timing| timing.role == Role::Ours)
    }

    /// Puts together the times of every contender; `seconds` holds one list a contender.
    pub fn new(
        work: Work,
        same_bytes: bool,
        contenders: &[(String, Role)],
        mut seconds: Vec<Vec<f64>>,
    ) -> Self {
        let rounds = seconds.iter().map(Vec::len).min().unwrap_or(0);
        let mut timings = Vec::new();
        for ((name, role), seconds) in contenders.iter().zip(&mut seconds) {
            seconds.sort_by(f64::total_cmp);
            let at = |tenths: usize| seconds[(seconds.len() - 1) * tenths / 10];
            let median = at(5);
            timings.push(Timing {
                name: name.clone(),
                role: *role,
                seconds: median,
                spread: (at(9) - at(1)) / median,
                weights_per_second: work.weights as f64 / median,
                bytes_per_second: (work.read_bytes + work.written_bytes) as f64 / median,
                of_limit: 0.0,
            });
        }
        let mut record = Self { name: work.name(), work, rounds, same_bytes, timings };
        if let Some(limit) = record.best(Role::Limit).map(|timing| timing.seconds) {
            record.timings.iter_mut().for_each(|timing| timing.of_limit = limit / timing.seconds);
        }
        record
    }
}

impl Trial<'_> {
    /// Compares the backends' bytes, then times all contenders in turn, round by round.
    pub fn run(mut self, buffers: &mut Buffers, effort: &Effort) -> Record {
        let same_bytes = self.compare(buffers);
        let place = self.work.place;
        let repeats: Vec<u32> =
            self.contenders.iter_mut().map(|c| repeats(c, buffers, place, effort)).collect();
        let mut seconds = vec![Vec::new(); self.contenders.len()];
        for round in 0..effort.rounds {
            for turn in 0..self.contenders.len() {
                let index = (round + turn) % self.contenders.len();
                let contender = &mut self.contenders[index];
                contender.prepare();
                let part = round as u32 % contender.parts;
                match place {
                    Place::L2 => (contender.run)(buffers, part),
                    Place::Memory => limits::read_loop_8(&buffers.evict),
                }
                let start = thread_seconds();
                for _ in 0..repeats[index] {
                    (contender.run)(buffers, part);
                }
                let run = (thread_seconds() - start) / f64::from(repeats[index]);
                seconds[index].push(run * f64::from(contender.parts));
            }
        }
        let contenders: Vec<_> = self.contenders.iter().map(|c| (c.name.clone(), c.role)).collect();
        Record::new(self.work, same_bytes, &contenders, seconds)
    }

    fn compare(&mut self, buffers: &mut Buffers) -> bool {
        let (output, scales) = self.compared;
        let mut first = None;
        let mut same = true;
        for contender in self.contenders.iter_mut().filter(|contender| contender.role == Role::Ours) {
            contender.prepare();
            buffers.output[..output].fill(0xa5);
            buffers.scales[..scales].fill(0xa5);
            (0..contender.parts).for_each(|part| (contender.run)(buffers, part));
            let digest = (digest(&buffers.output[..output]), digest(&buffers.scales[..scales]));
            same &= *first.get_or_insert(digest) == digest;
        }
        same
    }
}

fn repeats(contender: &mut Contender<'_>, buffers: &mut Buffers, place: Place, effort: &Effort) -> u32 {
    if place == Place::Memory {
        return 1;
    }
    contender.prepare();
    (contender.run)(buffers, 0);
    let start = thread_seconds();
    (contender.run)(buffers, 0);
    (effort.repeat_seconds / (thread_seconds() - start)).ceil().clamp(1.0, 1e4) as u32
}

/// A hash that any changed, lost or moved word changes.
fn digest(bytes: &[u8]) -> u64 {
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let (words, rest) = bytes.as_chunks::<8>();
    let hash = words.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, word| {
        (hash.rotate_left(5) ^ u64::from_le_bytes(*word)).wrapping_mul(PRIME)
    });
    rest.iter().fold(hash, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}
