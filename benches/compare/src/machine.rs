//! The machine, the build, and a core to stay on.

use std::{fs, io, mem};

use serde::Serialize;

/// What the numbers depend on.
#[derive(Debug, Serialize)]
pub struct Machine {
    pub cpu: String,
    pub cpu_flags: String,
    pub caches: Vec<String>,
    pub kernel: String,
    pub cores: Vec<usize>,
    pub load_before: String,
    pub load_after: String,
    pub backend: &'static str,
    pub rustc: &'static str,
    pub rustflags: &'static str,
    pub rust_features: &'static str,
    pub cc: &'static str,
    pub cflags: &'static str,
    pub cc_march: &'static str,
    pub cc_features: &'static str,
    pub candle: &'static str,
    pub llama_cpp_sys: &'static str,
}

impl Machine {
    pub fn new(cores: Vec<usize>) -> Self {
        let info = read("/proc/cpuinfo");
        let field = |name: &str| {
            let line = info.lines().find(|line| line.split(':').next().map(str::trim) == Some(name));
            line.and_then(|line| line.split_once(':')).map_or("", |(_, value)| value.trim()).to_owned()
        };
        let cpu = format!(
            "{}, family {} model {} stepping {}",
            field("model name"),
            field("cpu family"),
            field("model"),
            field("stepping")
        );
        let caches = (0..8).filter_map(|index| {
            let file = |name| {
                let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{name}");
                fs::read_to_string(path).map(|text| text.trim().to_owned()).ok()
            };
            Some(format!("L{} {} {}", file("level")?, file("type")?, file("size")?))
        });
        Self {
            cpu,
            cpu_flags: field("flags"),
            caches: caches.collect(),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            cores,
            load_before: load(),
            load_after: String::new(),
            backend: ninfer_codec::backend_name(),
            rustc: env!("COMPARE_RUSTC"),
            rustflags: env!("COMPARE_RUSTFLAGS"),
            rust_features: env!("COMPARE_FEATURES"),
            cc: env!("COMPARE_CC"),
            cflags: env!("COMPARE_CFLAGS"),
            cc_march: env!("COMPARE_MARCH"),
            cc_features: env!("COMPARE_CC_FEATURES"),
            candle: env!("COMPARE_CANDLE"),
            llama_cpp_sys: env!("COMPARE_LLAMA"),
        }
    }

    pub fn print(&self) {
        println!("cpu        {}", self.cpu);
        println!("flags      {}", self.cpu_flags);
        println!("caches     {}", self.caches.join(", "));
        println!("kernel     Linux {}, load {}", self.kernel, self.load_before);
        println!("cores      {:?} (the first is measured on)", self.cores);
        println!("ours       {} chosen; -Ctarget-cpu=x86-64, {}", self.backend, self.rustc);
        println!("candle     {}: {}", self.candle, self.rustflags);
        println!("           Rust features: {}", self.rust_features);
        println!(
            "ggml       llama-cpp-sys-2 {}: {} (-march={} {}), {}",
            self.llama_cpp_sys, self.cflags, self.cc_march, self.cc_features, self.cc
        );
    }
}

/// The load averages of the last 1, 5 and 15 minutes.
pub fn load() -> String {
    read("/proc/loadavg").split(' ').take(3).collect::<Vec<_>>().join(" ")
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Returns the cores the process may run on.
pub fn cores() -> io::Result<Vec<usize>> {
    // SAFETY: a CPU set of zeros is an empty set.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    // SAFETY: the kernel writes at most the size given, which is the set's.
    if unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the index is below the number of bits of a set.
    Ok((0..libc::CPU_SETSIZE as usize).filter(|&core| unsafe { libc::CPU_ISSET(core, &set) }).collect())
}

/// Keeps the calling thread, and threads it starts, on one core.
///
/// # Panics
/// If the core is not one of [`cores`].
pub fn pin(core: usize) {
    // SAFETY: a CPU set of zeros is an empty set.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    // SAFETY: the core came from a set, so its number is below a set's number of bits.
    unsafe { libc::CPU_SET(core, &mut set) };
    // SAFETY: the kernel reads as many bytes as the set has.
    let status = unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) };
    assert_eq!(status, 0, "core {core} is not to be had: {}", io::Error::last_os_error());
}

/// The time the calling thread has run, in seconds: what others do with the core meanwhile does not count.
pub fn thread_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable and of the type the call asks for.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(status, 0, "Linux has this clock");
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// How often the scheduler took the core away from this process, from its start on.
pub fn preemptions() -> i64 {
    // SAFETY: the structure is plain integers, and the kernel fills it.
    let mut usage: libc::rusage = unsafe { mem::zeroed() };
    // SAFETY: `usage` is writable and of the type the call asks for.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    usage.ru_nivcsw
}
