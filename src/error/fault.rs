//! Sorts the errors of samples: those of their content, those of the storage that may pass, and all others.
//!
//! Refuses to guess: an error that is not known to be a sample's own ends the batch.

use std::io::{self, ErrorKind};
use std::path::Path;

use super::Error;

/// The class of an error: a bad sample, a failure that may pass, a sample for Python, or neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The sample cannot be made, now or later.
    Bad(Reason),
    /// The storage failed, and may work when it is tried again.
    Passing,
    /// Native code does not make such a sample, and Python may.
    Unsupported,
    /// Anything else, such as a full memory, a panic, or samples that do not fit together.
    Fatal,
}

/// The reason why a sample is bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Its file does not exist or may not be opened.
    Missing,
    /// Its bytes cannot be decoded.
    Decode,
    /// An operation cannot be applied to it.
    Transform,
    /// Python code raised another exception.
    Exception,
}

impl Reason {
    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Missing => "missing",
            Reason::Decode => "decode",
            Reason::Transform => "transform",
            Reason::Exception => "exception",
        }
    }
}

/// Number of `EIO`, which has no [`ErrorKind`]; on Windows another number has that meaning, and this one a kind.
const EIO: i32 = 5;

impl Error {
    /// Returns what the error says about the sample that it is about.
    pub fn fault(&self) -> Fault {
        match self {
            Error::Read { source, .. } => of_system(source),
            Error::Decode { .. }
            | Error::TooSlow { .. }
            | Error::Changed { .. }
            | Error::Null { .. }
            | Error::Utf8 { .. } => Fault::Bad(Reason::Decode),
            Error::Transform { .. } | Error::ImageMismatch { .. } | Error::Broadcast { .. } => {
                Fault::Bad(Reason::Transform)
            }
            Error::Channels { .. } => Fault::Unsupported,
            Error::Fallback { fault, .. } => *fault,
            Error::AtPosition { source, .. } => source.fault(),
            _ => Fault::Fatal,
        }
    }

    /// Returns the file that the error names.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Error::Read { path, .. }
            | Error::Changed { path, .. }
            | Error::Decode { path, .. }
            | Error::TooSlow { path, .. }
            | Error::ImageMismatch { path, .. }
            | Error::Null { path, .. }
                if !path.as_os_str().is_empty() =>
            {
                Some(path)
            }
            Error::AtPosition { source, .. } => source.path(),
            _ => None,
        }
    }
}

fn of_system(error: &io::Error) -> Fault {
    match error.kind() {
        ErrorKind::NotFound
        | ErrorKind::NotADirectory
        | ErrorKind::IsADirectory
        | ErrorKind::PermissionDenied => Fault::Bad(Reason::Missing),
        ErrorKind::UnexpectedEof | ErrorKind::InvalidData => Fault::Bad(Reason::Decode),
        ErrorKind::StaleNetworkFileHandle | ErrorKind::TimedOut => Fault::Passing,
        _ if error.raw_os_error() == Some(EIO) => Fault::Passing,
        _ => Fault::Fatal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(number: i32) -> Fault {
        Error::read(Path::new("a"), io::Error::from_raw_os_error(number)).fault()
    }

    #[test]
    fn storage_may_recover_and_a_missing_file_is_bad_and_a_full_table_is_neither() {
        for number in [libc::EIO, libc::ESTALE, libc::ETIMEDOUT] {
            assert_eq!(read(number), Fault::Passing);
        }
        for number in [libc::ENOENT, libc::ENOTDIR, libc::EISDIR, libc::EACCES] {
            assert_eq!(read(number), Fault::Bad(Reason::Missing));
        }
        for number in [libc::EMFILE, libc::ENOMEM, libc::ENOSPC] {
            assert_eq!(read(number), Fault::Fatal);
        }
    }

    #[test]
    fn a_file_that_ends_early_is_bad_and_an_index_out_of_range_is_not() {
        let short = io::Error::from(ErrorKind::UnexpectedEof);
        let error = Error::read(Path::new("a"), short).at(3);
        assert_eq!(error.fault(), Fault::Bad(Reason::Decode));
        assert_eq!(error.path(), Some(Path::new("a")));
        assert_eq!(Error::Index { index: 9, len: 3 }.fault(), Fault::Fatal);
        let message = String::new();
        assert_eq!(Error::Panic { message }.fault(), Fault::Fatal);
    }
}
