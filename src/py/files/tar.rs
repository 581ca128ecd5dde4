//! `_lib.Tar`.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::{Blobs, tick};
use crate::Result;
use crate::archive::{Members, index_tar};
use crate::column::{self, Files, Paths, Spans};
use crate::scan::scan;
use crate::sync::Arc;

/// The index of tar files.
#[pyclass(frozen, module = "fastload._lib")]
pub(in crate::py) struct Tar {
    files: Arc<Files>,
    members: Members,
}

#[pymethods]
impl Tar {
    #[new]
    #[pyo3(signature = (paths, progress=None))]
    fn new(py: Python<'_>, paths: Vec<OsString>, progress: Option<Py<PyAny>>) -> PyResult<Tar> {
        let mut tick = tick(progress.as_ref(), paths.len());
        let (members, stamps) = py.detach(|| -> Result<_> {
            let shards = paths.clone();
            let look = move |shard: usize| index_tar(Path::new(&shards[shard]));
            let (mut members, mut stamps) = (Members::default(), Vec::new());
            for (file, found) in scan(paths.len(), look, &mut tick)?.into_iter().enumerate() {
                let (found, stamp) = found?;
                members.append(found, file as u32);
                stamps.push(stamp);
            }
            Ok((members, stamps))
        })?;
        let paths: Paths = paths.into_iter().collect();
        Ok(Tar {
            files: Arc::new(Files::new(paths, stamps)),
            members,
        })
    }

    fn __len__(&self) -> usize {
        self.members.len()
    }

    fn keys(&self) -> Vec<&str> {
        self.members.keys().iter().map(|key| &**key).collect()
    }

    fn extensions(&self) -> BTreeMap<&str, usize> {
        self.members.extensions().collect()
    }

    fn lacking(&self, extensions: Vec<String>) -> Vec<usize> {
        let found = self.members.find(&extensions).into_iter().enumerate();
        found
            .filter_map(|(sample, span)| span.is_none().then_some(sample))
            .collect()
    }

    fn shard(&self, sample: usize) -> Option<&OsStr> {
        let file = self.members.file(sample)? as usize;
        Some(self.files.path(file).as_os_str())
    }

    fn changed(&self) -> bool {
        (0..self.files.len()).any(|file| self.files.has_changed(file))
    }

    fn members(&self, extensions: Vec<String>, samples: Vec<usize>) -> PyResult<Blobs> {
        let found = self.members.find(&extensions);
        let spans = samples
            .iter()
            .map(|&sample| found.get(sample).copied().flatten());
        let spans: Option<Vec<_>> = spans.collect();
        let spans = spans.and_then(|spans| Spans::new(self.files.clone(), spans.into()));
        let lacking =
            || PyValueError::new_err(format!("not every sample has one of {extensions:?}"));
        Ok(Blobs {
            core: column::Blobs::spans(spans.ok_or_else(lacking)?),
        })
    }
}
