//! What a session does together with other ranks: results that are fetched, and claims that all ranks agree about.
//!
//! All ranks run the same script. A result stays where its blocks were made, between segments and after the program, until somebody asks for elements. Asking is
//! a call of all ranks, as running is: every rank says which tensor it wants, and on which rank. Blocks then come one by one, at most a window at a time, which is a part
//! of the budget; an array that is put together of them has to fit into the budget, and held tensors are spilled for it.
//!
//! Every segment begins with an agreement: a hash of its schedule and of the arrays in memory that it reads, compared with rank 0. If it differs, ranks look for the first
//! operation that does, and each names its line.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use tw_block::{Block, Source, SourceAccess};
use tw_ir::error::{Error, Result};
use tw_ir::program::{Node, Op, Program, SourceOp};
use tw_ir::schedule::Digest;
use tw_ir::{Array, BoxRegion, DType, EntityRef, Span};
use tw_run::{CancelToken, Claim, Fetch, Group, TensorHandle, bring};

use crate::bindings::Inputs;
use crate::budget::refused_array;
use crate::session::Session;

/// Bytes of blocks that a rank fetches at a time where it has no budget.
const WINDOW: u64 = 64 << 20;

/// The part of the free budget that fetched blocks take at a time.
const SHARE_OF_WINDOW: u64 = 4;

/// Results of at most so many bytes, which hosts read to decide what to do next, are kept on all ranks once they have been fetched.
const WORTH_REPLICATING: u64 = 64 << 10;

impl Session {
    /// The number of this rank among those that run programs together; 0 if there are no others.
    pub fn rank(&self) -> u32 {
        self.group().map_or(0, Group::rank)
    }

    /// The number of ranks that run programs together.
    pub fn n_ranks(&self) -> u32 {
        self.group().map_or(1, Group::size)
    }

    /// Takes part in nothing with other ranks any more: later runs of this session fail.
    pub fn leave_ranks(&self) {
        if let Some(group) = self.group() {
            group.leave();
        }
    }

    /// Brings all blocks of a tensor to one rank, or to all if none is named; the others keep what they have. All ranks ask for it together.
    pub fn fetch(&self, stored: &Arc<TensorHandle>, on: Option<u32>) -> Result<Arc<TensorHandle>> {
        self.fetch_until(stored, on, &self.token())
    }

    /// Gives the blocks of a tensor one by one, in their order, to one rank, or to all if none is named. All ranks ask for it together.
    pub fn gather(
        &self,
        stored: &TensorHandle,
        on: Option<u32>,
        take: &mut dyn FnMut(u64, Arc<Block>) -> Result<()>,
    ) -> Result<()> {
        self.gather_until(stored, on, &self.token(), take)
    }

    /// A tensor with all blocks on this rank. All ranks ask for it together.
    pub(crate) fn bring(&self, stored: &Arc<TensorHandle>, cancel: &CancelToken) -> Result<Arc<TensorHandle>> {
        self.fetch_until(stored, None, cancel)
    }

    fn fetch_until(
        &self,
        stored: &Arc<TensorHandle>,
        on: Option<u32>,
        cancel: &CancelToken,
    ) -> Result<Arc<TensorHandle>> {
        let Some(group) = self.group() else { return Ok(Arc::clone(stored)) };
        let bytes = stored.n_bytes().saturating_sub(stored.bytes_in_memory());
        let takes = on.is_none_or(|on| on == group.rank());
        self.make_room(if takes { bytes } else { 0 }).inspect_err(|error| group.fail(error))?;
        Ok(Arc::new(bring(group, stored, &self.fetching(on, cancel))?))
    }

    fn gather_until(
        &self,
        stored: &TensorHandle,
        on: Option<u32>,
        cancel: &CancelToken,
        take: &mut dyn FnMut(u64, Arc<Block>) -> Result<()>,
    ) -> Result<()> {
        match self.group() {
            Some(group) => group.fetch(stored, &self.fetching(on, cancel), take),
            None => {
                let mut blocks = (0u64..).zip(stored.blocks());
                blocks.try_for_each(|(position, block)| take(position, block.block_for(self.meter())?))
            }
        }
    }

    fn fetching<'a>(&'a self, to: Option<u32>, cancel: &'a CancelToken) -> Fetch<'a> {
        let free = self.budget().map(|budget| budget.saturating_sub(self.memory().0));
        let window = free.map_or(WINDOW, |free| (free / SHARE_OF_WINDOW).min(WINDOW));
        Fetch { to, window, meter: self.meter(), cancel }
    }

    /// All elements of a tensor of several ranks, on one of them or on all.
    pub(crate) fn array_of_ranks(
        &self,
        stored: &Arc<TensorHandle>,
        on: Option<u32>,
        cancel: &CancelToken,
    ) -> Result<Option<Array>> {
        let Some(group) = self.group() else { return stored.to_array().map(Some) };
        let whole = BoxRegion::whole(&stored.shape());
        let mut array = None;
        if on.is_none_or(|on| on == group.rank()) {
            let room = self
                .room_for_array(stored)
                .and_then(|()| Block::for_output(stored.dtype().storage(), whole.clone(), Some(self.meter())));
            array = Some(room.inspect_err(|error| group.fail(error))?);
        }
        self.gather_until(stored, on, cancel, &mut |_, block| {
            let Some(array) = &mut array else { return Ok(()) };
            let (bbox, buffer) = array.output()?;
            block.copy_moved_overlap(block.bbox(), bbox, buffer)
        })?;
        array.map(|array| array.into_array()?.with_dtype(stored.dtype())).transpose()
    }

    /// Sees to it that an array fits into the budget beside the blocks that it is put together of, and what is held.
    fn room_for_array(&self, stored: &TensorHandle) -> Result<()> {
        let Some(budget) = self.budget() else { return Ok(()) };
        let size = stored.dtype().size();
        let largest = stored.grid().iter().fold(size, |bytes, axis| bytes.saturating_mul(axis.longest()));
        let bytes = stored.n_bytes();
        let needed = bytes.saturating_add(if stored.blocks().len() > 1 { largest } else { 0 });
        if needed > budget {
            return Err(refused_array(budget, bytes, needed, None));
        }
        self.make_room(needed)
    }

    /// Small results are kept where they were fetched.
    pub(crate) fn is_worth_replicating(&self, stored: &TensorHandle) -> bool {
        self.group().is_some() && stored.n_bytes() <= WORTH_REPLICATING
    }

    /// A tensor whose elements only one rank has. All ranks call it; the owner gives the array. It is cut into blocks for the ranks, which are sent to those that read them.
    #[track_caller]
    pub fn array_of_rank(&self, owner: u32, array: Option<Array>) -> Result<crate::Tensor> {
        let span = crate::tensor::span_of(std::panic::Location::caller());
        let make = || {
            let Some(group) = self.group() else {
                let array = array.ok_or_else(|| Error::source("there is one rank, and it gives no array"))?;
                return Ok(self.array(array));
            };
            if owner >= group.size() {
                let text = format!("rank {owner} of {} has no array", group.size());
                return Err(Error::source(text).help("ranks are numbered from 0"));
            }
            let is_owner = group.rank() == owner;
            let given = array.filter(|_| is_owner);
            if is_owner && given.is_none() {
                let error = Error::source(format!("rank {owner} is said to have an array, and gives none"));
                group.fail(&error);
                return Err(error);
            }
            let described = given.as_ref().map_or(Vec::new(), describe);
            let (dtype, shape) = described_type(&group.share(owner, &described, &self.token())?)?;
            let bytes = shape.iter().fold(dtype.size(), |bytes, &n| bytes.saturating_mul(n));
            let share = bytes.div_ceil(u64::from(group.size())).max(1);
            let grid = crate::automatic_chunks(&shape, dtype.size(), share);
            let handle = TensorHandle::of_rank(dtype, grid, owner, given.map(Arc::new))?;
            Ok(self.kept(Arc::new(handle)))
        };
        crate::at_span(span, make).map_err(|error| error.at(&span))
    }

    /// What the first rank has decided, where hosts may decide differently. Of a single one, its own decision.
    pub(crate) fn decided_by_first(&self, own: Vec<u8>) -> Result<Vec<u8>> {
        match self.group() {
            Some(group) => group.share(0, &own, &self.token()),
            None => Ok(own),
        }
    }

    /// Compares a segment with rank 0, before it runs.
    pub(crate) fn agree_about(
        &self,
        program: &Program,
        schedule: Digest,
        inputs: &Inputs,
        cancel: &CancelToken,
    ) -> Result<()> {
        let Some(group) = self.group() else { return Ok(()) };
        let data = inputs.values().filter_map(|source| of_elements(source.as_ref()));
        let digests: Vec<Digest> = std::iter::once(schedule).chain(data).collect();
        let parts = || program.body.nodes.iter().map(|node| (hash_of(program, node, inputs), node.span)).collect();
        let parts: &dyn Fn() -> Vec<(u64, Span)> = &parts;
        // A rank whose budget does not suffice says so instead of agreeing, and then nobody has begun.
        let waits = self.budget().is_some();
        group.agree(&Claim { digest: Digest::of_all(&digests), waits, parts }, cancel)
    }
}

/// A hash over the elements of a source in memory. Files are compared by their types alone: hosts may have copies of their own.
fn of_elements(source: &dyn Source) -> Option<Digest> {
    if source.access() == SourceAccess::Memory { source.fingerprint() } else { None }
}

/// A hash over what an operation is, the same in every process.
fn hash_of(program: &Program, node: &Node, inputs: &Inputs) -> u64 {
    let mut hasher = DefaultHasher::new();
    let numbers = |values: &[tw_ir::program::ValueId]| values.iter().map(|value| value.index()).collect::<Vec<_>>();
    (numbers(&node.args), numbers(&node.results)).hash(&mut hasher);
    for &value in &node.results {
        program.ty(value).to_string().hash(&mut hasher);
    }
    match &node.op {
        Op::Source(SourceOp::Input { name, .. }) => {
            name.hash(&mut hasher);
            let elements = inputs.get(name).and_then(|source| of_elements(source.as_ref()));
            elements.map(|digest| digest.0).hash(&mut hasher);
        }
        op => op.hash(&mut hasher),
    }
    hasher.finish()
}

/// The type of an array in a few bytes.
fn describe(array: &Array) -> Vec<u8> {
    let mut text = array.dtype().to_string();
    array.shape().iter().for_each(|n| text.push_str(&format!(" {n}")));
    text.into_bytes()
}

fn described_type(bytes: &[u8]) -> Result<(DType, Vec<u64>)> {
    let wrong = || Error::internal("the type of an array of another rank cannot be read");
    let text = std::str::from_utf8(bytes).map_err(|_| wrong())?;
    let mut words = text.split(' ');
    let dtype = words.next().and_then(|word| word.parse().ok()).ok_or_else(wrong)?;
    Ok((dtype, words.map(|word| word.parse().map_err(|_| wrong())).collect::<Result<_>>()?))
}
