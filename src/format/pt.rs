//! Tensors that `torch.save` wrote in its zip format.
//!
//! A pickle describes tensors as views of storages, each a stored member of the archive. [`pickle::Machine`]
//! reads the pickle and runs no code. Refuses everything but strided tensors and flat dicts of them. Like
//! torch, it verifies no checksums. Invariant: a sample consists of its view's elements in C order and native
//! byte order; its storage contains all of them.

mod pickle;
mod tensor;

use std::collections::HashMap;
use std::ops::Range;

use super::arrays::{Arrays, Layout, listed};
use super::headers;
use crate::archive::{Directory, EXPANSION, Member};
use crate::column::{Blobs, Look};
use crate::error::{Error, Result};
use pickle::{Machine, Value};
use tensor::{Storage, Tensor};

/// Versions of the format that torch reads (`caffe2/serialize/versions.h`).
const VERSIONS: Range<u64> = 1..11;
/// Maximum size of a pickle.
const LONGEST_PICKLE: u64 = 16 << 20;
/// Maximum size of the small members: version, byte order and the like.
const LONGEST_TEXT: u64 = 1024;

impl Arrays {
    /// Reads the pickles of all files of `torch.save`; returns the format and the bytes with their stamps. For dicts, `key`
    /// selects the tensor.
    ///
    /// # Errors
    ///
    /// [`Error::Decode`], [`Error::Read`]: no file can be read; those of [`headers`].
    pub fn pt(
        blobs: &Blobs,
        key: Option<&str>,
        tick: &mut dyn FnMut(usize) -> Result<()>,
    ) -> Result<(Arrays, Blobs)> {
        let key = key.map(str::to_owned);
        let (blobs, found) = headers(blobs, move |look| read(look, key.as_deref()), tick)?;
        Ok((Arrays::new(found, &blobs)?, blobs))
    }
}

/// Reads the description of a file's sample.
fn read(look: &mut Look<'_>, key: Option<&str>) -> Result<Layout> {
    let archive = Archive::open(look)?;
    if archive.members.contains_key("constants.pkl") {
        return Err(Error::decode("it holds a TorchScript module, no tensor"));
    }
    archive.expect_version(look)?;
    let is_little = archive.is_little(look)?;
    let pickle = archive.member("data.pkl")?;
    if pickle.size > LONGEST_PICKLE {
        let reason = format!(
            "its pickle has {} bytes; at most {LONGEST_PICKLE} are read",
            pickle.size
        );
        return Err(Error::decode(reason));
    }
    let pickle = look.read(pickle.range())?;
    let (machine, made) = Machine::run(&pickle)?;
    let tensor = choose(&machine, made, key)?;
    let mut member = None;
    for (number, storage) in machine.storages.iter().enumerate() {
        let found = archive.storage(storage)?;
        if number == tensor.storage {
            member = Some(found);
        }
    }
    let member = member.ok_or(Error::Abandoned)?;
    let stored = machine.storages[tensor.storage].dtype;
    let swapped = is_little != cfg!(target_endian = "little") && tensor.dtype.itemsize() > 1;
    if swapped && stored != Some(tensor.dtype) {
        return Err(Error::decode(format!(
            "its {} are in the other byte order, and torch does not turn such storages around",
            tensor.dtype.name()
        )));
    }
    layout(tensor, member, look.len(), swapped)
}

/// Finds the tensor that is the sample.
fn choose<'m>(machine: &'m Machine<'_>, made: Value<'_>, key: Option<&str>) -> Result<&'m Tensor> {
    let wanted = match (made, key) {
        (Value::Tensor(_), None) => made,
        (Value::Dict(dict), None) => {
            let keys = keys(machine, dict);
            return Err(Error::decode(format!(
                "it holds a dict: give key=, one of {keys}"
            )));
        }
        (Value::Dict(dict), Some(key)) => {
            let mut items = machine.dicts[dict].items.iter().rev();
            let found = items.find(|item| item.0 == Value::Text(key));
            found.map(|item| item.1).ok_or_else(|| {
                let keys = keys(machine, dict);
                Error::decode(format!("its dict has no {key:?}; it has {keys}"))
            })?
        }
        (Value::Tensor(_), Some(key)) => {
            let reason = format!("it holds a tensor, no dict with {key:?}: leave key out");
            return Err(Error::decode(reason));
        }
        (other, _) => other,
    };
    match wanted {
        Value::Tensor(tensor) => Ok(&machine.tensors[tensor]),
        other => Err(Error::decode(format!(
            "it holds {} where a tensor is expected",
            other.describe()
        ))),
    }
}

fn keys(machine: &Machine<'_>, dict: usize) -> String {
    let items = &machine.dicts[dict].items;
    if items.is_empty() {
        return "no keys".into();
    }
    listed(items.iter().map(|(key, _)| match key {
        Value::Text(key) => format!("{key:?}"),
        other => other.describe(),
    }))
}

/// A file of `torch.save`: members in one folder, all stored.
struct Archive {
    /// Members by their names in the folder.
    members: HashMap<String, Member>,
}

impl Archive {
    /// Finds all members, and reads the small ones that torch reads too.
    fn open(look: &mut Look<'_>) -> Result<Archive> {
        let directory = Directory::read(look).map_err(|error| match error {
            Error::Decode { reason, .. } => Error::decode(format!(
                "{reason} (torch.save writes zip files since version 1.6; save older files again)"
            )),
            other => other,
        })?;
        let strange =
            || Error::decode("no file of torch.save: its members do not lie in one folder");
        let first = std::str::from_utf8(directory.first()).ok();
        let (folder, _) = first
            .and_then(|name| name.split_once('/'))
            .ok_or_else(strange)?;
        let mut members = HashMap::new();
        for path in directory.names() {
            let path = std::str::from_utf8(path).map_err(|_| strange())?;
            let name = path
                .strip_prefix(folder)
                .and_then(|name| name.strip_prefix('/'));
            let (name, member) = (name.ok_or_else(strange)?, directory.member(look, path)?);
            let member = member.filter(|member| !member.deflated).ok_or_else(|| {
                Error::decode(format!(
                    "its member {path:?} is compressed; torch.save stores it"
                ))
            })?;
            members.insert(name.to_owned(), member);
        }
        let archive = Archive { members };
        if let Some(text) = archive.text(look, ".storage_alignment")?
            && text.trim().parse::<u64>().is_err()
        {
            return Err(Error::decode(format!(
                "its storages are aligned to {text:?}"
            )));
        }
        archive.text(look, ".data/serialization_id")?;
        Ok(archive)
    }

    fn member(&self, name: &str) -> Result<Member> {
        self.members.get(name).copied().ok_or_else(|| {
            Error::decode(format!("no file of torch.save: it has no member {name:?}"))
        })
    }

    /// Reads a small text member.
    fn text(&self, look: &mut Look<'_>, name: &str) -> Result<Option<String>> {
        let Some(member) = self.members.get(name) else {
            return Ok(None);
        };
        let bytes = if member.len > LONGEST_TEXT {
            None
        } else {
            Some(look.read(member.range())?)
        };
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        let text = text.ok_or_else(|| Error::decode(format!("its member {name:?} is no text")));
        text.map(Some)
    }

    fn expect_version(&self, look: &mut Look<'_>) -> Result<()> {
        let version = match self.text(look, ".data/version")? {
            Some(version) => version,
            None => self.text(look, "version")?.unwrap_or_default(),
        };
        let version = version.trim();
        if version
            .parse()
            .is_ok_and(|number| VERSIONS.contains(&number))
        {
            return Ok(());
        }
        let reason = format!("it has version {version:?} of the format, which is not known");
        Err(Error::decode(reason))
    }

    /// Returns true if numbers are little-endian, as in files that do not state it.
    fn is_little(&self, look: &mut Look<'_>) -> Result<bool> {
        match self.text(look, "byteorder")?.as_deref() {
            None | Some("little") => Ok(true),
            Some("big") => Ok(false),
            Some(other) => Err(Error::decode(format!(
                "its byte order is {other:?}, neither 'little' nor 'big'"
            ))),
        }
    }

    fn storage(&self, storage: &Storage<'_>) -> Result<Member> {
        let member = self.member(&format!("data/{}", storage.key))?;
        if member.len != storage.bytes {
            return Err(Error::decode(format!(
                "its storage {:?} has {} bytes, and {} are announced",
                storage.key, member.len, storage.bytes
            )));
        }
        Ok(member)
    }
}

/// Returns the layout of a tensor whose storage is `member`, in a file of `len` bytes.
fn layout(tensor: &Tensor, member: Member, len: u64, swapped: bool) -> Result<Layout> {
    let (view, itemsize) = (&tensor.view, tensor.dtype.itemsize());
    let elements = view.elements().unwrap_or(u64::MAX);
    if elements.saturating_mul(itemsize as u64) > len.saturating_mul(EXPANSION) {
        return Err(Error::decode(format!(
            "its tensor of shape {:?} repeats few elements, more than {EXPANSION} times the file",
            view.shape
        )));
    }
    let start = member
        .start
        .saturating_add(view.offset.saturating_mul(itemsize as u64));
    let strides = view.strides.iter().map(|&n| n.saturating_mul(itemsize));
    Ok(Layout::new(
        start,
        tensor.dtype,
        swapped,
        view.shape.clone(),
        strides.collect(),
    ))
}
