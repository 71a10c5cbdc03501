//! Layer 3: how requests get from the threads that make them to the device.

pub mod doorbell;
pub mod ring;
pub mod slots;
