//! Layer 0: what every other layer may use and what itself uses nothing of ours.

pub mod status;
