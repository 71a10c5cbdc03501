//! The ranks of the tests.

use super::*;

pub struct Rank {
    pub work: LaneState,
    pub ring: CommandQueue<QueueEntry>,
    pub routes: Arc<Routes>,
    pub segment: Arc<Segment>,
    pub bootstrap: Arc<Bootstrap>,
    pub post: Arc<AmSender>,
}

/// Ranks that have not contacted each other. `change` changes the configuration of each.
pub fn strangers<const N: usize>(
    in_flight: usize,
    change: impl Fn(usize, &mut Config),
) -> (World, [Rank; N]) {
    let world = World::create(N as u32).unwrap();
    let ranks = std::array::from_fn(|rank| {
        let mut config = Config::from_environment().unwrap();
        config.request_slots(8).unwrap();
        change(rank, &mut config);
        let bootstrap = Arc::new(Bootstrap::from_world(&world, rank as u32).unwrap());
        let segment = Arc::new(Segment::create(&config, 1).unwrap());
        let routes = Routes::new(segment.clone(), bootstrap.clone(), false).unwrap();
        by_owner::serve_signals(&routes);
        let (ring, consumer) = CommandQueue::new(16, || ()).unwrap();
        let to_tell = (Arc::new(Admission::default()), 8);
        let post = Arc::new(AmSender::new(routes.clone(), Arc::default(), 64, 1));
        let receivers = routes.receivers(Arc::default());
        let work = LaneState::new(consumer, to_tell, receivers, post.clone(), in_flight);
        Rank { work, ring, routes, segment, bootstrap, post }
    });
    (world, ranks)
}

pub fn some_ranks<const N: usize>(in_flight: usize) -> (World, [Rank; N]) {
    let (world, ranks) = strangers::<N>(in_flight, |_, _| ());
    for (from, to) in (0..N).flat_map(|from| (0..N).map(move |to| (from, to))) {
        ranks[from].contact(to as u32);
    }
    (world, ranks)
}

pub fn two_ranks(in_flight: usize) -> (World, [Rank; 2]) {
    some_ranks(in_flight)
}

impl Rank {
    pub fn contact(&self, peer: u32) {
        while self.routes.port(peer).is_err() {
            std::thread::yield_now();
        }
    }

    pub fn round(&mut self) -> usize {
        self.work.round(&self.routes)
    }

    pub fn start(&mut self, command: Command, stage: Stage) {
        // SAFETY: the tests keep what their commands name, and begin each once.
        assert!(unsafe { self.work.start(&self.routes, command, stage, false) });
    }

    pub fn flush(&mut self, peer: u32, ended: &AtomicU64) {
        let on_complete = Completion::store_on(ended);
        let flush = Command { on_complete, ..Command::new(Op::FLUSH, peer) };
        // SAFETY: as in start().
        unsafe { self.work.start_flush(&self.routes, flush) };
    }

    /// Registers memory as region 0, which peers can access by requests to the owner only.
    pub fn register(&self, memory: &mut [u64]) -> u64 {
        let (base, size) = (memory.as_mut_ptr().cast::<u8>(), size_of_val(memory) as u64);
        let key = Key::new(0, self.routes.own().peer, 1);
        self.segment.publish(0, key.0, Place::Own(base as u64), size);
        let live = self.segment.live(0);
        // SAFETY: the tests keep the memory as long as the lane, and the segment has `live`.
        unsafe { self.routes.own().learn(key, live, || Ok((None, base, size))).unwrap() };
        self.routes.fabric().register(key.0, base, size as usize).unwrap();
        key.0
    }
}
