//! Single items from all over the data.

use super::chunks::{StoredChunks, for_each};
use super::{Reading, Schunk};
use crate::chunk::{BlockReader, Decoded, Decoding, DisjointParts, Plain, Runs, Threads};
use crate::error::{Error, ErrorKind, Result, ensure, require};
use crate::format::chunk_header::ChunkHeader;
use crate::format::consts::filter;
use crate::memory;

/// An item that is asked for: its number, and its place in the output, in items.
type Wanted = (u64, usize);

/// The numbers of the chunks that hold these items, `per_chunk` of which are in a chunk; of what is no item, any
/// number.
pub(crate) fn chunk_numbers(items: &[i64], per_chunk: u64) -> Result<Vec<usize>> {
    let number = |&item: &i64| usize::try_from(item.unsigned_abs() / per_chunk.max(1)).ok();
    let mut numbers = memory::collect(items.iter().filter_map(number))?;
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

impl Schunk {
    /// Copies the items with the numbers `coords`, in any order and as often as they occur, to `dest`.
    ///
    /// # Errors
    ///
    /// `InvalidParam` for items outside of the data, chunks of variable size or variable-length blocks, and if `dest`
    /// is too short, before anything is written; `Failure` if a chunk cannot be read; those of decoding it, but
    /// `Failure` for a single item, and with a delta filter or a postfilter.
    pub fn get_sparse(&self, coords: &[i64], dest: &mut [u8], reading: &Reading<'_>) -> Result<()> {
        if coords.is_empty() {
            return Ok(());
        }
        let numbers = || {
            let chunksize = u64::try_from(self.chunksize()).unwrap_or(0);
            chunk_numbers(coords, chunksize / self.typesize() as u64) // widening
        };
        let read = |chunks: &StoredChunks<'_>| self.get_sparse_from(chunks, coords, dest, reading);
        self.read_without_layout(numbers, read).map_err(Error::to_failure)?
    }

    /// As [`get_sparse`](Self::get_sparse), out of chunks that were looked up before.
    pub(crate) fn get_sparse_from(
        &self,
        chunks: &StoredChunks<'_>,
        coords: &[i64],
        dest: &mut [u8],
        reading: &Reading<'_>,
    ) -> Result<()> {
        let typesize = self.typesize();
        let sizes = chunks.sizes();
        let chunksize = usize::try_from(sizes.chunksize).unwrap_or(0);
        require(chunksize > 0 && !sizes.vl_blocks, "chunks of variable size have no item numbers")?;
        require(chunksize % typesize == 0, "chunk size is not a whole number of items")?;
        let fits = coords.len().checked_mul(typesize).is_some_and(|len| len <= dest.len());
        require(fits, "destination too short")?;
        let nitems = sizes.nbytes / typesize as u64; // widening
        let per_chunk = (chunksize / typesize) as u64; // widening
        let mut wanted: Vec<Wanted> = memory::with_capacity(coords.len())?;
        for (to, &coord) in coords.iter().enumerate() {
            let item = u64::try_from(coord).ok().filter(|&item| item < nitems);
            let item = item.ok_or(Error::new(ErrorKind::InvalidParam, "item out of range"))?;
            wanted.push((item, to));
        }
        wanted.sort_unstable();
        let chunk_of = |wanted: &Wanted| wanted.0 / per_chunk;
        let groups = memory::collect(wanted.chunk_by(|a, b| chunk_of(a) == chunk_of(b)))?;
        let dest = DisjointParts::new(dest);
        // The C library reads some items one by one, and loses the codes of decoders there.
        let has_delta = self.params().filters.contains(&filter::DELTA);
        let one_by_one = coords.len() == 1 || has_delta || reading.dec.postfilter.is_some();
        let number_of = |group: &[Wanted]| usize::try_from(chunk_of(&group[0])).expect("below 2^31");
        let read = |group: &&[Wanted], dec: &Decoding<'_>| {
            let nchunk = number_of(group);
            let items = Items { wanted: group, first: nchunk as u64 * per_chunk, typesize, dest: &dest }; // widening
            let decoded = chunks.with_lazy(nchunk, dec, |dec, bytes| Ok(items.read(dec, bytes)));
            decoded.map_err(Error::to_failure)?.map_err(|e| if one_by_one { e.to_failure() } else { e })
        };
        if reading.visit.is_some() {
            let dec = Decoding { threads: Threads::default(), ..reading.dec };
            for group in &groups {
                reading.visit(number_of(group));
                read(group, &dec)?;
            }
            return Ok(());
        }
        for_each(&groups, &reading.dec, read)
    }
}

/// The items of one chunk that are asked for, in ascending order.
struct Items<'a> {
    wanted: &'a [Wanted],
    /// Number of the chunk's first item.
    first: u64,
    typesize: usize,
    dest: &'a DisjointParts<'a>,
}

impl Items<'_> {
    /// Position of an item in the chunk, in bytes.
    fn position(&self, wanted: &Wanted) -> usize {
        usize::try_from(wanted.0 - self.first).expect("chunks have less than 2^31 items") * self.typesize
    }

    fn put(&self, wanted: &Wanted, item: &[u8]) {
        // SAFETY: the numbers of output items are all different, so nobody else has this part.
        let dest = unsafe { self.dest.part(wanted.1 * self.typesize, self.typesize) };
        dest.copy_from_slice(item);
    }

    /// Copies the items out of the chunk `bytes`, which may be lazy.
    fn read(&self, dec: &Decoding<'_>, bytes: &[u8]) -> Result<()> {
        let header = ChunkHeader::read(bytes)?;
        let last = self.wanted.last().map_or(0, |last| self.position(last) + self.typesize);
        ensure(!header.is_vl() && last <= header.nbytes, ErrorKind::Data, "chunk of another size")?;
        let chunk = BlockReader::open(dec, &header, bytes)?;
        match chunk.plain(self.typesize) {
            Some(Plain::Bytes(data)) => {
                for wanted in self.wanted {
                    self.put(wanted, &data[self.position(wanted)..][..self.typesize]);
                }
                Ok(())
            }
            Some(Plain::Constant) => {
                let mut item = memory::filled(0, self.typesize)?;
                chunk.fill(&mut item)?;
                self.wanted.iter().for_each(|wanted| self.put(wanted, &item));
                Ok(())
            }
            None if header.blocksize % self.typesize == 0 => self.read_blocks(&chunk),
            None => self.read_straddling_items(&chunk),
        }
    }

    /// Items of one block are decoded together.
    fn read_blocks(&self, chunk: &BlockReader<'_>) -> Result<()> {
        let (blocksize, typesize) = (chunk.header().blocksize, self.typesize);
        let block_of = |wanted: &Wanted| self.position(wanted) / blocksize;
        let mut item = memory::filled(0, typesize)?;
        for group in self.wanted.chunk_by(|a, b| block_of(a) == block_of(b)) {
            let nblock = block_of(&group[0]);
            let offset = |wanted: &Wanted| self.position(wanted) - nblock * blocksize;
            let runs = Runs {
                start: offset(&group[0]),
                end: offset(&group[group.len() - 1]) + typesize,
                granule: typesize,
                each: &|run| group.iter().map(offset).for_each(|at| run(at..at + typesize)),
            };
            chunk.read_runs(0, nblock, &runs, |decoded| {
                for wanted in group {
                    match &decoded {
                        Decoded::Window(bytes) => {
                            self.put(wanted, &bytes[offset(wanted) - runs.start..][..typesize]);
                        }
                        Decoded::Planes(planes) => {
                            planes.put(offset(wanted), &mut item);
                            self.put(wanted, &item);
                        }
                    }
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Items that may reach into the next block.
    fn read_straddling_items(&self, chunk: &BlockReader<'_>) -> Result<()> {
        let blocksize = chunk.header().blocksize;
        let mut item = memory::filled(0, self.typesize)?;
        for wanted in self.wanted {
            let (start, mut done) = (self.position(wanted), 0);
            while done < item.len() {
                let at = start + done;
                let (nblock, offset) = (at / blocksize, at % blocksize);
                let len = (item.len() - done).min(blocksize - offset);
                chunk.read(0, nblock, offset..offset + len, &mut item[done..done + len])?;
                done += len;
            }
            self.put(wanted, &item);
        }
        Ok(())
    }
}
