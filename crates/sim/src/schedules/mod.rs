//! Schedules under virtual time, crashes and races: the service, its desks and the machine, as they ship.
//!
//! What is simulated is what the other runs simulate too (the store, the clocks, the clients), and the **targets**: they
//! succeed, fail, refuse, hang, answer late and panic ([`targets`]). What is checked stands in [`books`]: a second reading
//! of the journal that follows every due time from the creation of its schedule on, and every delivery from its claim to
//! the target.
//!
//! Not checked: that deliveries are made at most once (they are not: a target tells repetitions apart by their key), and
//! the order in which deliveries reach an ordered destination when a node lost its claim and does not know yet.

pub mod books;

pub mod clock;

pub mod targets;

pub mod wishes;

pub mod world;
