//! Single items from all over the data.

use super::{Reading, Schunk};
use crate::chunk::{self, BlockReader, Decoded, Decoding, Runs, Threads, Unit};
use crate::error::{Error, ErrorKind, Result, ensure};
use crate::format::chunk_header::ChunkHeader;
use parking_lot::Mutex;

/// The items of one chunk that are asked for: item number in the chunk, and number in the output.
type Wanted = (usize, usize);

impl Schunk {
    /// Copies the items with the numbers `coords`, in any order and as often as they occur, to `dest`.
    ///
    /// # Errors
    ///
    /// `InvalidParam` for items outside of the data, chunks of variable size or variable-length blocks, and if `dest` is
    /// too short, before anything is written; `Failure` if a chunk cannot be read.
    pub fn get_sparse(&self, coords: &[i64], dest: &mut [u8], reading: &Reading<'_>) -> Result<()> {
        if coords.is_empty() {
            return Ok(());
        }
        let invalid = |holds: bool, what| ensure(holds, ErrorKind::InvalidParam, what);
        let typesize = self.typesize();
        let chunksize = usize::try_from(self.chunksize()).unwrap_or(0);
        invalid(chunksize > 0 && !self.has_vl_blocks(), "chunks of variable size have no item numbers")?;
        invalid(chunksize % typesize == 0, "chunks of broken items")?;
        let room = coords.len().checked_mul(typesize).is_some_and(|len| len <= dest.len());
        invalid(room, "destination too short")?;
        let nitems = self.nbytes() / typesize as u64; // widening
        let per_chunk = (chunksize / typesize) as u64; // widening
        let mut wanted: Vec<(u64, usize)> = Vec::with_capacity(coords.len());
        for (to, &coord) in coords.iter().enumerate() {
            let item = u64::try_from(coord).ok().filter(|&item| item < nitems);
            let item = item.ok_or(Error::new(ErrorKind::InvalidParam, "item out of range"))?;
            wanted.push((item, to));
        }
        wanted.sort_unstable();
        let small =
            |value: u64| usize::try_from(value).expect("chunks have less than 2^31 items and numbers");
        let groups: Vec<(usize, Vec<Wanted>)> = wanted
            .chunk_by(|a, b| a.0 / per_chunk == b.0 / per_chunk)
            .map(|group| {
                let items = group.iter().map(|&(item, to)| (small(item % per_chunk), to)).collect();
                (small(group[0].0 / per_chunk), items)
            })
            .collect();
        self.read_groups(&groups, typesize, dest, reading)
    }

    fn read_groups(
        &self,
        groups: &[(usize, Vec<Wanted>)],
        typesize: usize,
        dest: &mut [u8],
        reading: &Reading<'_>,
    ) -> Result<()> {
        let alone = Decoding { threads: Threads::default(), ..reading.dec };
        let failure = |e: Error| Error::new(ErrorKind::Failure, e.what());
        let tasks = reading.dec.threads.nthreads.min(groups.len());
        let executor = reading.dec.threads.executor.filter(|_| tasks > 1);
        let (Some(executor), None, None) = (executor, reading.visit, reading.dec.postfilter) else {
            for (nchunk, items) in groups {
                reading.visit(*nchunk);
                let put = |to: usize, item: &[u8]| dest[to * typesize..][..typesize].copy_from_slice(item);
                self.read_items(*nchunk, items, typesize, &alone, put).map_err(failure)?;
            }
            return Ok(());
        };
        // Threads gather the items of one chunk each; they are put in their places afterwards.
        let gathered: Vec<Mutex<Result<Vec<u8>>>> =
            groups.iter().map(|_| Mutex::new(Ok(Vec::new()))).collect();
        let next = std::sync::atomic::AtomicUsize::new(0);
        executor.run(tasks, &|_| {
            loop {
                let i = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                let Some((nchunk, items)) = groups.get(i) else { return };
                let mut own = Vec::with_capacity(items.len() * typesize);
                let read =
                    self.read_items(*nchunk, items, typesize, &alone, |_, item| own.extend_from_slice(item));
                *gathered[i].lock() = read.map(|()| own);
            }
        });
        for ((_, items), own) in groups.iter().zip(gathered) {
            let own = own.into_inner().map_err(failure)?;
            for ((_, to), item) in items.iter().zip(own.chunks_exact(typesize)) {
                dest[to * typesize..][..typesize].copy_from_slice(item);
            }
        }
        Ok(())
    }

    /// Passes the items of chunk `nchunk` to `put`, in the order of `items`, which are sorted.
    fn read_items(
        &self,
        nchunk: usize,
        items: &[Wanted],
        typesize: usize,
        dec: &Decoding<'_>,
        mut put: impl FnMut(usize, &[u8]),
    ) -> Result<()> {
        self.with_lazy(nchunk, dec, |dec, bytes| {
            let header = ChunkHeader::read(bytes)?;
            let last = items.last().map_or(0, |item| (item.0 + 1) * typesize);
            ensure(!header.is_vl() && last <= header.nbytes, ErrorKind::Data, "chunk of another size")?;
            if header.blocksize % typesize != 0 {
                return read_broken_items(dec, bytes, items, typesize, put);
            }
            let chunk = BlockReader::open(dec, &header, bytes)?;
            let block_of = |item: usize| item * typesize / header.blocksize;
            let mut value = vec![0; typesize];
            // Items of one block are decoded together.
            for group in items.chunk_by(|a, b| block_of(a.0) == block_of(b.0)) {
                let nblock = block_of(group[0].0);
                let offset = |item: usize| item * typesize - nblock * header.blocksize;
                let runs = Runs {
                    start: offset(group[0].0),
                    end: offset(group[group.len() - 1].0) + typesize,
                    len: group.len() * typesize,
                    run: typesize,
                    granule: typesize,
                    at_once: false,
                };
                chunk.read_runs(nblock, &runs, |decoded| {
                    for &(item, to) in group {
                        match &decoded {
                            Decoded::Window(bytes) => {
                                put(to, &bytes[offset(item) - runs.start..][..typesize]);
                            }
                            Decoded::Runs(take) => {
                                take(offset(item), &mut value);
                                put(to, &value);
                            }
                        }
                    }
                    Ok(())
                })?;
            }
            Ok(())
        })
    }
}

/// Passes items to `put`, some of which may lie in two blocks.
fn read_broken_items(
    dec: &Decoding<'_>,
    bytes: &[u8],
    items: &[Wanted],
    typesize: usize,
    mut put: impl FnMut(usize, &[u8]),
) -> Result<()> {
    let number =
        |value: usize| i32::try_from(value).map_err(|_| Error::new(ErrorKind::Data, "chunk too large"));
    let mut value = vec![0; typesize];
    for &(item, to) in items {
        let (start, count) = (number(item * typesize)?, number(typesize)?);
        let n = chunk::getitem(dec, bytes, Unit::Bytes, start, count, &mut value)?;
        ensure(n == typesize, ErrorKind::Data, "chunk of another size")?;
        put(to, &value);
    }
    Ok(())
}
