//! Makes a plan: the ranks agree on the parameters, choose an algorithm, lay out their sessions and
//! map each other's sessions.

use crate::coll::agreement::Failure;
use crate::coll::algorithms::Algorithm;
use crate::coll::algorithms::alone::ALONE;
use crate::coll::arena;
use crate::coll::plan::asked::{Asked, Checked, Form, Side};
use crate::coll::plan::attach::{Attached, BlockHead, Places, SESSION, attach};
use crate::coll::plan::bound::Bound;
use crate::coll::plan::bytes::{self, Layout, Parts};
use crate::coll::plan::compare::{Agreed, agree, varied};
use crate::coll::plan::policy::{AT_START, COPIED};
use crate::coll::plan::{About, Bounce, Engine, Far, Plan};
use crate::coll::problem::{Block, Problem};
use crate::coll::runner::binding::BINDING;
use crate::coll::runner::members::{Memory, known};
use crate::coll::runner::posted::posted;
use crate::coll::runner::put_receiver::{Owner, PutReceiver};
use crate::coll::runner::put_sender::PutSender;
use crate::coll::runner::queue::NO_TAIL;
use crate::coll::runner::record::{Record, compile, edges, tail};
use crate::coll::runner::session::Session;
use crate::coll::runner::shared::{Combiner, Stage};
use crate::coll::schedule::{Program, Space};
use crate::coll::select;
use crate::coll::team::Team;
use crate::core::background::Task;
use crate::engine::completion::{self, Completion};
use crate::fail;
use crate::transport::address::{ANY, Address, Key};
use crate::util::reserve;
use crate::util::status::{Error, Result};
use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

/// The largest team in which each rank searches the programs of all ranks for steps that access its
/// buffers.
const PROGRAMS: usize = 64;

/// Which memory the steps use for an input or output.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BufferUse {
    /// The user's buffer, which peers map; or there is no buffer.
    Mapped,
    /// The plan's own copy, since peers do not map the user's buffer.
    Bounced,
    /// The buffer that each start names.
    Bound,
    /// The user's buffer, which peers do not map. Only steps of this rank access it, and only this
    /// rank runs them.
    Own,
}

/// Makes a plan. Collective over the team.
pub fn make(team: &Team, asked: &Asked) -> Result<Arc<Plan>> {
    team.services.may_block()?;
    let (me, ranks, segment) = (team.me, team.size(), team.services.config.coll_segment);
    // About the private memory that the steps below need until the plan is made.
    let checked = reserve::must_hold(4096 * ranks as u64)
        .and_then(|()| asked.check(&team.services, me, ranks))
        .and_then(|checked| reserve::must_hold(checked.steps_take(segment)).map(|()| checked));
    let configured = select::forced(&team.services.config, asked.operation);
    let forced = asked.wanted(&team.services.config);
    let (checked, mine) = match checked {
        Ok(checked) => {
            let unmapped = checked.unmapped() != [false; 2] && !asked.is_rebound();
            (Some(checked), Ok(unmapped))
        }
        Err(error) => (None, Err(error)),
    };
    let Agreed { unmapped, nodes } = agree(team, asked, forced, mine)?;
    let name = team.plan_name();
    let Some(checked) = checked else {
        fail!(ERR_INTERNAL, "the refusal of the parameters was lost")
    };
    let problem = asked.problem(ranks, checked.width, segment);
    let mut problem = Problem { nodes, ..problem };
    if asked.form == Form::Varied {
        let varied = varied(team, asked, &problem)?;
        problem.segment = asked.segment(ranks, varied.largest, problem.segment);
        problem.varied = Some(varied);
    }
    let choice = match ranks {
        1 => {
            forced.map_or(Ok(()), |name| select::named(asked.operation, name).map(|_| ()))?;
            (&ALONE, "there is one rank")
        }
        _ => {
            let nodes = problem.nodes.as_deref();
            let rows = team.choices.rows(nodes).chain(select::rows_first(unmapped, nodes));
            select::choose(rows, &problem, forced, checked.ordered)?
        }
    };
    let choice = match (&asked.algorithm, configured) {
        (None, Some(_)) if choice.0.name != ALONE.name => {
            let variable = select::name(asked.operation).to_uppercase();
            (choice.0, format!("LLCL_COLL_{variable} asks for it"))
        }
        _ => (choice.0, choice.1.to_string()),
    };
    PlanBuilder { team, asked, checked, problem, choice, name }.build()
}

/// A plan that is being made.
struct PlanBuilder<'a> {
    team: &'a Team,
    asked: &'a Asked,
    checked: Checked,
    problem: Problem,
    choice: (&'static Algorithm, String),
    /// The name of the plan, equal at all ranks.
    name: u64,
}

impl PlanBuilder<'_> {
    fn build(self) -> Result<Arc<Plan>> {
        let program = self.program()?;
        let records = compile(&program);
        let mut known = known(&program, self.team.me, self.team.size());
        known.retain(|rank| self.is_near(*rank) || program.far.contains(rank));
        let ways = self.ways();
        let layout = self.layout(&program, records.len(), ways);
        let private = self.private(&program, &known, ways, layout.words.len());
        let made = self.team.arena.allocate(layout.total, private);
        if let Ok(made) = &made {
            self.lay_out((made, ways), &layout, &program, &records);
        }
        let block = made.as_ref().map(|made| (made.place, made.bytes)).map_err(Error::again);
        let own = self.own_memory(ways);
        let put_receiver = self.put_receiver(&program);
        let places =
            made.as_ref().map_or([0; 10], |made| self.places((made, ways), &layout, &program));
        let far = (self.problem.nodes.as_deref(), program.queues.len(), places);
        let attached = attach(self.team, block, &known, own, far);
        if let (Err(_), Some(_)) = (&attached, &put_receiver) {
            self.team.services.routes.control_messages().withdraw(self.name);
        }
        match (attached, made) {
            (Ok(met), Ok(made)) => {
                Ok(self.finish((made, ways, put_receiver), &layout, met, (&program, &records)))
            }
            (Err(Failure { error, everywhere }), Ok(made)) => {
                // If only this rank has failed, another rank may have the plan or read the session.
                // The memory then stays until the context ends.
                if everywhere {
                    self.team.arena.discard(made);
                }
                Err(error)
            }
            (met, Err(error)) => Err(met.err().map_or(error, Error::from)),
        }
    }

    /// Whether `rank` shares memory with this one.
    fn is_near(&self, rank: usize) -> bool {
        self.problem.nodes.as_ref().is_none_or(|nodes| nodes.share(rank, self.team.me))
    }

    /// The receiver of puts from ranks of other nodes. It is registered before attach(), since a
    /// peer may put as soon as it has made the plan.
    fn put_receiver(&self, program: &Program) -> Option<Arc<PutReceiver>> {
        let far = program.far.iter().map(|rank| (self.team.peers[*rank], *rank as u32));
        let services = &self.team.services;
        let make = || Arc::new(PutReceiver::new(services.background.clone(), far));
        let put_receiver = (!program.far.is_empty()).then(make);
        if let Some(put_receiver) = &put_receiver {
            services.routes.control_messages().register(self.name, put_receiver.clone());
        }
        put_receiver
    }

    /// This rank's program. A signal to queue q of another rank is counted in a signal word of this
    /// rank's queue q. So the program gets empty queues up to the highest queue that it signals.
    fn program(&self) -> Result<Program> {
        let program = (self.choice.0.program)(&self.problem, self.team.me);
        let Some(mut program) = posted(program, self.team.me, |rank| !self.is_near(rank)) else {
            let name = self.choice.0.name;
            fail!(
                ERR_INTERNAL,
                "{name} reads memory of another node, expected an algorithm that puts"
            );
        };
        let signals = program.queues.iter().flatten().filter_map(|step| step.signal);
        let queues = signals.map(|signal| signal.queue + 1).max().unwrap_or(0);
        program.queues.resize(queues.max(program.queues.len()), Vec::new());
        Ok(program)
    }

    fn layout(&self, program: &Program, steps: usize, ways: [BufferUse; 2]) -> Layout {
        let checked = &self.checked;
        let sides = [(ways[0], checked.send.0), (ways[1], checked.receive.0)];
        let sides = sides.map(|(way, bytes)| match way {
            BufferUse::Bound => BINDING,
            BufferUse::Bounced => bytes,
            BufferUse::Mapped | BufferUse::Own => 0,
        });
        Layout::new(program, self.team.size(), steps, sides)
    }

    /// Bytes of private memory of this process.
    fn private(
        &self,
        program: &Program,
        known: &BTreeSet<usize>,
        ways: [BufferUse; 2],
        queues: usize,
    ) -> u64 {
        let touched = &self.checked.touched;
        let blocks = [(0, &touched.send), (1, &touched.held), (1, &touched.written)];
        let used = |as_: BufferUse| {
            let used = blocks.iter().filter(move |(side, _)| ways[*side] == as_);
            used.map(|(_, blocks)| &***blocks).collect()
        };
        let parts = Parts {
            bounced: used(BufferUse::Bounced),
            bound: used(BufferUse::Bound),
            // A byte ends each of them.
            texts: self.choice.0.name.len() + self.choice.1.len() + 2,
            has_function: matches!(self.checked.combiner, Some(Combiner::User(..))),
        };
        bytes::private(program, known, self.team.size(), queues, &parts)
    }

    fn engine(&self) -> Engine {
        let configured = self.team.services.config.coll_engine;
        match (self.asked.engine, configured) {
            (2, _) | (0, 1) => Engine::Thread,
            _ => Engine::Offload,
        }
    }

    /// Which memory the steps use for this rank's input and output.
    fn ways(&self) -> [BufferUse; 2] {
        if self.asked.is_rebound() {
            return [BufferUse::Bound; 2];
        }
        let unmapped = self.checked.unmapped();
        let touched = &self.checked.touched;
        let bytes = |blocks: &[Block]| blocks.iter().map(|block| block.size).sum::<u64>();
        let sides = [bytes(&touched.send), bytes(&touched.held) + bytes(&touched.written)];
        let bounced = (0..2).filter(|side| unmapped[*side]).map(|side| sides[side]).sum::<u64>();
        let others = match unmapped != [false; 2] && bounced > COPIED {
            true => self.touched_by_others(),
            false => [true; 2],
        };
        [0, 1].map(|side| match (unmapped[side], others[side]) {
            (false, _) => BufferUse::Mapped,
            (true, true) => BufferUse::Bounced,
            (true, false) => BufferUse::Own,
        })
    }

    /// Whether steps of other ranks may access this rank's input, and its output.
    fn touched_by_others(&self) -> [bool; 2] {
        let (me, ranks) = (self.team.me, self.team.size());
        if ranks > PROGRAMS {
            return [true; 2];
        }
        let mut touched = [false; 2];
        let problem = self.problem.with_equal_blocks();
        for peer in (0..ranks).filter(|peer| *peer != me && self.is_near(*peer)) {
            let program = (self.choice.0.program)(&problem, peer);
            let places = program.queues.iter().flatten().flat_map(|step| step.action.places());
            for place in places.filter(|place| place.rank == me) {
                match place.space {
                    Space::Send => touched[0] = true,
                    Space::Receive => touched[1] = true,
                    Space::Scratch => {}
                }
            }
        }
        touched
    }

    /// Whether threads of any rank may run this rank's steps. Small buffers that peers do not map
    /// are copied to make that possible.
    fn is_shared(&self, ways: [BufferUse; 2], program: &Program) -> bool {
        let user_function = matches!(self.checked.combiner, Some(Combiner::User(..)));
        let touched = &self.checked.touched;
        let blocks = [&touched.send, &touched.held, &touched.written];
        let small =
            blocks.iter().flat_map(|blocks| blocks.iter()).map(|block| block.size).sum::<u64>()
                <= COPIED;
        let any_ranks = |way: &BufferUse| match way {
            BufferUse::Mapped | BufferUse::Bound => true,
            BufferUse::Bounced => small,
            BufferUse::Own => false,
        };
        // Puts to other nodes are posted only by threads of this rank.
        let near = program.far.is_empty();
        self.engine() == Engine::Offload && near && !user_function && ways.iter().all(any_ranks)
    }

    /// The buffers that only this rank's steps and threads access.
    fn own_memory(&self, ways: [BufferUse; 2]) -> [Option<Memory>; 2] {
        let (send, receive) = (&self.checked.send, &self.checked.receive);
        let sides = [(ways[0], self.asked.send, send.0), (ways[1], self.asked.receive, receive.0)];
        sides.map(|(way, user, bytes)| (way == BufferUse::Own).then_some(Memory::User(user, bytes)))
    }

    /// The word of the completion, if peers may change it: kind, key and offset.
    fn word(&self) -> Option<[u64; 3]> {
        let Completion { kind, target, .. } = self.asked.on_complete;
        let is_word = kind == completion::STORE || kind == completion::ADD;
        let place = is_word.then(|| self.team.services.shared_word(target as usize))??;
        Some([kind.into(), place.key, place.offset])
    }

    /// Send, Receive and Scratch, as in BlockHead.
    fn memory(&self, ways: [BufferUse; 2], layout: &Layout, program: &Program) -> [[u64; 3]; 3] {
        let [send, receive, scratch] = layout.starts;
        let side = |side: &Side, way: BufferUse, user: Address, own: u64| match way {
            BufferUse::Mapped if side.1.is_some() => [user.key, user.offset, side.0],
            BufferUse::Own => [0, own, 0],
            _ => [0, own, side.0],
        };
        [
            side(&self.checked.send, ways[0], self.asked.send, send),
            side(&self.checked.receive, ways[1], self.asked.receive, receive),
            [0, scratch, program.scratch],
        ]
    }

    /// Where this rank's memories lie, for networks of other nodes.
    fn places(
        &self,
        (made, ways): (&arena::Block, [BufferUse; 2]),
        layout: &Layout,
        program: &Program,
    ) -> Places {
        let in_block =
            |at: usize, length| [made.place.key, made.place.offset + layout.starts[at], length];
        let sides =
            [(self.checked.send.0, self.asked.send), (self.checked.receive.0, self.asked.receive)];
        let side = |at: usize| match (ways[at], sides[at]) {
            (BufferUse::Bounced, (bytes, _)) => in_block(at, bytes),
            // A network reaches memory of any region, also if no rank of this node maps it.
            (BufferUse::Mapped | BufferUse::Own, (bytes, user)) if Key(user.key) != ANY => {
                [user.key, user.offset, bytes]
            }
            // Memory of no region, or a buffer that each start names.
            _ => [0; 3],
        };
        let memories = [side(0), side(1), in_block(2, program.scratch)];
        let mut places = [program.turns.into(); 10];
        places[..9].copy_from_slice(memories.as_flattened());
        places
    }

    /// Writes the block: head, session and records.
    fn lay_out(
        &self,
        (made, ways): (&arena::Block, [BufferUse; 2]),
        layout: &Layout,
        program: &Program,
        records: &[Record],
    ) {
        let lengths = program.queues.iter().map(Vec::len).collect::<Vec<_>>();
        // The tail runs in the user's wait, which a user that relies on a completion need not call.
        let silent = self.asked.on_complete.kind == completion::NONE;
        let has_tail = silent && self.is_shared(ways, program) && lengths.len() == 1;
        let tail = if has_tail { tail(&program.queues[0], AT_START) } else { NO_TAIL };
        let base = made.address.wrapping_add(SESSION as usize);
        // SAFETY: fresh memory that begins at a line and has the size of the layout.
        let session = unsafe { Session::create(base, &layout.words, &lengths, tail) };
        // SAFETY: no other thread knows of the session yet.
        unsafe { session.write(records) };
        let (shared, bounced) = (self.is_shared(ways, program), ways.contains(&BufferUse::Bounced));
        let notified = self.asked.on_complete.kind != completion::NONE || bounced && !shared;
        let head = BlockHead {
            shared: shared.into(),
            notified: notified.into(),
            bound: self.asked.is_rebound().into(),
            turns: program.turns.into(),
            memory: self.memory(ways, layout, program),
            // If the output is bound or bounced, its owner may have to copy it before the end is
            // reported, so other ranks must not change the word.
            word: self
                .word()
                .filter(|_| shared && ways == [BufferUse::Mapped; 2])
                .unwrap_or_default(),
        };
        // SAFETY: the block begins with space for its head; no other thread knows of it yet.
        unsafe { made.address.cast::<BlockHead>().write(head) };
    }

    fn finish(
        self,
        (made, ways, put_receiver): (arena::Block, [BufferUse; 2], Option<Arc<PutReceiver>>),
        layout: &Layout,
        Attached { members, crowded, fenced, shadows }: Attached,
        (program, records): (&Program, &[Record]),
    ) -> Arc<Plan> {
        let engine = self.engine();
        let PlanBuilder { team, asked, checked, problem, choice, name, .. } = self;
        let own = &members[team.me];
        let bounces = |(user, at): (Address, usize), blocks: &[Block]| {
            let bounced = ways[at] == BufferUse::Bounced;
            let start = made.address.wrapping_add(layout.starts[at] as usize);
            let bounce = |block: &Block| Bounce::of(user, start, block);
            blocks.iter().filter(|_| bounced).map(bounce).collect::<Vec<_>>()
        };
        let (send, receive) = ((asked.send, 0), (asked.receive, 1));
        let touched = &checked.touched;
        let inputs = [bounces(send, &touched.send), bounces(receive, &touched.held)].concat();
        let outputs = bounces(receive, &touched.written);
        let about = About {
            algorithm: choice.0.name,
            engine,
            shared: own.shared,
            queues: own.session.queues() as u32,
            steps: records.len() as u32,
            memory: made.bytes + made.private,
            private: made.private,
        };
        let put_sender = (!program.far.is_empty())
            .then(|| Arc::new(PutSender::new(team.services.clone(), name, edges(program).len())));
        let far =
            put_receiver.map(|put_receiver| Far { name, put_receiver, _shadows: shadows.into() });
        let stage = Stage {
            put_sender,
            me: team.me,
            members,
            peers: team.peers.clone(),
            combiner: checked.combiner,
            width: checked.width,
            routes: team.services.routes.clone(),
        };
        let bound = (ways == [BufferUse::Bound; 2])
            .then(|| Bound::new(checked.touched, [asked.send, asked.receive]));
        let plan = Arc::new(Plan::new(
            (team.services.clone(), team.arena.clone()),
            stage,
            (made, about, choice.1),
            (inputs, outputs, bound, far),
            (records, problem.largest()),
            (asked.on_complete, crowded, fenced),
        ));
        team.services.background.add(plan.clone() as Arc<dyn Task>);
        if let Some(far) = &plan.far {
            let owner: Weak<dyn Owner> = Arc::<Plan>::downgrade(&plan);
            far.put_receiver.open(owner);
        }
        plan
    }
}
