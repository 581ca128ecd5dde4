//! The headers of many files, read before an epoch begins.

use std::ops::Range;
use std::time::Duration;

use crate::column::{Blobs, Look, Stamp};
use crate::error::{Error, Result};
use crate::memory::Dtype;
use crate::scan::scan;

/// The result of reading a header.
#[derive(Clone, Debug)]
pub enum Header<H> {
    /// Its contents.
    Known(H),
    /// It is damaged; the reason in words.
    Broken(Box<str>),
    /// The file could not be read.
    Unread,
}

impl<H> Header<H> {
    /// Returns its contents.
    ///
    /// # Errors
    ///
    /// [`Error::Decode`]: it is damaged, or could not be read.
    pub fn known(&self) -> Result<&H> {
        match self {
            Header::Known(header) => Ok(header),
            Header::Broken(reason) => Err(Error::decode(&**reason)),
            Header::Unread => Err(Error::decode(
                "it could not be read when the column was made; make the column again",
            )),
        }
    }

    /// Returns its contents; None without any.
    pub fn ok(&self) -> Option<&H> {
        match self {
            Header::Known(header) => Some(header),
            _ => None,
        }
    }

    /// Converts its contents.
    pub fn map<T>(self, convert: impl FnOnce(H) -> T) -> Header<T> {
        match self {
            Header::Known(header) => Header::Known(convert(header)),
            Header::Broken(reason) => Header::Broken(reason),
            Header::Unread => Header::Unread,
        }
    }

    /// Returns the range of its file that is read for a sample, given its contents.
    ///
    /// # Errors
    ///
    /// As [`Header::known`]; but a file that could not be read is read again, for the error of that.
    pub fn part(&self, part: impl FnOnce(&H) -> Range<u64>) -> Result<Range<u64>> {
        match self {
            Header::Unread => Ok(Blobs::ALL),
            _ => self.known().map(part),
        }
    }
}

/// Attempts to open and read a file, while the system fails to, before its header counts as unread.
const ATTEMPTS: u32 = 3;

/// Reads the headers of all samples on pool threads; returns them in order, and the bytes with the stamps of
/// their files. `tick` receives the number of headers read so far.
///
/// # Errors
///
/// Those of [`scan`]; [`Error::Read`]: the process has no descriptor or no memory left, which says nothing
/// about the file. Errors of a single file are in its header.
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
/// [`Error::Read`]: a system error that may not recur.
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

/// Returns true for read errors that may not recur: not if the file is missing or access is denied.
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

/// Returns the one dtype of a column, that of the first header; marks headers with another one as broken.
///
/// # Errors
///
/// No header is known; the error is that of the first.
pub(super) fn one_dtype<H>(
    headers: &mut [Header<H>],
    blobs: &Blobs,
    dtype_of: impl Fn(&H) -> Dtype,
) -> Result<Dtype> {
    let Some(dtype) = headers.iter().find_map(|header| header.ok().map(&dtype_of)) else {
        let empty = "there is no file that gives the dtype of the column";
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

/// Returns the error if no header is known: that of the first, or `empty` if there is no file.
pub(super) fn nothing<H>(headers: &[Header<H>], blobs: &Blobs, empty: &str) -> Error {
    let Some(first) = headers.first() else {
        return Error::decode(empty);
    };
    match (first, blobs.look(0)) {
        (Header::Unread, Err(error)) => error,
        _ => match first.known() {
            Err(error) => error.of_file(blobs.path(0)),
            Ok(_) => Error::Abandoned,
        },
    }
}
