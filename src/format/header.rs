//! The headers of many files, read before an epoch begins.

use std::time::Duration;

use crate::column::{Blobs, Look, Stamp};
use crate::error::{Error, Result};
use crate::memory::Dtype;
use crate::scan::scan;

/// What was found at the beginning of a file.
#[derive(Clone, Debug)]
pub enum Header<H> {
    /// What it says.
    Known(H),
    /// It is damaged: in words, why.
    Broken(Box<str>),
    /// The file could not be read.
    Unread,
}

impl<H> Header<H> {
    /// What it says.
    ///
    /// # Errors
    ///
    /// [`Error::Decode`]: nothing that can be used, and why.
    pub fn known(&self) -> Result<&H> {
        match self {
            Header::Known(header) => Ok(header),
            Header::Broken(reason) => Err(Error::decode(&**reason)),
            Header::Unread => Err(Error::decode(
                "it could not be read when the column was made; make the column again",
            )),
        }
    }

    /// What it says, if anything.
    pub fn ok(&self) -> Option<&H> {
        match self {
            Header::Known(header) => Some(header),
            _ => None,
        }
    }

    /// Whether the file could not be read.
    pub fn is_unread(&self) -> bool {
        matches!(self, Header::Unread)
    }
}

/// Times that a file is opened and read while the system fails to, before its header counts as unread.
const ATTEMPTS: u32 = 3;

/// Reads the headers of all samples on the threads of the pool; returns them in order, and the bytes
/// with the stamps of their files. `tick` is told now and then how many are read.
///
/// # Errors
///
/// Those of [`scan`]; [`Error::Read`]: the process has no descriptor or no memory left to look at a file
/// with, which says nothing about the file. What is wrong with one file is in its header.
pub fn headers<H: Send + 'static>(
    blobs: &Blobs,
    read: impl Fn(&mut Look<'_>) -> Result<H> + Send + Sync + 'static,
    tick: &mut dyn FnMut(usize) -> Result<()>,
) -> Result<(Blobs, Vec<Header<H>>)> {
    let all = blobs.clone();
    let one = move |index| {
        let mut attempt = 0;
        loop {
            let failure = match look_at(&all, index, &read) {
                Err(error) if is_passing(&error) => error,
                found => return found,
            };
            attempt += 1;
            if attempt == ATTEMPTS {
                return if is_exhausted(&failure) {
                    Err(failure)
                } else {
                    Ok((None, Header::Unread))
                };
            }
            std::thread::sleep(Duration::from_millis(1 << attempt));
        }
    };
    let found = scan(blobs.len(), one, tick)?;
    let found = found.into_iter().collect::<Result<Vec<_>>>()?;
    let (stamps, headers) = found.into_iter().unzip();
    Ok((blobs.clone().with_stamps(stamps), headers))
}

/// Reads one header; returns it with the stamp of its file.
///
/// # Errors
///
/// [`Error::Read`]: the system failed in a way that may pass.
fn look_at<H>(
    blobs: &Blobs,
    index: usize,
    read: &impl Fn(&mut Look<'_>) -> Result<H>,
) -> Result<(Option<Stamp>, Header<H>)> {
    let mut look = match blobs.look(index) {
        Err(error) if is_passing(&error) => return Err(error),
        Err(_) => return Ok((None, Header::Unread)),
        Ok(look) => look,
    };
    let stamp = look.stamp();
    match read(&mut look) {
        Ok(header) => Ok((stamp, Header::Known(header))),
        Err(Error::Decode { reason, .. }) => Ok((stamp, Header::Broken(reason.into()))),
        Err(error) if is_passing(&error) => Err(error),
        Err(_) => Ok((None, Header::Unread)),
    }
}

/// Returns true for failures to read that another attempt may not meet: not where the file is missing or
/// may not be read.
fn is_passing(error: &Error) -> bool {
    use std::io::ErrorKind::{IsADirectory, NotADirectory, NotFound, PermissionDenied};
    let lasting = [IsADirectory, NotADirectory, NotFound, PermissionDenied];
    matches!(error, Error::Read { source, .. } if !lasting.contains(&source.kind()))
}

/// Returns true if the process, or the system, has no descriptor or no memory left.
fn is_exhausted(error: &Error) -> bool {
    let exhausted = [libc::EMFILE, libc::ENFILE, libc::ENOMEM].map(Some);
    matches!(error, Error::Read { source, .. } if exhausted.contains(&source.raw_os_error()))
}

/// Finds the one dtype of a column, the first header's; others are broken for having another.
///
/// # Errors
///
/// Not one header is known: what is wrong with the first.
pub(super) fn one_dtype<H>(
    headers: &mut [Header<H>],
    blobs: &Blobs,
    dtype_of: impl Fn(&H) -> Dtype,
) -> Result<Dtype> {
    let Some(dtype) = headers.iter().find_map(|header| header.ok().map(&dtype_of)) else {
        let empty = "there is no file to tell the dtype of the column by";
        return Err(nothing(headers, blobs, empty));
    };
    for header in headers {
        if let Some(found) = header.ok().map(&dtype_of)
            && found != dtype
        {
            let (this, other) = (found.name(), dtype.name());
            let reason = format!("its elements are {this}, those of the first file {other}");
            *header = Header::Broken(reason.into());
        }
    }
    Ok(dtype)
}

/// Why not one header is known: what is wrong with the first; `empty` where there is no file.
pub(super) fn nothing<H>(headers: &[Header<H>], blobs: &Blobs, empty: &str) -> Error {
    let Some(first) = headers.first() else {
        return Error::decode(empty);
    };
    match (first.is_unread(), blobs.look(0)) {
        (true, Err(error)) => error,
        _ => match first.known() {
            Err(error) => error.of_file(blobs.path(0)),
            Ok(_) => Error::Abandoned,
        },
    }
}
