//! The goals, as ratios inside one run.

use ninfer_codec::Format;
use serde::Serialize;

use crate::memory::Pages;
use crate::trial::{Place, Record, Role, Timing, short};
use crate::works::is_direct;

/// A goal, and what one work made of it.
#[derive(Debug, Serialize)]
pub struct Verdict {
    pub goal: &'static str,
    pub against: &'static str,
    pub wanted: f64,
    pub pages: Pages,
    pub work: String,
    pub label: String,
    /// `None` where the CPU or the work lacks one side of the ratio.
    pub measured: Option<f64>,
    /// What the machine's limit itself would reach against a peer.
    pub limit_reaches: Option<f64>,
}

impl Verdict {
    pub fn met(&self) -> bool {
        self.measured.is_some_and(|measured| measured >= self.wanted)
    }
}

use Format::{
    Fp8E4M3FnRowBf16S as Fp8, Nvfp4, Q4G64F16S as Q4, Q5G64F16S as Q5, Q6G64F16S as Q6, W8G32F16S as W8,
};

/// Holds all records against all goals; a work that was not measured has no verdict.
pub fn judge(records: &[Record]) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for record in records.iter().filter(|record| record.work.note.is_empty()) {
        for (goal, against, wanted, measured) in goals_of(record) {
            verdicts.push(Verdict {
                goal,
                against,
                wanted,
                pages: record.work.pages,
                work: record.name.clone(),
                label: label(record),
                measured,
                limit_reaches: (against == PEER).then(|| peer_over_limit(record)).flatten(),
            });
        }
    }
    // Goal by goal, in the order in which the works first met them.
    let mut order: Vec<(&str, u64)> = Vec::new();
    for verdict in &verdicts {
        let key = (verdict.goal, verdict.wanted.to_bits());
        if !order.contains(&key) {
            order.push(key);
        }
    }
    verdicts.sort_by_key(|verdict| {
        let key = (verdict.goal, verdict.wanted.to_bits());
        (order.iter().position(|other| *other == key), verdict.pages == Pages::Huge)
    });
    verdicts
}

fn label(record: &Record) -> String {
    let work = &record.work;
    match work.values {
        "words" if work.operation == "validate" => short(work.format).to_owned(),
        "words" => format!("{} {}", work.operation, short(work.format)),
        "f32" => short(work.format).to_owned(),
        values => format!("{} {values}", short(work.format)),
    }
}

fn peer_over_limit(record: &Record) -> Option<f64> {
    Some(record.best(Role::Peer)?.seconds / record.best(Role::Limit)?.seconds)
}

const STORE: &str = "better store loop over the output";
const READ: &str = "read loop over the input";
const COPY: &str = "better of memcpy and a streaming copy";
const PEER: &str = "faster of ggml and candle";

type Goal = (&'static str, &'static str, f64, Option<f64>);

fn goals_of(record: &Record) -> Vec<Goal> {
    let work = &record.work;
    let of_limit = record.chosen().map(|timing| timing.of_limit);
    let ratio = |over: Option<&Timing>, under: Option<&Timing>| Some(over?.seconds / under?.seconds);
    if work.threads == 2 {
        return vec![("two threads", "one thread", 1.95, of_limit)];
    }
    let memory = work.place == Place::Memory;
    let mut goals = Vec::new();
    match (work.operation, memory) {
        ("decode", true) if is_direct(work.format) => {
            goals.push(("direct, pack, unpack, gather, beyond cache", COPY, 0.95, of_limit));
        }
        ("decode", true) => {
            goals.push(match work.values {
                "f32" => ("decode to f32, beyond cache", STORE, 0.98, of_limit),
                _ => ("decode to bf16 and f16, beyond cache", STORE, 0.95, of_limit),
            });
            let best = record.best(Role::Ours);
            goals.push((
                "portable, decode from memory",
                "best backend",
                0.33,
                ratio(best, record.named("portable")),
            ));
        }
        ("quantize", true) if work.values == "f32" => {
            let wanted = if matches!(work.format, Q4 | W8) { 0.95 } else { 0.90 };
            goals.push(("quantize f32, beyond cache", READ, wanted, of_limit));
        }
        ("pack" | "unpack" | "gather", true) => {
            goals.push(("direct, pack, unpack, gather, beyond cache", COPY, 0.95, of_limit));
        }
        ("validate", true) => {
            goals.push(("validate, beyond cache", "read loop over the payload", 0.94, of_limit));
        }
        ("decode", false) if work.values == "f32" && !is_direct(work.format) => {
            let wanted = match work.format {
                Q4 => 0.88,
                W8 => 0.78,
                Q5 | Nvfp4 | Fp8 => 0.73,
                _ => 0.65,
            };
            goals.push(("decode to f32, inside L2", STORE, wanted, of_limit));
        }
        ("quantize", false) if work.values == "f32" => {
            let wanted = match work.format {
                Q4 => 0.51,
                W8 => 0.45,
                _ => 0.42,
            };
            goals.push(("quantize f32, inside L2", READ, wanted, of_limit));
        }
        _ => {}
    }
    if !memory && work.values == "f32" && matches!(work.format, Q4 | Q5 | Q6 | W8) {
        let peer = ratio(record.best(Role::Peer), record.chosen());
        match work.operation {
            "decode" => {
                let wanted = if work.format == W8 { 2.5 } else { 8.0 };
                goals.push(("decode to f32, inside L2, peers", PEER, wanted, peer));
            }
            _ => goals.push(("quantize f32, inside L2, peers", PEER, 12.0, peer)),
        }
    }
    if !memory && !is_direct(work.format) && matches!(work.operation, "decode" | "quantize") {
        let avx2 = ratio(record.named("avx512"), record.named("avx2"));
        goals.push(match work.operation {
            "decode" => ("AVX2, decode inside L2", "AVX-512", 0.75, avx2),
            _ => ("AVX2, quantize inside L2", "AVX-512", 0.6, avx2),
        });
    }
    goals
}
