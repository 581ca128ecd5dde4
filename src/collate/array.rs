//! Reads the elements of one sample: bytes with a shape and strides, of any element type.

/// An array: bytes, and where its elements lie in them.
#[derive(Clone, Copy, Debug)]
pub struct Array<'a> {
    /// The memory that the array lies in.
    pub bytes: &'a [u8],
    /// Byte offset of its first element.
    pub first: usize,
    /// Its shape.
    pub shape: &'a [usize],
    /// Its strides in bytes, one for each dimension; they may be 0 or negative.
    pub strides: &'a [isize],
}

impl<'a> Array<'a> {
    /// Returns true for two dimensions, the second of this size, if its elements are further apart than the first's.
    fn is_across(&self, size: usize) -> bool {
        self.shape[1] == size && self.strides[0].abs() < self.strides[1].abs()
    }

    /// Returns the subarray at `index` of the first dimension.
    fn part(self, index: usize) -> Array<'a> {
        let step = self.strides[0].wrapping_mul(index.cast_signed());
        Array {
            first: self.first.wrapping_add_signed(step),
            shape: &self.shape[1..],
            strides: &self.strides[1..],
            ..self
        }
    }

    /// Returns the first dimension from which the elements are contiguous in C order.
    fn packed_from(self, itemsize: usize) -> usize {
        let mut packed = itemsize.cast_signed();
        for (dim, (&size, &stride)) in self.shape.iter().zip(self.strides).enumerate().rev() {
            if size > 1 && stride != packed {
                return dim + 1;
            }
            packed = packed.saturating_mul(size.cast_signed());
        }
        0
    }
}

/// The side of a sample that is padded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Before it.
    Left,
    /// After it.
    Right,
}

/// Writes samples into rows that may be larger than they are.
#[derive(Clone, Copy, Debug)]
pub(super) struct PaddedRow<'a> {
    /// Shape of a row.
    pub(super) shape: &'a [usize],
    /// The side that is padded.
    pub(super) side: Side,
    /// One element of the padding.
    pub(super) fill: &'a [u8],
}

impl PaddedRow<'_> {
    /// Writes an array of the same rank, no larger than the row, and the padding; each byte once.
    pub(super) fn write(&self, array: Array<'_>, out: &mut [u8]) {
        let rank = self.shape.len();
        if rank == 0 {
            out.copy_from_slice(&array.bytes[array.first..array.first + out.len()]);
            return;
        }
        let same = (1..rank)
            .rev()
            .take_while(|&dim| array.shape[dim] == self.shape[dim]);
        let block = array
            .packed_from(self.fill.len())
            .max(rank - 1 - same.count());
        self.write_from(array, 0, block, out);
    }

    /// Writes from dimension `dim` on. From dimension `block` on, both sides are contiguous.
    fn write_from(&self, array: Array<'_>, dim: usize, block: usize, out: &mut [u8]) {
        if out.is_empty() {
            return;
        }
        let places = self.shape[dim];
        let size = array.shape[0];
        let bytes = out.len() / places;
        let before = match self.side {
            Side::Left => places - size,
            Side::Right => 0,
        };
        let (head, rest) = out.split_at_mut(before * bytes);
        let (body, tail) = rest.split_at_mut(size * bytes);
        fill(self.fill, head);
        fill(self.fill, tail);
        if body.is_empty() {
        } else if dim >= block {
            body.copy_from_slice(&array.bytes[array.first..array.first + body.len()]);
        } else if dim + 1 == self.shape.len() {
            elements(array, bytes, (0, 1), body);
        } else if dim + 2 == self.shape.len() && array.is_across(self.shape[dim + 1]) {
            let count = array.shape[1];
            for at in 0..count {
                let column = Array {
                    first: (array.first).wrapping_add_signed(at.cast_signed() * array.strides[1]),
                    shape: &array.shape[..1],
                    strides: &array.strides[..1],
                    ..array
                };
                elements(column, self.fill.len(), (at, count), body);
            }
        } else {
            for (index, part) in body.chunks_exact_mut(bytes).enumerate() {
                self.write_from(array.part(index), dim + 1, block, part);
            }
        }
    }
}

/// Returns the strides of an array in C order, in bytes.
pub fn packed_strides(shape: &[usize], itemsize: usize) -> Vec<isize> {
    let mut strides = vec![0; shape.len()];
    let mut packed = itemsize;
    for (stride, &size) in strides.iter_mut().zip(shape).rev() {
        *stride = packed.cast_signed();
        packed = packed.saturating_mul(size);
    }
    strides
}

/// Copies an array to C order.
pub fn copy(array: Array<'_>, itemsize: usize, out: &mut [u8]) {
    let row = PaddedRow {
        shape: array.shape,
        side: Side::Right,
        fill: &[0; 16][..itemsize],
    };
    row.write(array, out);
}

/// Writes `element` over all of `out`.
pub(super) fn fill(element: &[u8], out: &mut [u8]) {
    if out.is_empty() {
        return;
    }
    match element {
        [first, rest @ ..] if rest.iter().all(|byte| byte == first) => out.fill(*first),
        [a, b] => out.as_chunks_mut().0.fill([*a, *b]),
        _ => match (element.try_into(), element.try_into(), element.try_into()) {
            (Ok(four), _, _) => out.as_chunks_mut::<4>().0.fill(four),
            (_, Ok(eight), _) => out.as_chunks_mut::<8>().0.fill(eight),
            (_, _, Ok(sixteen)) => out.as_chunks_mut::<16>().0.fill(sixteen),
            _ => unreachable!("elements have 1, 2, 4, 8 or 16 bytes"),
        },
    }
}

/// Copies elements that are not contiguous to `out`, from the first place on and then to each so many.
fn elements(array: Array<'_>, itemsize: usize, (first, step): (usize, usize), out: &mut [u8]) {
    if array.strides[0] == 0 && step == 1 {
        return fill(&array.bytes[array.first..array.first + itemsize], out);
    }
    match itemsize {
        1 => elements_of::<1>(array, first, step, out),
        2 => elements_of::<2>(array, first, step, out),
        4 => elements_of::<4>(array, first, step, out),
        8 => elements_of::<8>(array, first, step, out),
        _ => elements_of::<16>(array, first, step, out),
    }
}

fn elements_of<const N: usize>(array: Array<'_>, first: usize, step: usize, out: &mut [u8]) {
    let (out, _) = out.as_chunks_mut::<N>();
    let mut at = array.first;
    for element in out[first..].iter_mut().step_by(step) {
        element.copy_from_slice(&array.bytes[at..at + N]);
        at = at.wrapping_add_signed(array.strides[0]);
    }
}
