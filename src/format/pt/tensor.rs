//! The functions that pickles of tensors call: `_rebuild_tensor_v2` and its kin of `torch/_utils.py`, and
//! storages.

use super::pickle::{Machine, Value, broken};
use crate::error::{Error, Result};
use crate::memory::Dtype;

/// Names of storages in `torch`, and their element types.
const STORAGES: [(&str, Dtype); 12] = [
    ("FloatStorage", Dtype::Float32),
    ("DoubleStorage", Dtype::Float64),
    ("HalfStorage", Dtype::Float16),
    ("BFloat16Storage", Dtype::BFloat16),
    ("LongStorage", Dtype::Int64),
    ("IntStorage", Dtype::Int32),
    ("ShortStorage", Dtype::Int16),
    ("CharStorage", Dtype::Int8),
    ("ByteStorage", Dtype::UInt8),
    ("BoolStorage", Dtype::Bool),
    ("ComplexFloatStorage", Dtype::Complex64),
    ("ComplexDoubleStorage", Dtype::Complex128),
];
const UNTYPED: (&str, &str) = ("torch.storage", "UntypedStorage");
const UTILS: &str = "torch._utils";
const ORDERED: (&str, &str) = ("collections", "OrderedDict");
/// Devices whose storages are saved like those of the CPU.
const DEVICES: [&str; 4] = ["cpu", "cuda", "mps", "xpu"];
/// Maximum of dimensions, as in NumPy.
const MOST_DIMENSIONS: usize = 64;

/// A storage, as a pickle describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Storage<'a> {
    /// Name of its member, below `data`.
    pub(super) key: &'a str,
    /// None for bytes.
    pub(super) dtype: Option<Dtype>,
    pub(super) bytes: u64,
}

/// A tensor, as a pickle describes it.
#[derive(Clone, Debug)]
pub(super) struct Tensor {
    /// Index into [`Machine::storages`].
    pub(super) storage: usize,
    pub(super) dtype: Dtype,
    pub(super) view: View,
}

/// The view of a storage; numbers are in elements.
#[derive(Clone, Debug)]
pub(super) struct View {
    pub(super) offset: u64,
    pub(super) shape: Vec<usize>,
    pub(super) strides: Vec<usize>,
}

impl View {
    /// Returns true if a pickle of tensors may contain this name.
    pub(super) fn is_known(module: &str, name: &str) -> bool {
        match module {
            UTILS => matches!(
                name,
                "_rebuild_tensor_v2" | "_rebuild_tensor_v3" | "_rebuild_parameter"
            ),
            "torch" => STORAGES.iter().any(|row| row.0 == name) || Dtype::from_name(name).is_some(),
            _ => (module, name) == UNTYPED || (module, name) == ORDERED,
        }
    }

    /// Returns the number of elements; None on overflow.
    pub(super) fn elements(&self) -> Option<u64> {
        let mut sizes = self.shape.iter();
        sizes.try_fold(1, |all: u64, &n| all.checked_mul(n as u64))
    }

    /// Returns the distance from the first element to the last; None on overflow. There must be at least one
    /// element.
    pub(super) fn reach(&self) -> Option<u64> {
        let mut pairs = self.shape.iter().zip(&self.strides);
        pairs.try_fold(0, |reach: u64, (&n, &stride)| {
            reach.checked_add((n as u64 - 1).checked_mul(stride as u64)?)
        })
    }
}

impl<'a> Machine<'a> {
    /// Returns the storage of a persistent id: `("storage", type, key, location, numel)`.
    pub(super) fn storage(&mut self, id: Value<'a>) -> Result<Value<'a>> {
        let items = match id {
            Value::Tuple(id) => self.tuples[id].as_slice(),
            _ => &[],
        };
        let &[
            Value::Text("storage"),
            Value::Global(module, name),
            Value::Text(key),
            Value::Text(location),
            Value::Int(count),
        ] = items
        else {
            return Err(broken("a storage has no proper id"));
        };
        let device = location.split(':').next().unwrap_or(location);
        if !DEVICES.contains(&device) {
            return Err(Error::decode(format!(
                "a storage is on {location:?}, where no elements are saved"
            )));
        }
        let typed = STORAGES.iter().find(|row| row.0 == name);
        let dtype = match typed {
            Some(&(_, dtype)) if module == "torch" => Some(dtype),
            _ if (module, name) == UNTYPED => None,
            _ => return Err(broken("a storage has an unknown type")),
        };
        let count = u64::try_from(count).ok();
        let bytes = count.and_then(|n| n.checked_mul(dtype.map_or(1, Dtype::itemsize) as u64));
        let bytes = bytes.ok_or_else(|| broken("a storage has an impossible size"))?;
        let storage = Storage { key, dtype, bytes };
        let next = self.storages.len();
        let number = *self.keys.entry(key).or_insert(next);
        if number == next {
            self.storages.push(storage);
        } else if self.storages[number] != storage {
            return Err(broken("a storage is described in two ways"));
        }
        Ok(Value::Storage(number))
    }

    /// Performs a call of one of torch's functions.
    pub(super) fn call(&mut self, function: Value<'a>, arguments: Value<'a>) -> Result<Value<'a>> {
        let Value::Tuple(arguments) = arguments else {
            return Err(broken("a function is called without arguments"));
        };
        let arguments = self.tuples[arguments].clone();
        let improper = || broken("a tensor is described in another way than torch does");
        match (function, arguments.as_slice()) {
            (Value::Global(module, name), []) if (module, name) == ORDERED => {
                Ok(self.new_dict(true))
            }
            (
                Value::Global(UTILS, "_rebuild_parameter"),
                &[Value::Tensor(tensor), Value::Bool(gradient), Value::Dict(_)],
            ) => {
                expect_gradient(self.tensors[tensor].dtype, gradient)?;
                Ok(Value::Tensor(tensor))
            }
            (
                Value::Global(UTILS, version @ ("_rebuild_tensor_v2" | "_rebuild_tensor_v3")),
                [storage, offset, shape, strides, gradient, hooks, rest @ ..],
            ) => {
                let (dtype, rest) = match (version, rest) {
                    ("_rebuild_tensor_v2", rest) => (None, rest),
                    (_, [Value::Global("torch", dtype), rest @ ..]) => {
                        (Some(Dtype::from_name(dtype).ok_or_else(improper)?), rest)
                    }
                    _ => return Err(improper()),
                };
                match rest {
                    [] => {}
                    [metadata] => self.expect_plain(*metadata)?,
                    _ => return Err(improper()),
                }
                let view = [*storage, *offset, *shape, *strides, *gradient, *hooks];
                self.rebuild(view, dtype)?.ok_or_else(improper)
            }
            _ => Err(improper()),
        }
    }

    /// Makes a tensor from a storage, an offset, sizes, strides, whether it has a gradient, and hooks; None of
    /// other values.
    fn rebuild(
        &mut self,
        values: [Value<'a>; 6],
        dtype: Option<Dtype>,
    ) -> Result<Option<Value<'a>>> {
        let [
            Value::Storage(storage),
            Value::Int(offset),
            Value::Tuple(shape),
            Value::Tuple(strides),
            Value::Bool(gradient),
            Value::Dict(_),
        ] = values
        else {
            return Ok(None);
        };
        let dtype = dtype.or(self.storages[storage].dtype);
        let dtype = dtype.unwrap_or(Dtype::UInt8);
        expect_gradient(dtype, gradient)?;
        let (shape, strides) = (self.sizes(shape)?, self.sizes(strides)?);
        let offset = u64::try_from(offset).map_err(|_| negative())?;
        if shape.len() != strides.len() || shape.len() > MOST_DIMENSIONS {
            return Err(Error::decode(format!(
                "a tensor has {} sizes and {} strides; expected as many, at most {MOST_DIMENSIONS}",
                shape.len(),
                strides.len()
            )));
        }
        let view = View {
            offset,
            shape,
            strides,
        };
        let itemsize = dtype.itemsize() as u64;
        let end = match view.elements() {
            Some(0) => Some(0),
            Some(_) => view
                .reach()
                .and_then(|reach| reach.checked_add(offset)?.checked_add(1))
                .and_then(|end| end.checked_mul(itemsize)),
            None => None,
        };
        if end.is_none_or(|end| end > self.storages[storage].bytes) {
            return Err(Error::decode(format!(
                "a tensor of shape {:?} reaches beyond its storage of {} bytes",
                view.shape, self.storages[storage].bytes
            )));
        }
        self.tensors.push(Tensor {
            storage,
            dtype,
            view,
        });
        Ok(Some(Value::Tensor(self.tensors.len() - 1)))
    }

    fn sizes(&self, tuple: usize) -> Result<Vec<usize>> {
        let items = self.tuples[tuple].iter().map(|item| match item {
            Value::Int(size) => usize::try_from(*size).map_err(|_| negative()),
            other => Err(broken(&format!("a size is {}", other.describe()))),
        });
        items.collect()
    }

    /// Refuses a tensor whose values differ from its storage's.
    fn expect_plain(&self, metadata: Value<'a>) -> Result<()> {
        match metadata {
            Value::None => Ok(()),
            Value::Dict(dict) if self.dicts[dict].items.is_empty() => Ok(()),
            _ => Err(Error::decode(
                "it holds a lazily conjugated or negated tensor: save tensor.resolve_conj().resolve_neg()",
            )),
        }
    }
}

/// Refuses gradients of integers, as torch does.
fn expect_gradient(dtype: Dtype, gradient: bool) -> Result<()> {
    let name = dtype.name();
    if gradient
        && !["float", "bfloat", "complex"]
            .iter()
            .any(|kind| name.starts_with(kind))
    {
        return Err(broken(&format!("a tensor of {name} requires a gradient")));
    }
    Ok(())
}

fn negative() -> Error {
    broken("a size, a stride or an offset is negative")
}
