//! A field of lists of numbers: one array per line.

use super::{Jsonl, misfit};
use crate::column::{Blobs, Span, Spans};
use crate::error::{Error, Result};
use crate::format::json::Value;
use crate::format::{Array, Target};
use crate::memory::Dtype;
use crate::sync::Arc;

/// The lists of one field.
#[derive(Debug)]
pub struct JsonLists {
    source: Arc<Jsonl>,
    field: usize,
    dtype: Dtype,
}

impl JsonLists {
    /// Makes the column of a field of lists of `dtype`; also returns the bytes of the lines.
    ///
    /// # Errors
    ///
    /// None is known: the lines were found in their files.
    pub fn new(source: Arc<Jsonl>, field: usize, dtype: Dtype) -> Result<(JsonLists, Blobs)> {
        let lines = source.lines();
        let spans = (0..lines.len()).map(|index| {
            let (file, place) = lines.place(index);
            Span {
                file: file as u32,
                start: place.start,
                len: place.end - place.start,
            }
        });
        let spans = Spans::new(lines.files().clone(), spans.collect()).ok_or(Error::Abandoned)?;
        let lists = JsonLists {
            source,
            field,
            dtype,
        };
        Ok((lists, Blobs::spans(spans)))
    }

    /// Writes the elements of a list to its sample.
    fn write(
        &self,
        value: Option<Value<'_>>,
        target: &mut dyn Target,
    ) -> Result<std::result::Result<(), String>> {
        let Some(elements) = value.and_then(Value::elements) else {
            let reason = misfit(value, Some(self.dtype));
            return Ok(Err(format!("not a list of numbers: {reason}")));
        };
        let count = value.and_then(Value::elements).map_or(0, Iterator::count);
        let out = target.shaped(&[count])?;
        let places = out.chunks_exact_mut(self.dtype.itemsize());
        for (position, (element, place)) in elements.zip(places).enumerate() {
            if element.write(self.dtype, place).is_none() {
                let reason = misfit(Some(element), Some(self.dtype));
                return Ok(Err(format!("element {position} of the list: {reason}")));
            }
        }
        Ok(Ok(()))
    }
}

impl Array for JsonLists {
    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn decode(&self, index: usize, bytes: &[u8], target: &mut dyn Target) -> Result<()> {
        let made = self
            .source
            .pick(bytes, self.field, |value| self.write(value, target));
        match made {
            Ok(written) => match written? {
                Ok(()) => Ok(()),
                Err(reason) => self.source.refuse(index, Some(self.field), &reason),
            },
            Err(flaw) => self.source.broken(index, flaw),
        }
    }
}
