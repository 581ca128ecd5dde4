//! The shapes of samples, as far as their storage knows them.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::column::Column;
use crate::collate::Shape;
use crate::column;
use crate::error::Result;

/// Stands for a dimension that a sample does not have.
const NONE: i64 = -1;

/// The bytes of int64 `(samples, dimensions)`, and the number of dimensions.
type Table<'py> = (Bound<'py, PyBytes>, usize);

#[pyfunction]
pub(super) fn shapes<'py>(column: &Bound<'py, Column>) -> PyResult<Option<Table<'py>>> {
    let py = column.py();
    let core = column.get().core.clone();
    let Some((table, dimensions)) = py.detach(|| table(&*core))? else {
        return Ok(None);
    };
    let bytes = PyBytes::new_with(py, table.len() * size_of::<i64>(), |out| {
        let (out, _) = out.as_chunks_mut();
        for (bytes, size) in out.iter_mut().zip(table) {
            *bytes = size.to_ne_bytes();
        }
        Ok(())
    })?;
    Ok(Some((bytes, dimensions)))
}

/// Returns the shapes of all samples, each padded with [`NONE`], and the number of sizes for each; None if a
/// shape is known only when its sample is made.
fn table(column: &dyn column::Column) -> Result<Option<(Vec<i64>, usize)>> {
    let mut all = Vec::with_capacity(column.len());
    for index in 0..column.len() {
        match column.shape(index)? {
            Some(shape) => all.push(shape),
            None => return Ok(None),
        }
    }
    let dimensions = all.iter().map(Shape::len).max().unwrap_or(0);
    let mut table = vec![NONE; all.len() * dimensions];
    if dimensions > 0 {
        for (row, shape) in table.chunks_exact_mut(dimensions).zip(&all) {
            for (place, &size) in row.iter_mut().zip(shape) {
                *place = size.cast_signed() as i64;
            }
        }
    }
    Ok(Some((table, dimensions)))
}
