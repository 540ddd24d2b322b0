//! An array in the simplest form: a shape and its items, in C order.

/// The items of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dense {
    pub shape: Vec<i64>,
    pub typesize: usize,
    pub bytes: Vec<u8>,
}

/// A number of items, or a position among them, as an index.
pub fn at(n: i64) -> usize {
    usize::try_from(n).expect("not negative")
}

/// Items of a box.
pub fn items(shape: &[i64]) -> usize {
    shape.iter().map(|&n| at(n)).product()
}

/// Calls `visit` with each position of a box, in C order.
pub fn each(shape: &[i64], mut visit: impl FnMut(&[i64])) {
    if items(shape) == 0 {
        return;
    }
    let mut index = vec![0; shape.len()];
    loop {
        visit(&index);
        let Some(dim) = (0..shape.len()).rev().find(|&dim| index[dim] + 1 < shape[dim]) else { return };
        index[dim] += 1;
        index[dim + 1..].fill(0);
    }
}

/// The number of the item at `index`.
pub fn number(shape: &[i64], index: &[i64]) -> usize {
    shape.iter().zip(index).fold(0, |n, (&extent, &i)| n * at(extent) + at(i))
}

impl Dense {
    pub fn item(&self, index: &[i64]) -> &[u8] {
        let n = number(&self.shape, index) * self.typesize;
        &self.bytes[n..n + self.typesize]
    }

    pub fn set(&mut self, index: &[i64], item: &[u8]) {
        let n = number(&self.shape, index) * self.typesize;
        self.bytes[n..n + self.typesize].copy_from_slice(item);
    }

    /// The items of the outer product of `selection`.
    pub fn select(&self, selection: &[Vec<i64>]) -> Vec<u8> {
        let mut out = Vec::new();
        self.each_selected(selection, |_, index| out.extend(self.item(index)));
        out
    }

    /// Calls `visit` with the number within the selection and the position in the array.
    pub fn each_selected(&self, selection: &[Vec<i64>], mut visit: impl FnMut(usize, &[i64])) {
        let sizes: Vec<i64> =
            selection.iter().map(|list| i64::try_from(list.len()).expect("a count")).collect();
        let mut n = 0;
        each(&sizes, |k| {
            let index: Vec<i64> = k.iter().zip(selection).map(|(&k, list)| list[at(k)]).collect();
            visit(n, &index);
            n += 1;
        });
    }

    /// Writes `data` over the outer product of `selection`.
    pub fn overwrite(&mut self, selection: &[Vec<i64>], data: &[u8]) {
        let typesize = self.typesize;
        let frozen = Dense { shape: self.shape.clone(), typesize, bytes: Vec::new() };
        frozen.each_selected(selection, |n, index| self.set(index, &data[n * typesize..][..typesize]));
    }
}

/// The positions of a box, dimension by dimension.
pub fn ranges(start: &[i64], stop: &[i64]) -> Vec<Vec<i64>> {
    start.iter().zip(stop).map(|(&from, &to)| (from..to).collect()).collect()
}
