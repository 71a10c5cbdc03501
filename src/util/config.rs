//! The configuration: one row per variable, each with its default, unit, range and purpose.
//! `llcl-info -c` prints this table. A value comes from the caller's struct, else from the
//! environment, else from the default.

use crate::fail;
use crate::util::status::Result;

/// The values that a variable accepts.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// One of these words; the value is the word's position.
    Words(&'static [&'static str]),
    /// A whole number from the first to the second, a multiple of the third.
    Number(u64, u64, u64),
    /// A power of two from the first to the second.
    Power(u64, u64),
}

/// One row of the table.
#[derive(Debug)]
pub struct Row {
    /// The environment variable.
    pub name: &'static str,
    /// The default, as text in the form in which a user would set it.
    pub default: &'static str,
    /// The unit of its number; empty for words.
    pub unit: &'static str,
    /// The values that it accepts.
    pub kind: Kind,
    /// Its effect.
    pub help: &'static str,
}

/// Where a value came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It is not set: the default.
    Default,
    /// The environment.
    Environment,
    /// The caller's configuration struct.
    Caller,
}

macro_rules! table {
    ($($field:ident: $name:literal, $default:literal, $unit:literal, $kind:expr, $help:literal;)*) => {
        /// The variables, in the order in which they are printed.
        pub const TABLE: &[Row] = &[$(Row {
            name: $name, default: $default, unit: $unit, kind: $kind, help: $help,
        }),*];

        /// The configuration in force.
        #[derive(Clone, Debug)]
        pub struct Config {
            $(#[doc = $help] pub $field: u64,)*
            origins: Vec<Origin>,
        }

        impl Config {
            /// Reads the environment. A value that a variable does not accept is an error; it never
            /// becomes the default silently. An empty variable counts as unset.
            pub fn from_environment() -> Result<Config> {
                let mut origins = Vec::new();
                Ok(Config {
                    $($field: {
                        let row = &TABLE[origins.len()];
                        let (value, origin) = row.read(std::env::var_os(row.name))?;
                        origins.push(origin);
                        value
                    },)*
                    origins,
                })
            }

            /// Whether the environment asks for a world of one, even if other variables of it are
            /// wrong.
            pub fn is_alone() -> bool {
                let set = std::env::var_os("LLCL_ALONE");
                set.and_then(|text| text.to_str()?.parse().ok()) == Some(1)
            }

            /// Every value in the order of [`TABLE`], with its origin.
            pub fn values(&self) -> Vec<(u64, Origin)> {
                [$(self.$field),*].into_iter().zip(self.origins.iter().copied()).collect()
            }

            $(
                #[doc = concat!("Sets `", $name, "` from the caller's struct, where 0 means unset.")]
                pub fn $field(&mut self, value: u64) -> Result<()> {
                    if value != 0 {
                        let at = TABLE.iter().position(|row| row.name == $name).unwrap_or_default();
                        TABLE[at].check(value, stringify!($field))?;
                        self.$field = value;
                        self.origins[at] = Origin::Caller;
                    }
                    Ok(())
                }
            )*
        }
    };
}

/// The words of `LLCL_EXECUTION`; their positions plus one are the C constants.
pub const EXECUTIONS: &[&str] = &["auto", "offload", "direct"];
/// The words of `LLCL_AM_POLICY`, likewise.
pub const POLICIES: &[&str] = &["acquire", "limit", "distributed"];
/// The words of `LLCL_AM_HANDLERS`, likewise.
pub const HANDLERS: &[&str] = &["serial", "parallel", "polled"];
/// The words of `LLCL_COLL_ENGINE`, likewise.
pub const ENGINES: &[&str] = &["offload", "thread"];
/// The words of `LLCL_COLL_BARRIER`: `auto`, and the names of the algorithms in `coll`. The
/// following lists are alike.
pub const BARRIERS: &[&str] = &["auto", "dissemination", "tree", "two_level"];
/// The words of `LLCL_COLL_BROADCAST`.
pub const BROADCASTS: &[&str] = &[
    "auto",
    "binomial",
    "chain",
    "kary",
    "trinaryx3",
    "scatter_allgather",
    "direct",
    "eager",
    "two_level",
];
/// The words of `LLCL_COLL_REDUCE`.
pub const REDUCES: &[&str] = &["auto", "direct", "binomial", "eager", "two_level"];
/// The words of `LLCL_COLL_ALLREDUCE`.
pub const ALLREDUCES: &[&str] =
    &["auto", "direct", "recursive_doubling", "rabenseifner", "ring", "eager", "two_level"];
/// The words of `LLCL_COLL_GATHER`.
pub const GATHERS: &[&str] = &["auto", "direct", "binomial", "eager"];
/// The words of `LLCL_COLL_SCATTER`.
pub const SCATTERS: &[&str] = &["auto", "direct", "push", "binomial", "eager"];
/// The words of `LLCL_COLL_ALLGATHER`.
pub const ALLGATHERS: &[&str] =
    &["auto", "direct", "ring", "bruck", "recursive_doubling", "eager", "two_level"];
/// The words of `LLCL_COLL_ALLTOALL`.
pub const ALLTOALLS: &[&str] = &["auto", "direct", "pairwise", "bruck", "eager", "two_level"];
/// The words of `LLCL_COLL_REDUCE_SCATTER`.
pub const REDUCE_SCATTERS: &[&str] = &["auto", "direct", "ring", "pairwise", "eager", "two_level"];
/// The words of `LLCL_COLL_SCAN`.
pub const SCANS: &[&str] = &["auto", "direct", "recursive_doubling", "eager"];
/// The words of `LLCL_COLL_EXSCAN`.
pub const EXSCANS: &[&str] = SCANS;
const SWITCH: &[&str] = &["off", "on"];

table! {
    execution: "LLCL_EXECUTION", "auto", "", Kind::Words(EXECUTIONS),
        "Which thread runs an operation that needs the command queue: the caller when it can, the progress thread, or the caller only.";
    queue_entries: "LLCL_QUEUE_ENTRIES", "1024", "commands", Kind::Power(8, 65536),
        "Length of the command queue; when it is full the try functions answer LLCL_RETRY_QUEUE_FULL.";
    in_flight: "LLCL_IN_FLIGHT", "1024", "operations", Kind::Number(64, 3904, 64),
        "Operations that may wait for an answer of another rank at one time.";
    parked: "LLCL_PARKED", "1024", "requests", Kind::Number(1, 1 << 20, 1),
        "Requests with LLCL_FLAG_PARK that may be kept at one time until there is room for them.";
    regions: "LLCL_REGIONS", "1024", "regions", Kind::Number(1, 65535, 1),
        "Regions that may exist at one time in one context.";
    request_slots: "LLCL_REQUEST_SLOTS", "256", "messages", Kind::Power(8, 65536),
        "Slots of this rank for other ranks' requests to memory that only this rank can access, whatever the number of ranks.";
    cma: "LLCL_CMA", "on", "", Kind::Words(SWITCH),
        "Reach a peer's registered memory by process_vm_readv and process_vm_writev where the kernel allows it.";
    hugepages: "LLCL_HUGEPAGES", "on", "", Kind::Words(SWITCH),
        "Advise the kernel to back allocated regions of 2 MiB and more by huge pages.";
    spin_us: "LLCL_SPIN_US", "50", "microseconds", Kind::Number(0, 1_000_000, 1),
        "How long a waiting thread stays awake before it sleeps, over a network that wakes no thread (MPI) at least 1000; meanwhile it yields the core to other threads.";
    progress_spin_us: "LLCL_PROGRESS_SPIN_US", "100", "microseconds", Kind::Number(0, 1_000_000, 1),
        "How long the progress thread stays awake after a wake-up or work for a collective; with LLCL_EXECUTION=offload after any work.";
    am_policy: "LLCL_AM_POLICY", "acquire", "", Kind::Words(POLICIES),
        "How senders take this rank's message slots: one after the other; so with a limit on messages under way; or from shares whose counters lie with several ranks.";
    am_slots: "LLCL_AM_SLOTS", "512", "messages", Kind::Power(1, 65536),
        "Message slots of this rank, whatever the number of ranks; when all are taken senders are told LLCL_RETRY_NO_CREDIT.";
    am_medium: "LLCL_AM_MEDIUM", "4096", "bytes", Kind::Number(64, 65536, 64),
        "Most bytes of a payload that travels in one of the slots, and of a reply.";
    am_chunks: "LLCL_AM_CHUNKS", "32", "chunks", Kind::Power(1, 4096),
        "Chunks of 64 KiB for messages whose payload is larger than LLCL_AM_MEDIUM, and as many for responses; untouched memory costs nothing.";
    am_shares: "LLCL_AM_SHARES", "4", "shares", Kind::Power(1, 16),
        "Number of shares into which the policy distributed splits the slots; never more than ranks, nor than half the slots.";
    am_requests: "LLCL_AM_REQUESTS", "256", "messages", Kind::Power(64, 4096),
        "Active messages of this rank that may wait for their end at one time, each with a place for its reply.";
    am_retained: "LLCL_AM_RETAINED", "1024", "messages", Kind::Number(1, 1 << 20, 1),
        "Messages that handlers may keep at one time by llcl_am_retain, each in memory of its own.";
    am_handlers: "LLCL_AM_HANDLERS", "serial", "", Kind::Words(HANDLERS),
        "Whether one handler of a context runs at a time, several on different threads, or one on threads of the program that poll or wait.";
    coll_engine: "LLCL_COLL_ENGINE", "offload", "", Kind::Words(ENGINES),
        "Which thread runs the steps of collectives: the one that delivers a signal, or each rank's progress thread.";
    coll_segment: "LLCL_COLL_SEGMENT", "65536", "bytes", Kind::Number(64, 1 << 30, 64),
        "Size of the pieces into which collectives cut large messages; the same at every rank.";
    coll_memory: "LLCL_COLL_MEMORY", "256", "MiB", Kind::Number(1, 1 << 20, 1),
        "Most memory of this rank that teams and plans of collectives may take together.";
    coll_cache: "LLCL_COLL_CACHE", "16", "plans", Kind::Number(0, 1024, 1),
        "Number of plans that a team keeps for further calls of its blocking collectives; the same at every rank.";
    coll_barrier: "LLCL_COLL_BARRIER", "auto", "", Kind::Words(BARRIERS),
        "Which algorithm does a barrier; auto leaves it to the table that llcl-info -a prints.";
    coll_broadcast: "LLCL_COLL_BROADCAST", "auto", "", Kind::Words(BROADCASTS),
        "Which algorithm does a broadcast; auto leaves it to the table that llcl-info -a prints.";
    coll_reduce: "LLCL_COLL_REDUCE", "auto", "", Kind::Words(REDUCES),
        "Which algorithm does a reduce; auto leaves it to the table that llcl-info -a prints.";
    coll_allreduce: "LLCL_COLL_ALLREDUCE", "auto", "", Kind::Words(ALLREDUCES),
        "Which algorithm does an allreduce; auto leaves it to the table that llcl-info -a prints.";
    coll_gather: "LLCL_COLL_GATHER", "auto", "", Kind::Words(GATHERS),
        "Which algorithm does a gather; auto leaves it to the table that llcl-info -a prints.";
    coll_scatter: "LLCL_COLL_SCATTER", "auto", "", Kind::Words(SCATTERS),
        "Which algorithm does a scatter; auto leaves it to the table that llcl-info -a prints.";
    coll_allgather: "LLCL_COLL_ALLGATHER", "auto", "", Kind::Words(ALLGATHERS),
        "Which algorithm does an allgather; auto leaves it to the table that llcl-info -a prints.";
    coll_alltoall: "LLCL_COLL_ALLTOALL", "auto", "", Kind::Words(ALLTOALLS),
        "Which algorithm does an alltoall; auto leaves it to the table that llcl-info -a prints.";
    coll_reduce_scatter: "LLCL_COLL_REDUCE_SCATTER", "auto", "", Kind::Words(REDUCE_SCATTERS),
        "Which algorithm does a reduce-scatter; auto leaves it to the table that llcl-info -a prints.";
    coll_scan: "LLCL_COLL_SCAN", "auto", "", Kind::Words(SCANS),
        "Which algorithm does a scan; auto leaves it to the table that llcl-info -a prints.";
    coll_exscan: "LLCL_COLL_EXSCAN", "auto", "", Kind::Words(EXSCANS),
        "Which algorithm does an exclusive scan; auto leaves it to the table that llcl-info -a prints.";
    alone: "LLCL_ALONE", "0", "", Kind::Number(0, 1, 1),
        "1: a world of one, though another launcher (MPI, PMI, Slurm) has started several ranks.";
    finalize_ms: "LLCL_FINALIZE_MS", "1000", "milliseconds", Kind::Number(0, 600_000, 1),
        "How long llcl_finalize lets operations finish before it cancels them.";
}

impl Row {
    fn read(&self, set: Option<std::ffi::OsString>) -> Result<(u64, Origin)> {
        // An empty variable is how some shells and schedulers unset one.
        let (text, origin) = match &set {
            Some(text) if !text.is_empty() => (text.to_string_lossy(), Origin::Environment),
            _ => (self.default.into(), Origin::Default),
        };
        let value = match self.kind {
            Kind::Words(words) => words.iter().position(|word| *word == text).map(|at| at as u64),
            Kind::Number(..) | Kind::Power(..) => text.parse().ok(),
        };
        match value {
            Some(value) => self.check(value, self.name).map(|()| (value, origin)),
            None => fail!(ERR_INVALID, "{} is \"{text}\", expected {}", self.name, self.range()),
        }
    }

    fn check(&self, value: u64, called: &str) -> Result<()> {
        let good = match self.kind {
            Kind::Words(words) => value < words.len() as u64,
            Kind::Number(low, high, step) => {
                (low..=high).contains(&value) && value.is_multiple_of(step)
            }
            Kind::Power(low, high) => (low..=high).contains(&value) && value.is_power_of_two(),
        };
        if !good {
            fail!(ERR_INVALID, "{called} is {value}, expected {}", self.range());
        }
        Ok(())
    }

    /// The accepted values, in words.
    pub fn range(&self) -> String {
        match self.kind {
            Kind::Words(words) => format!("one of {}", words.join(", ")),
            Kind::Number(low, high, 1) => format!("a whole number from {low} to {high}"),
            Kind::Number(low, high, step) => format!("a multiple of {step} from {low} to {high}"),
            Kind::Power(low, high) => format!("a power of two from {low} to {high}"),
        }
    }

    /// A value as text, in the form in which a user would set it.
    pub fn show(&self, value: u64) -> String {
        match self.kind {
            Kind::Words(words) => words[value as usize].to_string(),
            Kind::Number(..) | Kind::Power(..) => value.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_accepted_by_its_own_row() {
        for row in TABLE {
            let (value, origin) = row.read(None).unwrap();
            assert_eq!(origin, Origin::Default);
            assert_eq!(row.show(value), row.default);
        }
    }

    #[test]
    fn an_empty_variable_counts_as_unset() {
        for row in TABLE {
            assert_eq!(row.read(Some("".into())).unwrap(), row.read(None).unwrap());
        }
    }

    #[test]
    fn a_bad_value_names_the_variable_and_the_range() {
        for bad in [" ", "12", "7", "-8", "1e3", "131072", "eight"] {
            let row = TABLE.iter().find(|row| row.name == "LLCL_QUEUE_ENTRIES").unwrap();
            let error = row.read(Some(bad.into())).unwrap_err();
            assert!(error.message().contains("LLCL_QUEUE_ENTRIES is "), "{error}");
            assert!(error.message().contains("a power of two from 8 to 65536"), "{error}");
        }
    }

    #[test]
    fn the_callers_struct_wins_and_is_checked() {
        let mut config = Config::from_environment().unwrap();
        config.queue_entries(0).unwrap();
        assert_eq!(config.queue_entries, 1024);
        config.queue_entries(64).unwrap();
        assert_eq!(config.queue_entries, 64);
        assert_eq!(config.values()[1], (64, Origin::Caller));
        assert!(config.queue_entries(63).is_err());
    }
}
