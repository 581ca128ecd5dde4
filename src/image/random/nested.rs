//! `RandomApply`, `RandomChoice` and `RandomOrder`: operations that contain others.

use crate::Result;
use crate::image::{Draws, Key, Op, Plan};

/// Operations, and the choice among them.
#[derive(Clone, Debug, PartialEq)]
pub enum Nested {
    /// All in order with this probability, otherwise none.
    Apply(f64, Vec<Op>),
    /// One of the lists, with a probability proportional to its weight; the sum of weights is above 0.
    Choice(Vec<(f64, Vec<Op>)>),
    /// All in random order.
    Order(Vec<Op>),
}

impl Nested {
    /// Draws, and adds the actions. Operations are numbered as they are listed, from `place + 1` on,
    /// including those within them: their draws depend neither on each other nor on the drawn order.
    pub(crate) fn plan(&self, key: Key, place: u32, plan: &mut Plan) -> Result<()> {
        let mut draws = Draws::new(key, place);
        match self {
            Self::Apply(p, ops) => {
                if draws.happens(*p) {
                    run(ops, key, place + 1, plan)?;
                }
            }
            Self::Choice(branches) => {
                let weights: Vec<_> = branches.iter().map(|(weight, _)| *weight).collect();
                let chosen = draws.weighted(&weights);
                let before = branches[..chosen].iter().flat_map(|(_, ops)| ops);
                let first = place + 1 + before.map(Op::places).sum::<u32>();
                run(&branches[chosen].1, key, first, plan)?;
            }
            Self::Order(ops) => {
                let mut numbered: Vec<_> = numbered(ops, place + 1).collect();
                draws.shuffle(&mut numbered);
                for (place, op) in numbered {
                    op.plan(key, place, plan)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the contained operations.
    pub(crate) fn ops(&self) -> impl Iterator<Item = &Op> {
        let (list, branches): (&[Op], &[(f64, Vec<Op>)]) = match self {
            Self::Apply(_, ops) | Self::Order(ops) => (ops, &[]),
            Self::Choice(branches) => (&[], branches),
        };
        list.iter().chain(branches.iter().flat_map(|(_, ops)| ops))
    }

    /// Returns the property of the results that is always the same; `before` is the property of the input,
    /// and `after` returns it for one operation.
    pub(crate) fn fixed<T: Copy + PartialEq>(
        &self,
        before: Option<T>,
        after: impl Fn(&Op, Option<T>) -> Option<T>,
    ) -> Option<T> {
        let all = |ops: &[Op]| ops.iter().fold(before, |before, op| after(op, before));
        match self {
            Self::Apply(p, ops) if *p >= 1.0 => all(ops),
            Self::Apply(_, ops) => before.filter(|_| all(ops) == before),
            Self::Choice(branches) => {
                let mut each = branches.iter().map(|(_, ops)| all(ops));
                let first = each.next()??;
                each.all(|other| other == Some(first)).then_some(first)
            }
            // Any of them may come last: once one has set it, all others must keep it.
            Self::Order(ops) => {
                let made = ops.iter().find_map(|op| after(op, None)).or(before)?;
                let kept = |op| after(op, Some(made)) == Some(made);
                ops.iter().all(kept).then_some(made)
            }
        }
    }
}

/// Adds operations in order; `first` is the place of the first one.
pub(crate) fn run(ops: &[Op], key: Key, first: u32, plan: &mut Plan) -> Result<()> {
    numbered(ops, first).try_for_each(|(place, op)| op.plan(key, place, plan))
}

/// Numbers operations from `first` on; those within one follow it.
fn numbered(ops: &[Op], first: u32) -> impl Iterator<Item = (u32, &Op)> {
    ops.iter().scan(first, |next, op| {
        let place = *next;
        *next += op.places();
        Some((place, op))
    })
}
