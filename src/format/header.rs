//! The headers of many files, read before an epoch begins.

use crate::column::{Blobs, Look};
use crate::error::{Error, Result};
use crate::scan::scan;

/// What was found at the beginning of a file.
#[derive(Clone, Debug)]
pub enum Header<H> {
    /// What it says.
    Known(H),
    /// It is damaged: in words, why.
    Broken(Box<str>),
    /// The file could not be read; it is tried again when its sample is wanted.
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
                "it could not be read when the column was made; make the column anew",
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

/// Reads the headers of all samples on the threads of the pool; returns them in order, and the bytes
/// with the stamps of their files. `tick` is told now and then how many are read.
///
/// # Errors
///
/// Those of [`scan`]; what is wrong with one file is in its header.
pub fn headers<H: Send + 'static>(
    blobs: &Blobs,
    read: impl Fn(&mut Look<'_>) -> Result<H> + Send + Sync + 'static,
    tick: &mut dyn FnMut(usize) -> Result<()>,
) -> Result<(Blobs, Vec<Header<H>>)> {
    let all = blobs.clone();
    let one = move |index| {
        let Ok(mut look) = all.look(index) else {
            return (None, Header::Unread);
        };
        let stamp = look.stamp();
        match read(&mut look) {
            Ok(header) => (stamp, Header::Known(header)),
            Err(Error::Decode { reason, .. }) => (stamp, Header::Broken(reason.into())),
            Err(_) => (None, Header::Unread),
        }
    };
    let found = scan(blobs.len(), one, tick)?;
    let (stamps, headers) = found.into_iter().unzip();
    Ok((blobs.clone().with_stamps(stamps), headers))
}
