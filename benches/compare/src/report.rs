//! The results as text.

use crate::goals::Verdict;
use crate::trial::{Record, Role, Timing};

/// Prints the table's head.
pub fn print_head() {
    println!(
        "\nG weights/s; of = ours over the limit in parentheses; x = ours over the faster peer; \
         GB/s = bytes read and written by ours"
    );
    println!(
        "{:<34}{:>9}{:>9}{:>9}{:>9}  {:<25}{:>6}{:>8}{:>8}{:>7}{:>7}",
        "work", "portable", "avx2", "avx512", "limit", "", "of", "ggml", "candle", "x", "GB/s"
    );
}

/// Prints one row of the table, with the names of what was fastest.
pub fn print_row(record: &Record) {
    let giga = |timing: Option<&Timing>| {
        timing.map_or("-".to_owned(), |timing| format!("{:.2}", timing.weights_per_second / 1e9))
    };
    let starting = |start: &str| {
        record.timings.iter().find(|timing| timing.role != Role::Limit && timing.name.starts_with(start))
    };
    let limit = record.best(Role::Limit);
    let chosen = record.chosen();
    let of = chosen.map_or(0.0, |timing| timing.of_limit);
    let peer = record.best(Role::Peer).zip(chosen);
    let times = peer.map_or("-".to_owned(), |(peer, ours)| format!("{:.1}", peer.seconds / ours.seconds));
    let bytes = chosen.map_or(0.0, |timing| timing.bytes_per_second / 1e9);
    let name = limit.map_or(String::new(), |timing| format!("({})", timing.name));
    println!(
        "{:<34}{:>9}{:>9}{:>9}{:>9}  {:<25}{of:>6.2}{:>8}{:>8}{times:>7}{bytes:>7.1}{}",
        record.name,
        giga(starting("portable")),
        giga(starting("avx2")),
        giga(starting("avx512")),
        giga(limit),
        name,
        giga(starting("ggml")),
        giga(starting("candle")),
        if record.same_bytes { "" } else { "  THE BACKENDS' BYTES DIFFER" }
    );
}

/// Prints how far the limits are from what else does the same.
pub fn print_baselines(records: &[Record]) {
    let mut store: Vec<(f64, &str)> = Vec::new();
    let mut read: Vec<(f64, &str)> = Vec::new();
    for record in records {
        let limit = record.best(Role::Limit).map(|timing| timing.seconds);
        let ratio = |over: Option<f64>, under: Option<f64>| Some((over? / under?, record.name.as_str()));
        let named = |name: &str| record.named(name).map(|timing| timing.seconds);
        match record.work.limit {
            "store" => store.extend(ratio(named("memset"), limit)),
            "read" => read.extend(ratio(limit, named("read loop"))),
            _ => {}
        }
    }
    println!("\nbaselines, at least 0.90 wanted");
    print_baseline("the better store loop, which is the limit, of memset", store);
    print_baseline("the first read loop of the best of three, which is the limit", read);
}

fn print_baseline(what: &str, mut ratios: Vec<(f64, &str)>) {
    ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
    if let (Some(least), Some(middle)) = (ratios.first(), ratios.get(ratios.len() / 2)) {
        let below = ratios.iter().filter(|(ratio, _)| *ratio < 0.9).count();
        println!(
            "{what}: median {:.2}, least {:.2} ({}), {below} of {} below",
            middle.0,
            least.0,
            least.1,
            ratios.len()
        );
    }
}

/// Prints every goal with what was measured.
pub fn print_goals(verdicts: &[Verdict]) {
    println!("\ngoals");
    let mut last = None;
    for verdict in verdicts {
        let key = (verdict.goal, verdict.wanted.to_bits(), verdict.pages);
        if last != Some(key) {
            last = Some(key);
            let pages = verdict.pages.name();
            println!("{}, {pages} pages, at least {} of: {}", verdict.goal, verdict.wanted, verdict.against);
        }
        let label = if verdict.goal.starts_with("two") || verdict.goal.starts_with("direct") {
            &verdict.work
        } else {
            &verdict.label
        };
        match verdict.measured {
            None => println!("    {label:<34}  SKIPPED: this CPU lacks one side of the ratio"),
            Some(measured) => {
                let met = if verdict.met() { "met" } else { "MISSED" };
                let reach = verdict.limit_reaches.map(|most| format!("  (the limit itself: {most:.2})"));
                println!("    {label:<34}{measured:>8.3}  {met}{}", reach.unwrap_or_default());
            }
        }
    }
    let measured = verdicts.iter().filter(|verdict| verdict.measured.is_some()).count();
    let met = verdicts.iter().filter(|verdict| verdict.met()).count();
    println!("{met} of {measured} met, {} skipped", verdicts.len() - measured);
}
