//! Collation rules of batches that are not stacked, and the structure of such a batch.

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::column::parse_dtype;
use super::form::{Form, Unit};
use super::pack::Pack;
use super::pad::{Pad, number};
use super::template::Template;
use crate::Error;
use crate::collate::{
    self, Dense, Field, Labels, Mask, Method, PackedColumn, PackedField, Packs, Padding,
};
use crate::column::{Kind, Layout};
use crate::memory::Dtype;
use crate::program;

/// The collation rule of one leaf. See the stub.
#[pyclass(frozen, module = "fastload._lib")]
pub(super) struct Rule {
    core: collate::Rule,
    output_form: OutputForm,
}

/// The form of a collated field in Python.
#[derive(Clone, Copy, PartialEq)]
enum OutputForm {
    /// The form of the leaf.
    Plain,
    /// Tensors, one for each sample.
    Tensors,
    /// One nested tensor.
    Jagged,
}

#[pymethods]
impl Rule {
    #[new]
    #[pyo3(signature = (how, field, *, pad=None, lengths=false, mask=None, to=None, like=None, labels=None))]
    #[allow(clippy::too_many_arguments)] // keywords
    fn new(
        how: &str,
        field: &str,
        pad: Option<&Bound<'_, Pad>>,
        lengths: bool,
        mask: Option<(Option<usize>, bool)>,
        to: Option<&str>,
        like: Option<usize>,
        labels: Option<(i64, i64)>,
    ) -> PyResult<Rule> {
        let mask = mask.map(|(rank, is_wide)| Mask {
            rank,
            dtype: if is_wide { Dtype::Int64 } else { Dtype::Bool },
        });
        let core = match (how, pad) {
            ("stack", None) => Method::Stack,
            ("pad", Some(pad)) => Method::Pad(Padding {
                pad: pad.get().core.clone(),
                lengths,
                mask,
            }),
            ("flat" | "jagged", None) => Method::Join,
            ("keep" | "tensors", None) => Method::Separate,
            _ => return Err(PyValueError::new_err(format!("no rule {how:?}"))),
        };
        Ok(Rule {
            core: collate::Rule {
                field: field.into(),
                method: core,
                to: to.map(parse_dtype).transpose()?,
                like,
                labels: labels.map(|(token, label)| Labels { token, label }),
                ..collate::Rule::default()
            },
            output_form: match how {
                "tensors" => OutputForm::Tensors,
                "jagged" => OutputForm::Jagged,
                _ => OutputForm::Plain,
            },
        })
    }

    #[staticmethod]
    #[pyo3(signature = (field, columns, pack=None, *, positions=false, segments=None, boundaries=0, flat=false))]
    fn pack(
        field: &str,
        columns: Vec<(Bound<'_, PyAny>, Option<Bound<'_, PyAny>>)>,
        pack: Option<&Bound<'_, Pack>>,
        positions: bool,
        segments: Option<(i32, String)>,
        boundaries: usize,
        flat: bool,
    ) -> PyResult<Rule> {
        let columns = columns.iter().map(|(fill, start)| {
            Ok(PackedColumn {
                fill: number(fill)?,
                start: start.as_ref().map(number).transpose()?,
            })
        });
        let segments = segments.map(|(first, name)| Ok::<_, PyErr>((first, parse_dtype(&name)?)));
        let packs = Packs {
            packing: pack.map(|pack| pack.get().core),
            columns: columns.collect::<PyResult<_>>()?,
            positions,
            segments: segments.transpose()?,
            boundaries,
            is_flat: flat,
        };
        Ok(Rule {
            core: collate::Rule {
                field: field.into(),
                method: Method::Pack(Box::new(packs)),
                ..collate::Rule::default()
            },
            output_form: OutputForm::Plain,
        })
    }
}

/// A value in a batch: its leaf, and which result of the leaf's rule it is.
#[derive(Clone, Copy)]
struct BatchValue {
    leaf: usize,
    what: ValueKind,
}

#[derive(Clone, Copy, PartialEq)]
enum ValueKind {
    Values,
    Lengths,
    Mask,
    Tokens,
    Offsets,
    Labels,
    Positions,
    Segments,
    /// With the number of the tensor.
    Boundaries(usize),
    Longest,
}

impl ValueKind {
    fn from_name(name: &str) -> Option<ValueKind> {
        Some(match name {
            "values" => ValueKind::Values,
            "lengths" => ValueKind::Lengths,
            "mask" => ValueKind::Mask,
            "tokens" => ValueKind::Tokens,
            "offsets" => ValueKind::Offsets,
            "labels" => ValueKind::Labels,
            "positions" => ValueKind::Positions,
            "segments" => ValueKind::Segments,
            "boundaries" => ValueKind::Boundaries(0),
            "boundaries again" => ValueKind::Boundaries(1),
            "longest" => ValueKind::Longest,
            _ => return None,
        })
    }

    /// Returns true if a rule produces it.
    fn is_of(self, rule: &collate::Rule) -> bool {
        match (self, &rule.method) {
            (ValueKind::Values, _)
            | (ValueKind::Tokens, Method::Pad(_) | Method::Pack(_))
            | (ValueKind::Offsets, Method::Join)
            | (ValueKind::Longest, Method::Pack(_)) => true,
            (ValueKind::Lengths, Method::Pad(padding)) => padding.lengths,
            (ValueKind::Mask, Method::Pad(padding)) => padding.mask.is_some(),
            (ValueKind::Labels, Method::Pad(_)) => rule.labels.is_some(),
            (ValueKind::Labels, Method::Pack(packs)) => packs.columns.len() > 1,
            (ValueKind::Positions, Method::Pack(packs)) => packs.positions,
            (ValueKind::Segments, Method::Pack(packs)) => packs.segments.is_some(),
            (ValueKind::Boundaries(number), Method::Pack(packs)) => number < packs.boundaries,
            _ => false,
        }
    }
}

/// The collation of batches: the rule and the form of each leaf.
pub(super) struct Collation {
    parts: Vec<BatchValue>,
    template: Template,
    /// The form of each leaf in Python.
    output_forms: Vec<OutputForm>,
    /// Called with a batch; returns what the user gets.
    wrap: Option<Py<PyAny>>,
}

impl Collation {
    /// Reads rules, one for each leaf, and the structure of a batch, in which a `Leaf` stands for the part of
    /// that number.
    pub(super) fn read(
        core: &program::Program,
        forms: &[Form],
        rules: &[Bound<'_, Rule>],
        parts: Vec<(usize, String)>,
        structure: &Bound<'_, PyAny>,
        wrap: Option<Py<PyAny>>,
        asks: bool,
    ) -> PyResult<(program::Program, Collation)> {
        let mut own = Vec::with_capacity(rules.len());
        for ((rule, form), leaf) in rules.iter().zip(forms).zip(core.leaves()) {
            own.push(fitted(rule.get(), *form, leaf.layout())?);
        }
        let parts = parts.into_iter().map(|(leaf, what)| {
            let Some(what) = ValueKind::from_name(&what) else {
                return Err(PyValueError::new_err(format!("no part {what:?}")));
            };
            let has = own.get(leaf).is_some_and(|rule| what.is_of(rule));
            if has {
                return Ok(BatchValue { leaf, what });
            }
            let message = format!("leaf {leaf} has no such part by its rule");
            Err(PyValueError::new_err(message))
        });
        let parts = parts.collect::<PyResult<Vec<_>>>()?;
        let mut seen = vec![None; parts.len()];
        let collation = Collation {
            parts,
            template: Template::parse(structure, &mut seen)?,
            output_forms: rules.iter().map(|rule| rule.get().output_form).collect(),
            wrap,
        };
        let leaves = core.leaves().len();
        let core = core.collated(own, asks).ok_or_else(|| {
            let message = format!(
                "{} rules for {leaves} leaves: one for each, to pack all or none",
                rules.len()
            );
            PyValueError::new_err(message)
        })?;
        Ok((core, collation))
    }

    /// Makes a batch from the fields of all leaves.
    pub(super) fn build<'py>(
        &self,
        py: Python<'py>,
        fields: Vec<Field>,
        forms: &[Form],
        tensor: &dyn Fn(Dense) -> PyResult<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let fields = fields.into_iter().zip(forms).zip(&self.output_forms);
        let made = fields
            .map(|((field, form), output_form)| values(py, field, *form, *output_form, tensor));
        let made = made.collect::<PyResult<Vec<_>>>()?;
        let values = self.parts.iter().map(|part| {
            let found = made[part.leaf].iter().find(|(what, _)| *what == part.what);
            let (_, value) = found.ok_or(Error::Abandoned)?; // unreachable: the offsets of a jagged leaf
            Ok(value.clone_ref(py))
        });
        let values = values.collect::<PyResult<Vec<_>>>()?;
        let batch = self.template.fill(py, &values, Unit::Sample)?;
        match &self.wrap {
            Some(wrap) => wrap.bind(py).call1((batch,)),
            None => Ok(batch),
        }
    }
}

/// Returns the rule for a leaf of this form; raises if the leaf cannot have it.
fn fitted(rule: &Rule, form: Form, layout: &Layout) -> PyResult<collate::Rule> {
    let output_form = rule.output_form;
    let mut rule = rule.core.clone();
    rule.lists = form == Form::List;
    let is_array = layout.kind.is_numbers() && layout.kind != Kind::Lists;
    // Nested Python lists are arrays in some batches; Python collates the others.
    let is_like_array = is_array || layout.kind == Kind::Lists && form == Form::List;
    let in_order = form != Form::ChannelsLast;
    let fits = match &rule.method {
        Method::Stack => is_array || rule.to.is_none(),
        Method::Separate => is_array || output_form != OutputForm::Tensors,
        Method::Join => is_like_array && in_order,
        Method::Pad(padding) => {
            let element = padding.pad.fill.element(layout.dtype);
            element.map_err(|mismatch| mismatch.of_field(&rule.field))?;
            is_like_array && in_order
        }
        Method::Pack(_) => is_array && in_order,
    };
    if fits {
        return Ok(rule);
    }
    let message = format!(
        "{} cannot be padded, joined or packed natively",
        layout.describe()
    );
    Err(PyValueError::new_err(message))
}

/// Makes the Python values of the field of one leaf.
fn values(
    py: Python<'_>,
    field: Field,
    form: Form,
    output_form: OutputForm,
    tensor: &dyn Fn(Dense) -> PyResult<Py<PyAny>>,
) -> PyResult<Vec<(ValueKind, Py<PyAny>)>> {
    let value = match field {
        Field::Padded(padded) => {
            let tokens = padded.tokens.into_pyobject(py)?.into_any().unbind();
            let mut made = vec![
                (ValueKind::Values, tensor(padded.values)?),
                (ValueKind::Tokens, tokens),
            ];
            let beside = [
                (ValueKind::Lengths, padded.lengths),
                (ValueKind::Mask, padded.mask),
                (ValueKind::Labels, padded.labels),
            ];
            for (what, field) in beside {
                if let Some(field) = field {
                    made.push((what, tensor(field)?));
                }
            }
            return Ok(made);
        }
        Field::Joined(joined) => {
            let (values, offsets) = (tensor(joined.values)?, tensor(joined.offsets)?);
            if output_form != OutputForm::Jagged {
                return Ok(vec![
                    (ValueKind::Values, values),
                    (ValueKind::Offsets, offsets),
                ]);
            }
            jagged(py, values, offsets, joined.extremes)?
        }
        Field::Packed(packed) => return rows(py, packed, tensor),
        Field::Separate(samples) => {
            let form = match form {
                Form::ChannelsLast => form,
                _ if output_form == OutputForm::Tensors => Form::Tensor,
                _ => form,
            };
            let samples = samples.into_iter();
            let samples = samples.map(|sample| form.value(py, sample, Unit::Sample, tensor));
            let samples = samples.collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, samples)?.into_any().unbind()
        }
        field => form.value(py, field, Unit::Batch, tensor)?,
    };
    Ok(vec![(ValueKind::Values, value)])
}

/// Makes the Python values of packed samples.
fn rows(
    py: Python<'_>,
    packed: PackedField,
    tensor: &dyn Fn(Dense) -> PyResult<Py<PyAny>>,
) -> PyResult<Vec<(ValueKind, Py<PyAny>)>> {
    let number = |number: usize| Ok::<_, PyErr>(number.into_pyobject(py)?.into_any().unbind());
    let mut made = vec![
        (ValueKind::Longest, number(packed.longest)?),
        (ValueKind::Tokens, number(packed.tokens)?),
    ];
    let columns = [ValueKind::Values, ValueKind::Labels]
        .into_iter()
        .zip(packed.columns);
    let boundaries = packed.boundaries.into_iter().enumerate();
    let boundaries = boundaries.map(|(number, ends)| (ValueKind::Boundaries(number), ends));
    let positions = packed.positions.map(|field| (ValueKind::Positions, field));
    let segments = packed.segments.map(|field| (ValueKind::Segments, field));
    for (what, field) in columns.chain(boundaries).chain(positions).chain(segments) {
        made.push((what, tensor(field)?));
    }
    Ok(made)
}

/// Makes one nested tensor, with its shortest and longest length.
fn jagged(
    py: Python<'_>,
    values: Py<PyAny>,
    offsets: Py<PyAny>,
    (shortest, longest): (usize, usize),
) -> PyResult<Py<PyAny>> {
    let options = PyDict::new(py);
    options.set_item(intern!(py, "min_seqlen"), shortest)?;
    options.set_item(intern!(py, "max_seqlen"), longest)?;
    let nested = py.import(intern!(py, "torch.nested"))?;
    let make = nested.getattr(intern!(py, "nested_tensor_from_jagged"))?;
    Ok(make.call((values, offsets), Some(&options))?.unbind())
}
