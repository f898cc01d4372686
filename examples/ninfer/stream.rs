//! The order of the work: the sources' files from front to back, so that what is read for a digest is still in
//! memory for the conversion, however large the checkpoint. It is the same for any number of threads.

use std::collections::VecDeque;

use rayon::prelude::*;

use crate::assign::Job;
use crate::convert::{Block, blocks_of};
use crate::digest::Following;
use crate::failure::Outcome;
use crate::measure::Measure;
use crate::opened::Mapped;
use crate::output::OutputFile;
use crate::progress;

/// Blocks that a thread works on between two looks at the results.
const BLOCKS_A_THREAD: usize = 32;

/// Files that are read at the same time: a digest takes one thread a file.
const FILES_TOGETHER: usize = 4;

/// What a conversion gives besides the output.
pub struct Converted {
    /// By job.
    pub measures: Vec<Measure>,
    /// By source file.
    pub digests: Vec<String>,
}

/// A block, and the file, job and part that it is of.
struct Piece<'j> {
    block: Block<'j>,
    file: usize,
    job: usize,
    part: usize,
}

/// Converts every job into its place in the output; `offsets` are the file offsets of the payloads.
pub fn run(
    files: &[Mapped],
    jobs: &[Job<'_>],
    offsets: &[u64],
    output: &OutputFile,
    done: impl Fn(u64) + Sync,
) -> Outcome<Converted> {
    let mut measures: Vec<Vec<Measure>> =
        jobs.iter().map(|job| vec![Measure::default(); job.parts.len()]).collect();
    let mut streams = streams(files.len(), jobs).into_iter();
    let mut digests = Vec::with_capacity(files.len());
    for files in files.chunks(FILES_TOGETHER) {
        let first = digests.len();
        let mut following: Vec<_> = files.iter().map(|_| Following::default()).collect();
        let mut pieces = Alternating(streams.by_ref().take(files.len()).collect());
        loop {
            let batch: Vec<_> =
                pieces.by_ref().take(BLOCKS_A_THREAD * rayon::current_num_threads()).collect();
            if batch.is_empty() {
                break;
            }
            for (piece, measure) in
                batch.iter().zip(step(&batch, first, files, &mut following, offsets, output)?)
            {
                done(piece.block.source_bytes());
                // In the order of the rows: sums are the same however many threads there are.
                measures[piece.job][piece.part].append(&measure);
            }
        }
        let rest = following.into_par_iter().zip(files).map(|(digest, file)| digest.finish(file));
        digests.extend(rest.collect::<Vec<_>>().into_iter().collect::<Outcome<Vec<_>>>()?);
    }
    let measures = measures.into_iter().map(|parts| {
        parts.into_iter().reduce(|mut all, next| {
            all.append(&next);
            all
        })
    });
    Ok(Converted { measures: measures.map(Option::unwrap_or_default).collect(), digests })
}

/// Converts the blocks of a batch, and takes the digests of `files`, which are numbered from `first` on, as far.
/// The failure is that of the first block that has one.
fn step(
    batch: &[Piece<'_>],
    first: usize,
    files: &[Mapped],
    following: &mut [Following],
    offsets: &[u64],
    output: &OutputFile,
) -> Outcome<Vec<Measure>> {
    let mut digested = Ok(());
    let mut results = Vec::new();
    rayon::scope(|scope| {
        scope.spawn(|_| {
            let digests = following.par_iter_mut().zip(files).enumerate();
            digested = digests.try_for_each(|(index, (digest, file))| {
                let ends = batch.iter().filter(|piece| piece.file == first + index);
                ends.map(|piece| piece.block.source_end())
                    .max()
                    .map_or(Ok(()), |end| digest.advance(file, end))
            });
        });
        results = batch
            .par_iter()
            .map(|piece| {
                progress::check()?;
                piece.block.convert(output, offsets[piece.job])
            })
            .collect();
    });
    let measures = results.into_iter().collect::<Outcome<_>>()?;
    digested.map(|()| measures)
}

type Stream<'j> = Box<dyn Iterator<Item = Piece<'j>> + 'j>;

/// For each file the blocks that begin in it, in the order of its bytes.
fn streams<'j>(files: usize, jobs: &'j [Job<'j>]) -> Vec<Stream<'j>> {
    let mut by_file = vec![Vec::new(); files];
    for (index, job) in jobs.iter().enumerate() {
        for (part, own) in job.parts.iter().enumerate() {
            let tensor = own.words.tensors()[0];
            by_file[tensor.file].push((tensor.begin, index, part));
        }
    }
    let stream = |(file, mut parts): (usize, Vec<(usize, usize, usize)>)| -> Stream<'j> {
        parts.sort_unstable();
        Box::new(parts.into_iter().flat_map(move |(_, job, part)| {
            let blocks = blocks_of(&jobs[job], &jobs[job].parts[part]);
            blocks.map(move |block| Piece { block, file, job, part })
        }))
    };
    by_file.into_iter().enumerate().map(stream).collect()
}

/// One piece of each stream in turn.
struct Alternating<'j>(VecDeque<Stream<'j>>);

impl<'j> Iterator for Alternating<'j> {
    type Item = Piece<'j>;

    fn next(&mut self) -> Option<Piece<'j>> {
        while let Some(mut stream) = self.0.pop_front() {
            if let Some(piece) = stream.next() {
                self.0.push_back(stream);
                return Some(piece);
            }
        }
        None
    }
}
