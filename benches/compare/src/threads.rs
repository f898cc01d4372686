//! One thread and two at the same work, each thread on a core of its own.

use std::hint::spin_loop;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Instant;

use ninfer_codec::internals::select_backend;
use ninfer_codec::{Format, Plan, Tensor, TensorMut};

use crate::machine;
use crate::memory::{Buffers, Pages};
use crate::trial::{Effort, Place, Record, Role, Work};
use crate::{data, limits};

const COLUMNS: usize = 4096;
/// NVFP4's rows come by 128.
const TILE_ROWS: usize = 128;

/// A work of two equal halves.
pub struct Job {
    pub work: Work,
    /// One plan for the whole from memory, one for each half inside L2.
    plan: Plan,
    rows_a_half: usize,
}

pub fn jobs(pages: Pages, effort: &Effort) -> Vec<Job> {
    let mut jobs = Vec::new();
    for place in [Place::L2, Place::Memory] {
        for format in Format::ALL.into_iter().filter(|format| !crate::works::is_direct(*format)) {
            jobs.push(Job::new("decode", format, place, pages, effort));
        }
        for format in Format::ALL.into_iter().filter(|format| format.scheme().is_some()) {
            jobs.push(Job::new("quantize", format, place, pages, effort));
        }
    }
    jobs
}

/// A half: what a thread reads, what it writes, and what it does with them.
struct Half<'a> {
    run: Box<dyn FnMut() + Send + 'a>,
}

impl Job {
    fn new(operation: &'static str, format: Format, place: Place, pages: Pages, effort: &Effort) -> Self {
        let row_bytes = COLUMNS * 4;
        let (halves, rows_a_half) = match place {
            Place::L2 => (1, place.bytes(effort) / row_bytes),
            Place::Memory => (2, place.bytes(effort) / row_bytes / 2),
        };
        let stored = if format == Format::Nvfp4 { TILE_ROWS } else { 1 };
        let rows = (halves * rows_a_half).next_multiple_of(stored) as u64;
        let plan = data::plan(format, rows, COLUMNS as u64);
        let weights = 2 * rows_a_half * COLUMNS;
        let payload = (plan.payload_bytes() * 2 * rows_a_half as u64 / rows) as usize;
        let (read_bytes, written_bytes) =
            if operation == "decode" { (payload, weights * 4) } else { (weights * 4, payload) };
        let work = Work {
            operation,
            format,
            values: "f32",
            place,
            pages,
            threads: 2,
            note: "",
            weights,
            read_bytes,
            written_bytes,
            limit: "one thread",
        };
        Self { work, plan, rows_a_half }
    }

    pub fn run(&self, buffers: &mut Buffers, effort: &Effort, cores: (usize, usize)) -> Record {
        let backend = crate::trial::BACKENDS.into_iter().rfind(|name| select_backend(name));
        let backend = backend.expect("the portable backend is always there");
        let payload = self.plan.payload_bytes() as usize;
        let values = self.rows_a_half * COLUMNS * 4;
        let evict = &buffers.evict[..];
        let seconds = if self.work.operation == "decode" {
            data::fill_payload(&self.plan, &mut buffers.input[..payload]);
            let (out_a, rest) = buffers.output.split_at_mut(values);
            let outs = [out_a, &mut rest[..values]];
            let mut index = 0;
            let halves = outs.map(|out| {
                let begin = if self.work.place == Place::L2 { 0 } else { index * self.rows_a_half };
                index += 1;
                let payload = &buffers.input[..payload];
                let tensor = Tensor::new(self.plan, payload).expect("as long as the plan says");
                let rows = tensor.rows(begin as u64, self.rows_a_half as u64).expect("its rows");
                let out: &mut [f32] = bytemuck::cast_slice_mut(out);
                Half { run: Box::new(move || rows.decode(&mut *out, COLUMNS).expect("legal scales")) }
            });
            self.time(halves, evict, effort, cores)
        } else {
            data::fill_values(&mut buffers.input[..2 * values], "f32");
            let mut views = Vec::new();
            let (first, second) = buffers.output.split_at_mut(payload);
            let whole = TensorMut::new(self.plan, first).expect("as long as the plan says");
            match self.work.place {
                Place::L2 => {
                    views.push(whole);
                    let twin = TensorMut::new(self.plan, &mut second[..payload]);
                    views.push(twin.expect("as long as the plan says"));
                }
                Place::Memory => {
                    let (top, bottom) = whole.split_at_row(self.rows_a_half as u64).expect("a row inside");
                    views.extend([top, bottom]);
                }
            }
            let sources = buffers.input[..2 * values].chunks(values);
            let mut halves = views.into_iter().zip(sources).map(|(mut view, source)| {
                let source: &[f32] = bytemuck::cast_slice(source);
                Half { run: Box::new(move || view.quantize(source, COLUMNS).expect("finite weights")) }
            });
            let halves = [halves.next().expect("two halves"), halves.next().expect("two halves")];
            self.time(halves, evict, effort, cores)
        };
        let contenders = [
            (format!("{backend}, one thread"), Role::Limit),
            (format!("{backend}, two threads"), Role::Ours),
        ];
        Record::new(self.work.clone(), true, &contenders, seconds.into())
    }

    /// Returns the times of one thread and of two.
    fn time(
        &self,
        halves: [Half<'_>; 2],
        evict: &[u8],
        effort: &Effort,
        cores: (usize, usize),
    ) -> [Vec<f64>; 2] {
        let [first, second] = halves.map(Mutex::new);
        let run = |half: &Mutex<Half<'_>>, repeats: u32| {
            let mut half = half.lock().expect("no thread panics");
            (0..repeats).for_each(|_| (half.run)());
        };
        let repeats = if self.work.place == Place::Memory {
            1
        } else {
            run(&first, 1);
            let start = Instant::now();
            run(&first, 1);
            (4.0 * effort.repeat_seconds / start.elapsed().as_secs_f64()).ceil().clamp(1.0, 1e5) as u32
        };
        // The second thread starts a run when `started` grows and says so in `done` when it has finished it.
        let (started, done) = (AtomicU32::new(0), AtomicU32::new(0));
        const STOP: u32 = u32::MAX;
        let mut seconds = [Vec::new(), Vec::new()];
        thread::scope(|scope| {
            scope.spawn(|| {
                machine::pin(cores.1);
                let mut seen = 0;
                loop {
                    let now = started.load(Ordering::Acquire);
                    if now == STOP {
                        break;
                    }
                    if now != seen {
                        seen = now;
                        run(&second, repeats);
                        done.store(seen, Ordering::Release);
                    }
                    spin_loop();
                }
            });
            for round in 1..=effort.rounds as u32 {
                let prepare = || {
                    if self.work.place == Place::Memory {
                        limits::read_loop_8(evict);
                    }
                };
                prepare();
                let start = Instant::now();
                run(&first, repeats);
                run(&second, repeats);
                seconds[0].push(start.elapsed().as_secs_f64() / f64::from(repeats));
                prepare();
                let start = Instant::now();
                started.store(round, Ordering::Release);
                run(&first, repeats);
                while done.load(Ordering::Acquire) != round {
                    spin_loop();
                }
                seconds[1].push(start.elapsed().as_secs_f64() / f64::from(repeats));
            }
            started.store(STOP, Ordering::Release);
        });
        seconds
    }
}
