//! What a super-chunk holds, as plain vectors, and the rules for the sizes of its chunks.

/// A super-chunk in the simplest form.
#[derive(Clone, Default)]
pub struct Model {
    pub chunks: Vec<Vec<u8>>,
    pub metalayers: Vec<(String, Vec<u8>)>,
    pub vlmetalayers: Vec<(String, Vec<u8>)>,
    /// Bytes of a full chunk; 0 if they differ, -1 if unknown.
    pub chunksize: i64,
}

impl Model {
    pub fn new() -> Self {
        Self { chunksize: -1, ..Self::default() }
    }

    pub fn len(&self) -> i64 {
        i64::try_from(self.chunks.len()).expect("few chunks")
    }

    pub fn data(&self) -> Vec<u8> {
        self.chunks.concat()
    }

    fn last_is_short(&self) -> bool {
        self.chunks.last().is_some_and(|last| size(last) < self.chunksize)
    }

    /// Whether a chunk of `n` bytes at position `at` leaves the chunks of one size.
    pub fn insert_stays_fixed(&self, at: usize, n: i64) -> bool {
        match self.chunksize {
            -1 => true,
            0 => false,
            full if at == self.chunks.len() => !self.last_is_short() && n <= full,
            full => !self.last_is_short() && n == full,
        }
    }

    pub fn insert(&mut self, at: usize, data: Vec<u8>) {
        let n = size(&data);
        if self.chunksize == -1 {
            self.chunksize = n;
        } else if !self.insert_stays_fixed(at, n) {
            self.chunksize = 0;
        }
        self.chunks.insert(at, data);
    }

    pub fn update_stays_fixed(&self, at: usize, n: i64) -> bool {
        self.chunksize > 0 && (n == self.chunksize || (n < self.chunksize && at + 1 == self.chunks.len()))
    }

    pub fn update(&mut self, at: usize, data: Vec<u8>) {
        if !self.update_stays_fixed(at, size(&data)) {
            self.chunksize = 0;
        }
        self.chunks[at] = data;
    }

    /// Replaces the bytes from `at` on.
    pub fn overwrite(&mut self, mut at: usize, data: &[u8]) {
        let mut rest = data;
        for chunk in &mut self.chunks {
            if at < chunk.len() {
                let n = rest.len().min(chunk.len() - at);
                chunk[at..at + n].copy_from_slice(&rest[..n]);
                rest = &rest[n..];
                at = 0;
            } else {
                at -= chunk.len();
            }
        }
        assert!(rest.is_empty());
    }
}

/// A length as the API counts.
pub fn size(data: &[u8]) -> i64 {
    i64::try_from(data.len()).expect("a length")
}
