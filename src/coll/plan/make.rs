//! Making a plan: the ranks agree, choose an algorithm, lay out their sessions and map each other's.

use crate::coll::algorithms::Algorithm;
use crate::coll::algorithms::alone::ALONE;
use crate::coll::arena::{self, Arena};
use crate::coll::plan::asked::{Asked, Checked, Form};
use crate::coll::plan::compare::{agree, varied};
use crate::coll::plan::{About, Bounce, Engine, Plan, Recipe};
use crate::coll::problem::{Block, Problem};
use crate::coll::runner::record::{Record, compile};
use crate::coll::runner::session::{self, Session};
use crate::coll::runner::shared::{Combiner, Member, Memory, Stage};
use crate::coll::schedule::{Program, Space};
use crate::coll::select;
use crate::coll::team::{Team, refused_by};
use crate::core::background::Task;
use crate::core::services::Own;
use crate::engine::completion;
use crate::fail;
use crate::transport::Access;
use crate::transport::address::Address;
use crate::util::cores::Cores;
use crate::util::pin::{joins_global_fence, pin};
use crate::util::status::{Error, Result, Status};
use std::sync::Arc;

/// What the others must know of a rank's session.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Card {
    status: i32,
    shared: u32,
    told: u16,
    /// It takes part in fences for all processes.
    fenced: u16,
    /// How many Scratch memories there are: a power of two, as it is the number of the round that chooses.
    turns: u32,
    /// Where the session lies: key and offset.
    place: [u64; 2],
    bytes: u64,
    /// For Send, Receive and Scratch: key (0: in the session), offset and length.
    memory: [[u64; 3]; 3],
    /// The cores on which the calling thread may run.
    cores: Cores,
}

const CARD: usize = size_of::<Card>();

/// What the ranks have found out about each other.
struct Met {
    members: Vec<Member>,
    /// They are more than their cores.
    crowded: bool,
    /// All take part in fences for all processes.
    fenced: bool,
}

/// The sizes of a session's parts.
struct Layout {
    /// Where Send, Receive and Scratch of the plan's own begin.
    starts: [u64; 3],
    total: u64,
}

/// Makes a plan. Collective over the team.
pub fn make(team: &Team, asked: &Asked) -> Result<Arc<Plan>> {
    team.services.may_block("what makes a plan")?;
    let (me, ranks) = (team.me, team.size());
    let checked = asked.check(&team.services, me, ranks);
    let asked_for = asked.algorithm.as_deref();
    let configured = select::forced(&team.services.config, asked.operation);
    let forced = asked_for.or(configured).filter(|name| *name != "auto");
    let (checked, refusal) = match checked {
        Ok(checked) => (Some(checked), Ok(())),
        Err(error) => (None, Err(error)),
    };
    agree(team, asked, forced, refusal)?;
    let Some(checked) = checked else { fail!(ERR_INTERNAL, "an error was lost") };
    let mut problem = asked.problem(ranks, checked.width, team.services.config.coll_segment);
    if asked.form == Form::Varied {
        problem.varied = Some(varied(team, asked, &problem)?);
    }
    let choice = match ranks {
        1 => {
            forced.map_or(Ok(()), |name| select::named(asked.operation, name).map(|_| ()))?;
            (&ALONE, "there is one rank")
        }
        _ => select::choose(&problem, forced, checked.ordered)?,
    };
    let choice = match (asked_for, configured) {
        (None, Some(_)) if choice.0.name != ALONE.name => {
            let variable = select::name(asked.operation).to_uppercase();
            (choice.0, format!("LLCL_COLL_{variable} asks for it"))
        }
        _ => (choice.0, choice.1.to_string()),
    };
    Site { team, asked, checked, problem, choice }.build()
}

/// A plan that is being made.
struct Site<'a> {
    team: &'a Team,
    asked: &'a Asked,
    checked: Checked,
    problem: Problem,
    choice: (&'static Algorithm, String),
}

impl Site<'_> {
    fn build(self) -> Result<Arc<Plan>> {
        let program = self.program();
        let records = compile(&program);
        let layout = self.layout(&program, records.len());
        let made = self.team.arena.allocate(layout.total);
        let status = made.as_ref().err().map_or(Status::OK, |error| error.status);
        let card = match &made {
            Ok(made) => self.lay_out(made, &layout, &program, &records),
            Err(_) => Card { status: status.0, ..Card::default() },
        };
        // SAFETY: plain numbers without gaps.
        let bytes = unsafe { std::mem::transmute::<Card, [u8; CARD]>(card) };
        let cards = self.team.exchange(&bytes);
        let made = made?;
        match cards.and_then(|cards| self.meet(&cards)) {
            Ok(met) => Ok(self.finish(made, &layout, met, records)),
            Err(error) => {
                // When a rank dies late, another one may think that the plan was made: then the memory
                // stays until the context ends.
                if error.status != Status::ERR_PEER_DEAD {
                    self.team.arena.discard(made);
                }
                Err(error)
            }
        }
    }

    /// This rank's program. Signals to a queue are counted in the sender's queue of the same number.
    fn program(&self) -> Program {
        let mut program = (self.choice.0.program)(&self.problem, self.team.me);
        let signals = program.queues.iter().flatten().filter_map(|step| step.signal);
        let queues = signals.map(|signal| signal.queue + 1).max().unwrap_or(0);
        program.queues.resize(queues.max(program.queues.len()), Vec::new());
        program
    }

    /// The ranks as this one reaches them, if every rank reaches all.
    fn meet(&self, cards: &[Vec<u8>]) -> Result<Met> {
        let cards = cards.iter().map(|card| {
            let bytes: [u8; CARD] = card.as_slice().try_into().unwrap_or([0; CARD]);
            // SAFETY: any bytes are valid numbers.
            unsafe { std::mem::transmute::<[u8; CARD], Card>(bytes) }
        });
        let cards = cards.collect::<Vec<_>>();
        // All ranks see the same cards, so this is no news to anybody.
        for (rank, card) in cards.iter().enumerate() {
            refused_by(rank, Status(card.status))?;
        }
        let pairs = self.team.peers.iter().zip(&cards);
        let contacted = self.team.services.connect(self.team.peers.iter().copied());
        let members = contacted.and_then(|()| {
            pairs.map(|(peer, card)| self.member(*peer, card)).collect::<Result<Vec<_>>>()
        });
        self.team.agree(members.as_ref().map(|_| ()).map_err(Error::again))?;
        let cores = cards.iter().fold(Cores::default(), |all, card| all.or(card.cores));
        let fenced = cards.iter().all(|card| card.fenced != 0);
        Ok(Met { members: members?, crowded: cores.count() < cards.len(), fenced })
    }

    fn layout(&self, program: &Program, records: usize) -> Layout {
        let page = |bytes: u64| bytes.next_multiple_of(64);
        let bounced = |side: &(u64, Option<Own>)| match side {
            (bytes, Some(own)) if !own.mapped => *bytes,
            _ => 0,
        };
        let send = session::size(self.team.size(), program.queues.len(), records) as u64;
        let receive = send + page(bounced(&self.checked.send));
        let scratch = receive + page(bounced(&self.checked.receive));
        let turns = u64::from(program.turns);
        Layout {
            starts: [send, receive, scratch],
            total: Arena::rounded(scratch + turns * page(program.scratch)),
        }
    }

    fn engine(&self) -> Engine {
        let configured = self.team.services.config.coll_engine;
        match (self.asked.engine, configured) {
            (2, _) | (0, 1) => Engine::Thread,
            _ => Engine::Offload,
        }
    }

    fn is_bounced(&self) -> bool {
        let unmapped = |side: &Option<Own>| side.is_some_and(|own| !own.mapped);
        unmapped(&self.checked.send.1) || unmapped(&self.checked.receive.1)
    }

    /// Writes the session and says what the others must know of it.
    fn lay_out(
        &self,
        made: &arena::Block,
        layout: &Layout,
        program: &Program,
        records: &[Record],
    ) -> Card {
        let lengths = program.queues.iter().map(Vec::len).collect::<Vec<_>>();
        // SAFETY: fresh memory that begins with a line, as long as the layout says.
        let session = unsafe { Session::create(made.address, self.team.size(), &lengths) };
        if self.engine() == Engine::Offload {
            // SAFETY: nobody else knows it yet.
            unsafe { session.write(records) };
        }
        let [send, receive, scratch] = layout.starts;
        let side = |side: &(u64, Option<Own>), user: Address, own: u64| match side.1 {
            Some(place) if place.mapped => [user.key, user.offset, side.0],
            _ => [0, own, side.0],
        };
        let user_function = matches!(self.checked.combiner, Some(Combiner::User(..)));
        let shared = self.engine() == Engine::Offload && !user_function && !self.is_bounced();
        let told = self.asked.on_complete.kind != completion::NONE || self.is_bounced();
        Card {
            status: 0,
            shared: shared.into(),
            told: told.into(),
            fenced: joins_global_fence().into(),
            turns: program.turns,
            place: [made.place.key, made.place.offset],
            bytes: layout.total,
            memory: [
                side(&self.checked.send, self.asked.send, send),
                side(&self.checked.receive, self.asked.receive, receive),
                [0, scratch, program.scratch],
            ],
            cores: Cores::mine(),
        }
    }

    fn member(&self, peer: u32, card: &Card) -> Result<Member> {
        let routes = &self.team.services.routes;
        let port = routes.port(peer)?;
        let address = Address { offset: card.place[1], key: card.place[0] };
        let mapped = |place: Address, bytes: u64| match routes.locate(port, place, bytes)? {
            Access::Mapped => Ok(()),
            _ => fail!(ERR_UNSUPPORTED, "memory of rank {peer} is not mapped here"),
        };
        mapped(address, card.bytes)?;
        let found = {
            let _pinned = pin();
            port.find(address, card.bytes)
        };
        // SAFETY: the peer keeps the region until this rank has left the plan.
        let session = found.and_then(|base| unsafe {
            Session::open(base, self.team.size(), card.bytes as usize).map(|open| (base, open))
        });
        let Some((base, session)) = session else {
            fail!(ERR_PEER_DEAD, "the session of rank {peer} is gone");
        };
        if !card.turns.is_power_of_two() {
            fail!(ERR_INTERNAL, "rank {peer} has {} scratch memories, no power of two", card.turns);
        }
        let within = |offset: u64, length: u64, turns: u32| {
            let all = length.checked_next_multiple_of(64)?.checked_mul(turns.into())?;
            let fits = offset.checked_add(all)? <= card.bytes && offset.is_multiple_of(64);
            fits.then(|| base.wrapping_add(offset as usize))
        };
        let mut memory = [Memory::Plan(base, 0); 3];
        for (at, [key, offset, length]) in card.memory.into_iter().enumerate() {
            let turns = if at == Space::Scratch as usize { card.turns } else { 1 };
            memory[at] = match (key, within(offset, length, turns)) {
                (0, Some(base)) if at == Space::Scratch as usize => {
                    Memory::Turns(base, length, turns)
                }
                (0, Some(base)) => Memory::Plan(base, length),
                (0, None) => fail!(ERR_INTERNAL, "rank {peer} has memory outside its session"),
                _ => {
                    let user = Address { key, offset };
                    mapped(user, length)?;
                    Memory::User(user, length)
                }
            };
        }
        let (shared, told) = (card.shared != 0, card.told != 0);
        Ok(Member { peer, session, address, memory, shared, told })
    }

    fn finish(
        self,
        made: arena::Block,
        layout: &Layout,
        Met { members, crowded, fenced }: Met,
        records: Vec<Record>,
    ) -> Arc<Plan> {
        let engine = self.engine();
        let Site { team, asked, checked, problem, choice } = self;
        let own = &members[team.me];
        let (send, receive) = ((checked.send, asked.send, 0), (checked.receive, asked.receive, 1));
        let bounces = |(side, user, at): ((u64, Option<Own>), Address, usize), blocks: &[Block]| {
            let unmapped = side.1.is_some_and(|own| !own.mapped);
            let start = made.address.wrapping_add(layout.starts[at] as usize);
            let bounce = |block: &Block| Bounce {
                user: Address { offset: user.offset + block.offset, ..user },
                plan: start.wrapping_add(block.offset as usize),
                bytes: block.size,
            };
            blocks.iter().filter(|_| unmapped).map(bounce).collect::<Vec<_>>()
        };
        let mut inputs = bounces(send, &checked.touched.send);
        inputs.extend(bounces(receive, &checked.touched.held));
        let outputs = bounces(receive, &checked.touched.written);
        let about = About {
            algorithm: choice.0.name,
            engine,
            shared: own.shared,
            queues: own.session.queues() as u32,
            steps: records.len() as u32,
            memory: layout.total,
        };
        let stage = Stage {
            me: team.me,
            members,
            combiner: checked.combiner,
            width: checked.width,
            routes: team.services.routes.clone(),
        };
        let recipe = Recipe { program: choice.0.program, problem };
        let plan = Arc::new(Plan::new(
            (team.services.clone(), team.arena.clone()),
            stage,
            (made, about, choice.1),
            (inputs, outputs),
            (recipe, &records),
            (asked.on_complete, crowded, fenced),
        ));
        team.services.background.add(plan.clone() as Arc<dyn Task>);
        plan
    }
}
