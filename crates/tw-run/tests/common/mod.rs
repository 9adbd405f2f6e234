//! Random schedules on tiny blocks, a serial replay of them, and data that can be told to fail.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part")]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use cranelift_entity::EntityRef;
use tw_block::{Block, CompiledKernel, Meter, Sink, Source, SourceAccess, provider};
use tw_ir::kernel::{Kernel, KernelRead, StatementKernel};
use tw_ir::program::{BlockFunction, FunctionRef, TensorType};
use tw_ir::schedule::{Digest, Instance, InstanceId, Memory, Move, Placement, Schedule, Step};
use tw_ir::workflow::{
    BlockId, BlockSet, Boxes, KernelEntry, KernelId, MaybeOperand, Operand, OutputDecl, SinkDecl, SourceDecl,
    Statement, StmtId, TaskKind, Workflow, verify,
};
use tw_ir::{
    Accum, Array, ArrayView, BinaryOp, BoxRegion, DType, Edge, Error, Grid, Idx, Result, Scalar, ScalarCode, Span, Var,
    random,
};
use tw_run::{Bindings, Prepared, TensorHandle};

/// Elements per block.
pub const N: u64 = 3;
pub const BLOCK_BYTES: u64 = N * 8;

/// A seeded stream of choices.
pub struct Dice {
    seed: u64,
    rolls: i64,
}

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice { seed, rolls: 0 }
    }
    pub fn below(&mut self, n: usize) -> usize {
        self.rolls += 1;
        random::integer(self.seed, self.rolls, 0, n.max(1) as i64) as usize
    }
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }
}

/// Adds its operands, and fails or panics on its n-th call.
pub struct Flaky {
    pub calls: AtomicUsize,
    pub fail_at: usize,
    pub panics: bool,
}

impl Flaky {
    pub fn never() -> Arc<Flaky> {
        Flaky::at(usize::MAX, false)
    }
    pub fn at(fail_at: usize, panics: bool) -> Arc<Flaky> {
        Arc::new(Flaky { calls: AtomicUsize::new(0), fail_at, panics })
    }
}

impl BlockFunction for Flaky {
    fn name(&self) -> &str {
        "flaky"
    }
    fn apply(&self, operands: &[ArrayView<'_>], results: &mut [Array]) -> Result<()> {
        if self.calls.fetch_add(1, Ordering::Relaxed) == self.fail_at {
            if self.panics {
                panic!("injected panic");
            }
            return Err(Error::data("injected failure"));
        }
        for k in 0..N {
            let sum = operands.iter().map(|a| a.get(&[k]).as_f64()).sum::<f64>();
            results[0].set(&[k], Scalar::F64(sum));
        }
        Ok(())
    }
}

/// Builds workflows whose tensors are single blocks of `N` elements.
pub struct Builder {
    pub workflow: Workflow,
    statement: StmtId,
    kernels: BTreeMap<&'static str, KernelId>,
    flaky: Arc<Flaky>,
}

impl Builder {
    pub fn new(flaky: &Arc<Flaky>) -> Builder {
        let mut workflow = Workflow::default();
        let statement =
            workflow.statements.push(Statement { label: "x = test".into(), span: Span::text(3, 9), node: None });
        Builder { workflow, statement, kernels: BTreeMap::new(), flaky: Arc::clone(flaky) }
    }

    /// Tasks added from now on belong to another statement.
    pub fn statement(&mut self, label: &str, span: Span) {
        self.statement = self.workflow.statements.push(Statement { label: label.into(), span, node: None });
        self.kernels.clear();
    }

    pub fn block(&mut self) -> BlockId {
        let name = format!("set{}", self.workflow.n_blocks());
        let boxes = Boxes::Grid(Grid::whole(&[N]));
        let set = self.workflow.add_set(BlockSet::dense(name, DType::F64, vec![N], boxes, self.statement)).unwrap();
        self.workflow.block(set, 0)
    }

    fn kernel(&mut self, name: &'static str, make: impl FnOnce(&Builder) -> Kernel) -> KernelId {
        if let Some(&id) = self.kernels.get(name) {
            return id;
        }
        let entry = KernelEntry { kernel: make(self), statement: self.statement };
        let id = self.workflow.kernels.push(entry);
        self.kernels.insert(name, id);
        id
    }

    pub fn load(&mut self) -> BlockId {
        let name = format!("in{}", self.workflow.sources.len());
        let ty = TensorType::known(DType::F64, &[N]);
        let source = self.workflow.sources.push(SourceDecl::Input { name, ty });
        let entry = KernelEntry { kernel: Kernel::Load { source }, statement: self.statement };
        let kernel = self.workflow.kernels.push(entry);
        let output = self.block();
        self.workflow.add_task(TaskKind::Load, kernel, 0, 0, &[], &[output]);
        output
    }

    pub fn store(&mut self, block: BlockId) {
        let path = format!("out{}", self.workflow.sinks.len());
        let sink = self.workflow.sinks.push(SinkDecl { path, dtype: DType::F64, shape: vec![N] });
        let entry = KernelEntry { kernel: Kernel::Store { sink }, statement: self.statement };
        let kernel = self.workflow.kernels.push(entry);
        self.workflow.add_task(TaskKind::Apply, kernel, 0, 0, &[whole(block)], &[]);
    }

    /// `a * b + 0.1`.
    pub fn apply(&mut self, a: BlockId, b: BlockId) -> BlockId {
        let kernel = self.kernel("apply", |_| statement(2, 1, None));
        let output = self.block();
        self.workflow.add_task(TaskKind::Apply, kernel, 0, 0, &[whole(a), whole(b)], &[output]);
        output
    }

    /// `a * b + 0.1` and the same again in two outputs.
    pub fn apply_twice(&mut self, a: BlockId, b: BlockId) -> [BlockId; 2] {
        let kernel = self.kernel("twice", |_| statement(2, 2, None));
        let outputs = [self.block(), self.block()];
        self.workflow.add_task(TaskKind::Apply, kernel, 0, 0, &[whole(a), whole(b)], &outputs);
        outputs
    }

    pub fn call(&mut self, operands: &[BlockId]) -> BlockId {
        let kernel = self.kernel("call", |builder| Kernel::Call(FunctionRef(builder.flaky.clone())));
        self.add_call(kernel, operands)
    }

    pub fn call_function(&mut self, function: FunctionRef, operands: &[BlockId]) -> BlockId {
        let entry = KernelEntry { kernel: Kernel::Call(function), statement: self.statement };
        let kernel = self.workflow.kernels.push(entry);
        self.add_call(kernel, operands)
    }

    fn add_call(&mut self, kernel: KernelId, operands: &[BlockId]) -> BlockId {
        let output = self.block();
        let operands: Vec<MaybeOperand> = operands.iter().map(|&block| whole(block)).collect();
        self.workflow.add_task(TaskKind::Apply, kernel, 0, 0, &operands, &[output]);
        output
    }

    /// Adds `a * b + 0.1` to a block; position 0 begins it.
    pub fn fold(&mut self, into: BlockId, position: u32, a: BlockId, b: BlockId) {
        let kernel = self.kernel("fold", |_| statement(2, 1, Some(Accum::sum(DType::F64))));
        self.workflow.add_task(TaskKind::Fold, kernel, 0, position, &[whole(a), whole(b)], &[into]);
    }

    /// Folds into two blocks at once.
    pub fn fold_states(&mut self, into: &[BlockId], position: u32, a: BlockId, b: BlockId) {
        let accum = Accum::several(&[Accum::sum(DType::F64), Accum::sum(DType::F64)]).unwrap();
        let kernel = self.kernel("states", |_| statement(2, 2, Some(accum)));
        self.workflow.add_task(TaskKind::Fold, kernel, 0, position, &[whole(a), whole(b)], into);
    }

    pub fn output(&mut self, block: BlockId) {
        let set = self.workflow.set_of(block);
        self.workflow.outputs.push(OutputDecl { name: format!("{block}"), set, dtype: DType::F64 });
    }

    /// The schedule in order of creation.
    pub fn freeze(self) -> Arc<Schedule> {
        verify(&self.workflow).unwrap();
        let order = self.workflow.tasks().collect();
        Arc::new(Schedule::freeze(self.workflow, order, provider()).unwrap())
    }

    pub fn prepare(self) -> Prepared {
        Prepared::new(self.freeze()).unwrap()
    }
}

pub fn whole(block: BlockId) -> MaybeOperand {
    Operand::whole(block).into()
}

fn statement(reads: usize, results: usize, accum: Option<Accum>) -> Kernel {
    let read = KernelRead {
        dtype: DType::F64,
        shape: vec![N],
        idx: vec![Idx::var(Var(0))],
        edge: Edge::Error,
        fill: Scalar::F64(0.0),
    };
    let params = vec![DType::F64; reads].into_iter().chain([DType::I64]).collect();
    let mut code = ScalarCode::new(params);
    let (a, b, c) = (code.param(0), code.param(1), code.constant(Scalar::F64(0.1)));
    let product = code.binary(BinaryOp::Mul, a, b).unwrap();
    let sum = code.binary(BinaryOp::Add, product, c).unwrap();
    code.set_results(vec![sum; results]);
    Kernel::Statement(StatementKernel {
        vars: Grid::whole(&[N]),
        reads: vec![read; reads],
        code,
        has_guard: false,
        accum,
        out_idx: vec![Idx::var(Var(0))],
        out_edge: Edge::Error,
        out_shape: vec![N],
        out_fill: vec![Scalar::F64(0.0); results],
    })
}

/// A chain still open: its blocks, how far it is and how far it goes.
struct Chain {
    into: Vec<BlockId>,
    position: u32,
    length: u32,
}

/// A random schedule of about `n_tasks` tasks: loads, statements with one and two outputs, functions, interleaved chains, blocks read
/// twice by one task, blocks nobody reads, stores and outputs.
pub fn random_schedule(seed: u64, n_tasks: usize, flaky: &Arc<Flaky>) -> Arc<Schedule> {
    let mut dice = Dice::new(seed);
    let mut builder = Builder::new(flaky);
    let mut complete = vec![builder.load(), builder.load()];
    let mut chains: Vec<Chain> = Vec::new();
    while builder.workflow.n_tasks() < n_tasks || !chains.is_empty() {
        let recent = complete.len().saturating_sub(12);
        let (a, b) = (complete[recent + dice.below(12.min(complete.len()))], dice.pick(&complete));
        match dice.below(if builder.workflow.n_tasks() < n_tasks { 10 } else { 3 }) {
            0..=2 if !chains.is_empty() => {
                let at = dice.below(chains.len());
                let chain = &mut chains[at];
                match chain.into.as_slice() {
                    [one] => builder.fold(*one, chain.position, a, b),
                    several => builder.fold_states(several, chain.position, a, b),
                }
                chain.position += 1;
                if chain.position == chain.length {
                    complete.extend(chains.swap_remove(at).into);
                }
            }
            3 => {
                let into = (0..1 + dice.below(2)).map(|_| builder.block()).collect();
                chains.push(Chain { into, position: 0, length: 1 + dice.below(6) as u32 });
            }
            4 => complete.push(builder.load()),
            5 => complete.extend(builder.apply_twice(a, b)),
            6 => {
                let operands: Vec<BlockId> = (0..1 + dice.below(6)).map(|_| dice.pick(&complete)).collect();
                complete.push(builder.call(&operands));
            }
            7 if dice.below(3) == 0 => builder.store(a),
            8 => complete.push(builder.apply(a, a)),
            _ => complete.push(builder.apply(a, b)),
        }
    }
    for _ in 0..3 {
        let block = dice.pick(&complete);
        builder.output(block);
    }
    builder.freeze()
}

/// Loads numbers that depend on the source alone, keeps what is stored.
#[derive(Debug, Default)]
pub struct TestIo {
    pub stored: Mutex<BTreeMap<u32, Vec<u64>>>,
    pub fail_sources: Vec<u32>,
    pub fail_sinks: Vec<u32>,
    /// Stores are not kept, so that a schedule may run again.
    pub forgets: bool,
}

impl TestIo {
    /// The sources and sinks of a schedule.
    pub fn bindings(self: &Arc<TestIo>, schedule: &Schedule) -> Bindings {
        let workflow = schedule.workflow();
        let source = |number: u32| -> Arc<dyn Source> {
            let io = Arc::clone(self);
            Arc::new(Reading(move |region: &BoxRegion, meter: &Arc<Meter>| io.load(number, region, meter)))
        };
        let sink = |number: u32| -> Arc<dyn Sink> { Arc::new(Numbered(Arc::clone(self), number)) };
        Bindings {
            sources: (0..workflow.sources.len() as u32).map(source).collect(),
            sinks: (0..workflow.sinks.len() as u32).map(sink).collect(),
            ..Bindings::default()
        }
    }

    fn load(&self, source: u32, region: &BoxRegion, meter: &Arc<Meter>) -> Result<Arc<Block>> {
        if self.fail_sources.contains(&source) {
            return Err(Error::io(format!("source {source} is broken")));
        }
        // Magnitudes far apart, so that sums in another order have other bits.
        let scale = 10f64.powi(source as i32 % 5 * 4 - 8);
        let values: Vec<f64> = (0..N as i64).map(|k| random::normal(source as u64, k).tanh() * scale).collect();
        Block::from_array(&region.lo, Array::from_f64(&values), Some(meter)).map(Arc::new)
    }

    fn store(&self, sink: u32, block: &Block) -> Result<()> {
        if self.fail_sinks.contains(&sink) {
            return Err(Error::io(format!("sink {sink} is full")));
        }
        if self.forgets {
            return Ok(());
        }
        let twice = self.stored.lock().unwrap().insert(sink, bits(block));
        assert!(twice.is_none(), "sink {sink} was written twice");
        Ok(())
    }
}

/// A source that does what a function says. Boxes that do not begin at 0 take scratch space.
pub struct Reading<F>(pub F);

/// The scratch space of such a box.
pub const SCRATCH: u64 = 1 << 20;

impl<F> std::fmt::Debug for Reading<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Reading")
    }
}

impl<F: Fn(&BoxRegion, &Arc<Meter>) -> Result<Arc<Block>> + Send + Sync> Source for Reading<F> {
    fn ty(&self) -> TensorType {
        TensorType::known(DType::F64, &[N])
    }
    fn fingerprint(&self) -> Option<Digest> {
        None
    }
    fn access(&self) -> SourceAccess {
        SourceAccess::Foreign
    }
    fn layout(&self) -> String {
        "made when it is read".into()
    }
    fn scratch(&self, region: &BoxRegion) -> u64 {
        if region.lo[0] > 0 { SCRATCH } else { 0 }
    }
    fn read(&self, region: &BoxRegion, meter: &Arc<Meter>) -> Result<Arc<Block>> {
        (self.0)(region, meter)
    }
}

/// One sink of a [`TestIo`].
#[derive(Debug)]
struct Numbered(Arc<TestIo>, u32);

impl Sink for Numbered {
    fn write(&self, block: &Block) -> Result<()> {
        self.0.store(self.1, block)
    }
    fn make_durable(&self) -> Result<()> {
        Err(Error::internal("an engine commits nothing"))
    }
    fn commit(&self) -> Result<()> {
        Err(Error::internal("an engine commits nothing"))
    }
}

/// The block of an output of one block.
pub fn only(output: &Option<TensorHandle>) -> Arc<Block> {
    output.as_ref().unwrap().blocks()[0].block().unwrap()
}

pub fn bits(block: &Block) -> Vec<u64> {
    block.to_array().unwrap().to_f64_vec().iter().map(|v| v.to_bits()).collect()
}

/// The bits of the outputs of a run, and of what it stored per sink.
pub struct Replayed {
    pub outputs: Vec<Vec<u64>>,
    pub stored: BTreeMap<u32, Vec<u64>>,
}

/// Runs a schedule in its order without the runtime.
pub fn replay(schedule: &Schedule) -> Replayed {
    let workflow = schedule.workflow();
    let io = TestIo::default();
    let meter = Meter::new();
    let mut blocks: Vec<Option<Block>> = (0..workflow.n_blocks()).map(|_| None).collect();
    for task in schedule.order() {
        let kernel = &workflow.kernels[workflow.kernel(task)].kernel;
        let first = workflow.kind(task) != TaskKind::Fold || workflow.position(task) == 0;
        let mut outputs: Vec<Block> = Vec::new();
        for &output in workflow.outputs(task) {
            outputs.push(match (kernel, blocks[output.index()].take()) {
                (Kernel::Load { source }, _) => io
                    .load(source.as_u32(), &workflow.block_box(output), &meter)
                    .map(|block| Arc::into_inner(block).unwrap())
                    .unwrap(),
                (_, Some(block)) => block,
                _ => Block::for_output(DType::F64, workflow.block_box(output), None).unwrap(),
            });
        }
        let operands: Vec<Option<&Block>> =
            workflow.operands(task).iter().map(|o| blocks[o.expand()?.block.index()].as_ref()).collect();
        match kernel {
            Kernel::Load { .. } => {}
            Kernel::Store { sink } => io.store(sink.as_u32(), operands[0].unwrap()).unwrap(),
            kernel => {
                CompiledKernel::compile(kernel).unwrap().run(0, first, &operands, &mut outputs).unwrap();
            }
        }
        for (&output, block) in workflow.outputs(task).iter().zip(outputs) {
            blocks[output.index()] = Some(block);
        }
    }
    let outputs =
        workflow.outputs.iter().map(|o| bits(blocks[workflow.block(o.set, 0).index()].as_ref().unwrap())).collect();
    Replayed { outputs, stored: io.stored.into_inner().unwrap() }
}

/// Adds moves of blocks that luck has chosen.
struct Mover<'a> {
    workflow: &'a Workflow,
    /// Per block, its instances.
    host: BTreeMap<BlockId, InstanceId>,
    disk: BTreeMap<BlockId, InstanceId>,
    steps: Vec<Step>,
    placement: Placement,
    room: usize,
}

impl Mover<'_> {
    fn add(&mut self, block: BlockId, memory: Memory) -> InstanceId {
        self.placement.add_instance(Instance { block, region: 0, memory })
    }

    /// Moves a block that is not needed to disk.
    fn evict(&mut self, dice: &mut Dice, needed: &[BlockId]) {
        let others: Vec<BlockId> = self.host.keys().copied().filter(|block| !needed.contains(block)).collect();
        if others.is_empty() {
            return;
        }
        let block = dice.pick(&others);
        let from = self.host.remove(&block).unwrap();
        if !self.disk.contains_key(&block) {
            let to = self.add(block, Memory::Disk(0));
            self.steps.push(self.placement.add_move(Move { from, to }));
            self.disk.insert(block, to);
        }
    }

    /// Makes a new instance in main memory.
    fn make(&mut self, dice: &mut Dice, block: BlockId, needed: &[BlockId]) -> InstanceId {
        while self.host.len() >= self.room {
            self.evict(dice, needed);
        }
        let instance = self.add(block, Memory::Host(0));
        self.host.insert(block, instance);
        instance
    }

    fn bring(&mut self, dice: &mut Dice, block: BlockId, needed: &[BlockId]) {
        if !self.host.contains_key(&block) {
            let from = self.disk[&block];
            let to = self.make(dice, block, needed);
            self.steps.push(self.placement.add_move(Move { from, to }));
        }
    }
}

/// The schedule with moves to disk and back: to keep to a number of blocks, and by luck.
pub fn with_random_moves(schedule: &Schedule, dice: &mut Dice) -> Schedule {
    let workflow = schedule.workflow();
    let order: Vec<_> = schedule.order().collect();
    let touched = |task| {
        let reads = workflow.present_operands(task).map(|operand| operand.block);
        let mut blocks: Vec<BlockId> = reads.chain(workflow.outputs(task).iter().copied()).collect();
        blocks.sort_unstable();
        blocks.dedup();
        blocks
    };
    let least = order.iter().map(|&task| touched(task).len()).max().unwrap_or(1);
    let mut last_uses: BTreeMap<BlockId, usize> = BTreeMap::new();
    order.iter().enumerate().for_each(|(k, &task)| last_uses.extend(touched(task).into_iter().map(|block| (block, k))));
    let results: Vec<BlockId> = workflow.outputs.iter().map(|output| workflow.block(output.set, 0)).collect();
    let placement = Placement::new(1, vec![0; workflow.n_tasks()], Vec::new());
    let (host, disk) = (BTreeMap::new(), BTreeMap::new());
    let room = least + dice.below(4);
    let mut mover = Mover { workflow, host, disk, steps: Vec::new(), placement, room };
    for (k, &task) in order.iter().enumerate() {
        let needed = touched(task);
        if dice.below(4) == 0 {
            mover.evict(dice, &needed);
        }
        let continues = workflow.kind(task) == TaskKind::Fold && workflow.position(task) > 0;
        for operand in mover.workflow.present_operands(task) {
            mover.bring(dice, operand.block, &needed);
        }
        for &output in workflow.outputs(task) {
            if continues {
                mover.bring(dice, output, &needed);
                // The copy on disk lacks what comes now.
                mover.disk.remove(&output);
            } else {
                mover.make(dice, output, &needed);
            }
        }
        let host = &mover.host;
        let reads: Vec<_> = workflow.operands(task).iter().map(|o| Some(host[&o.expand()?.block])).collect();
        let writes: Vec<_> = workflow.outputs(task).iter().map(|block| host[block]).collect();
        mover.placement.add_task(reads, writes);
        mover.steps.push(Step::task(task));
        for block in needed.into_iter().filter(|block| last_uses[block] == k && !results.contains(block)) {
            mover.host.remove(&block);
            mover.disk.remove(&block);
        }
    }
    let found = results.iter().map(|block| *mover.host.get(block).or_else(|| mover.disk.get(block)).unwrap());
    mover.placement.set_results(found.collect());
    schedule.with_moves(mover.steps, mover.placement, None).unwrap()
}
