//! The shapes of many samples, in two allocations.

/// A shape for each sample, or none where it is not known.
#[derive(Clone, Debug, Default)]
pub struct Shapes {
    dims: Vec<usize>,
    ends: Vec<usize>,
    known: Vec<bool>,
    same: bool,
}

impl Shapes {
    /// Shape of the sample at `index`, if it is known.
    pub fn get(&self, index: usize) -> Option<&[usize]> {
        let known = *self.known.get(index)?;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        known.then(|| &self.dims[start..self.ends[index]])
    }

    /// The shape of all samples whose shape is known, if that is one.
    pub fn common(&self) -> Option<&[usize]> {
        let first = self.known.iter().position(|&known| known)?;
        self.get(first).filter(|_| self.same)
    }
}

impl<S: AsRef<[usize]>> FromIterator<Option<S>> for Shapes {
    fn from_iter<I: IntoIterator<Item = Option<S>>>(shapes: I) -> Shapes {
        let mut all = Shapes {
            same: true,
            ..Shapes::default()
        };
        let mut first: Option<Vec<usize>> = None;
        for shape in shapes {
            if let Some(shape) = &shape {
                let first = first.get_or_insert_with(|| shape.as_ref().to_vec());
                all.same &= first == shape.as_ref();
                all.dims.extend_from_slice(shape.as_ref());
            }
            all.known.push(shape.is_some());
            all.ends.push(all.dims.len());
        }
        all
    }
}
